#include "dist/launch_check.h"

#include "core/base/error.h"

namespace fathom::dist {

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
