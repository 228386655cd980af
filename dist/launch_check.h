// What the environment says about who started this process, and whether MPI sees the same.
// A launcher and an MPI library that do not fit start N processes that are each rank 0 of 1; they
// would train N times into one run directory. That is noticed here and refused.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace fathom::dist {

// Looks a variable up; nothing when unset.
using Environment = std::function<std::optional<std::string>(const std::string&)>;
[[nodiscard]] std::optional<std::string> process_environment(const std::string& name);

struct Launch {
  int64_t processes = 1;      // how many the launcher says it started (at least)
  std::string evidence = {};  // "OMPI_COMM_WORLD_SIZE=4"; empty when started alone
  bool speaks_pmix = false;   // mpirun of Open MPI, or srun --mpi=pmix
};

// Open MPI's own variables win: under mpirun inside a Slurm job, SLURM_* describe the daemon that
// mpirun placed on the node, not the rank. Slurm counts only inside a step started by srun.
[[nodiscard]] Launch read_launch(const Environment& environment);

// InvalidArgument when the launcher started more processes than the communicator has ranks.
void check_launch(int size, const Environment& environment = process_environment);

}  // namespace fathom::dist
