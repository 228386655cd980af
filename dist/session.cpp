#include "dist/session.h"

#include "core/base/thread.h"
#include "dist/local_communicator.h"
#include "dist/mpi_communicator.h"
#include "dist/mpi_session.h"

namespace fathom::dist {
namespace {

// Without them Open MPI's start ends the job, each time in other words.
constexpr int kThreadsOfMpi = 2;

class LoneSession final : public Session {
 public:
  Communicator& world() override { return *world_; }
  Communicator& node() override { return *world_; }
  [[nodiscard]] bool uses_mpi() const override { return false; }

 private:
  std::unique_ptr<Communicator> world_ = std::move(make_local_group(1).front());
};

class ParallelSession final : public Session {
 public:
  Communicator& world() override { return *world_; }
  Communicator& node() override { return *node_; }
  [[nodiscard]] bool uses_mpi() const override { return true; }

 private:
  MpiSession mpi_ = {};  // outlives the others
  std::unique_ptr<Communicator> world_ = make_mpi_communicator(mpi_);
  std::unique_ptr<Communicator> node_ = make_node_communicator(mpi_);
};

}  // namespace

std::unique_ptr<Session> start(const Environment& environment) {
  const Launch launch = read_launch(environment);
  if (launch.evidence.empty()) return std::make_unique<LoneSession>();

  // Open MPI finds its peers by PMIx only. Without it MPI_Init would end the process with an error
  // about its build, or give every process a world of its own.
  if (!launch.speaks_pmix && mpi_is_open_mpi()) {
    check_launch(1, environment);
    return std::make_unique<LoneSession>();
  }
  require_threads("MPI", kThreadsOfMpi);
  auto session = std::make_unique<ParallelSession>();
  try {
    check_launch(session->world().size(), environment);
  } catch (...) {
    session.reset();  // finalize in order: every rank sees the same mismatch
    throw;
  }
  return session;
}

}  // namespace fathom::dist
