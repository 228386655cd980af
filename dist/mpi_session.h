// MPI's lifetime: MPI_Init_thread in the constructor, MPI_Finalize in the destructor. One per
// process. Requests MPI_THREAD_MULTIPLE, since a communication thread and a watchdog call MPI too.
// Destroyed by an exception it aborts a job of several processes instead: peers would hang in
// MPI_Finalize. A lone process goes on to say what was wrong.
// Commands use session.h, which also decides whether MPI is needed at all.
#pragma once

#include <string>

namespace fathom::dist {

class MpiSession {
 public:
  MpiSession();  // DeviceError if MPI fails or lacks MPI_THREAD_MULTIPLE
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;
  ~MpiSession();

 private:
  int exceptions_at_start_;
};

// The linked library, "Open MPI 4.1.4". May be asked without a session, as the next.
[[nodiscard]] std::string mpi_library();
[[nodiscard]] bool mpi_is_open_mpi();

}  // namespace fathom::dist
