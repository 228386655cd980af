// Judges a checkpoint that may come from a stranger. It is read in a child process started by exec,
// with limits on memory and time: whatever a crafted HDF5 file does to the library, it happens to
// the child. (A plain fork would copy the locks of a running MPI.)
#pragma once

#include <filesystem>
#include <string>

namespace fathom::checkpoint {

// "" if the checkpoint is whole and can be loaded, else why not. Runs `program checkpoint
// verify-child PATH`; the default is this very program. IoError: no child could be started.
[[nodiscard]] std::string verify(const std::filesystem::path& checkpoint,
                                 const std::filesystem::path& program = "/proc/self/exe");

// The child's whole work: lowers its own limits, reads the checkpoint, writes the reason to stdout.
// Returns the exit code: 0 valid, 4 not. For a process that does nothing else.
int verify_child_main(const std::string& path);

}  // namespace fathom::checkpoint
