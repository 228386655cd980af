#include "dist/launch_check.h"

#include <charconv>
#include <cstdlib>

#include "core/base/error.h"

namespace fathom::dist {
namespace {

// The variable as a number of processes; nothing when unset or not a positive number.
std::optional<int64_t> count(const Environment& environment, const std::string& name) {
  const std::optional<std::string> text = environment(name);
  if (!text) return std::nullopt;
  int64_t value = 0;
  const char* end = text->data() + text->size();
  const auto [stop, error] = std::from_chars(text->data(), end, value);
  if (error != std::errc() || stop != end || value < 1) return std::nullopt;
  return value;
}

// A step of srun with tasks of its own. Slurm numbers its batch, extern and interactive steps from
// the top of 32 bits; those hold one shell, whatever SLURM_NTASKS says about the job.
bool inside_srun_step(const Environment& environment) {
  const std::optional<std::string> step = environment("SLURM_STEP_ID");
  return step && !step->empty() && std::strtoull(step->c_str(), nullptr, 10) < 0xFFFFFFF0u;
}

}  // namespace

std::optional<std::string> process_environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr) return std::nullopt;
  return std::string(value);
}

Launch read_launch(const Environment& environment) {
  const bool has_pmix = environment("PMIX_RANK").has_value();
  const auto claim = [&](const char* name, bool speaks_pmix) -> std::optional<Launch> {
    const std::optional<int64_t> processes = count(environment, name);
    if (!processes) return std::nullopt;
    return Launch{.processes = *processes,
                  .evidence = join(name, "=", *processes),
                  .speaks_pmix = speaks_pmix};
  };
  if (const auto launch = claim("OMPI_COMM_WORLD_SIZE", true)) return *launch;
  // Before Slurm: another MPI's launcher may also sit inside a Slurm step.
  if (const auto launch = claim("PMI_SIZE", has_pmix)) return *launch;
  if (const auto launch = claim("MPI_LOCALNRANKS", has_pmix)) return *launch;
  if (inside_srun_step(environment)) {
    if (const auto launch = claim("SLURM_STEP_NUM_TASKS", has_pmix)) return *launch;
    if (const auto launch = claim("SLURM_NTASKS", has_pmix)) return *launch;
  }
  if (has_pmix) return {.processes = 1, .evidence = "PMIX_RANK", .speaks_pmix = true};
  return {};
}

void check_launch(int size, const Environment& environment) {
  const Launch launch = read_launch(environment);
  if (launch.processes <= size) return;
  const bool slurm = launch.evidence.starts_with("SLURM");
  fail("launch: ", launch.processes, " processes were started (", launch.evidence,
       "), but MPI sees ",
       size == 1 ? "each of them as rank 0 of 1" : join("only ", size, " ranks"), "; ",
       slurm ? "start with srun --mpi=pmix, or with mpirun inside the job"
             : "start with the mpirun of the MPI library this program was built with");
}

}  // namespace fathom::dist
