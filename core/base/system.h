// The machine and the environment: host name, memory, random bits, and the launcher that started
// this process.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace fathom {

// This machine's name, "unknown" if it has none.
[[nodiscard]] std::string host_name();

// Installed memory in bytes.
[[nodiscard]] int64_t physical_memory();

// 64 bits from the system's generator: for unique names, never for training.
[[nodiscard]] uint64_t random_bits();

// Looks a variable up; nullopt when unset.
using Environment = std::function<std::optional<std::string>(const std::string&)>;
[[nodiscard]] std::optional<std::string> process_environment(const std::string& name);

struct Launch {
  int64_t processes = 1;      // started by the launcher, at least
  std::string evidence = {};  // "OMPI_COMM_WORLD_SIZE=4"; empty when started alone
  bool speaks_pmix = false;   // mpirun of Open MPI, or srun --mpi=pmix
};

// Open MPI's own variables win: under mpirun inside a Slurm job, SLURM_* describe the daemon that
// mpirun placed on the node, not the rank. Slurm counts only inside a step started by srun.
[[nodiscard]] Launch read_launch(const Environment& environment = process_environment);

// The batch job this process belongs to, of Slurm, PBS or LSF; "" if none.
[[nodiscard]] std::string batch_job(const Environment& environment = process_environment);

}  // namespace fathom
