#include "dist/mpi_session.h"

#include <algorithm>
#include <exception>

#include <mpi.h>

#include "core/base/error.h"

namespace fathom::dist {

MpiSession::MpiSession() : exceptions_at_start_(std::uncaught_exceptions()) {
  int initialized = 0;
  MPI_Initialized(&initialized);
  require(initialized == 0, "MPI session: MPI is already running; a process starts it once");
  int provided = MPI_THREAD_SINGLE;
  const int code = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided);
  require<DeviceError>(code == MPI_SUCCESS, "MPI_Init_thread: failed with code ", code);
  if (provided < MPI_THREAD_MULTIPLE) {
    MPI_Finalize();
    fail<DeviceError>("MPI_Init_thread: thread level ", provided, " offered, expected ",
                      MPI_THREAD_MULTIPLE,
                      " (MPI_THREAD_MULTIPLE); use an MPI built with thread support");
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
}

MpiSession::~MpiSession() {
  int size = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size > 1 && std::uncaught_exceptions() > exceptions_at_start_)
    MPI_Abort(MPI_COMM_WORLD, int(ExitCode::kPeer));
  MPI_Finalize();
}

std::string mpi_library() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  if (MPI_Get_library_version(text, &length) != MPI_SUCCESS) return "an unknown MPI";
  std::string name(text, size_t(length));
  name.resize(std::min(name.find_first_of(",\n"), name.size()));
  // "Open MPI v4.1.4"
  if (const size_t v = name.find(" v"); v != name.npos) name.erase(v + 1, 1);
  return name;
}

bool mpi_is_open_mpi() { return mpi_library().find("Open MPI") != std::string::npos; }

}  // namespace fathom::dist
