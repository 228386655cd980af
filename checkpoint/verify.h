// Checks a checkpoint that is not trusted. A child process reads it, with limits on memory and
// time: whatever a crafted HDF5 file does to the library happens there. The child is started by
// exec, since a plain fork would copy the locks of a running MPI.
#pragma once

#include <filesystem>
#include <string>

namespace fathom::checkpoint {

// "" if the checkpoint is complete and can be loaded, else the reason why not. Runs
// `program checkpoint verify-child PATH`; the default is this very program. IoError: no child could
// be started.
[[nodiscard]] std::string verify(const std::filesystem::path& checkpoint,
                                 const std::filesystem::path& program = "/proc/self/exe");

// What the child does: lowers its own limits, reads the checkpoint, writes the reason to stdout.
// Returns the exit code: 0 valid, 4 invalid. For a process that does nothing else.
int verify_child_main(const std::string& path);

}  // namespace fathom::checkpoint
