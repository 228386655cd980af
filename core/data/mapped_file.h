// Read-only pages of a file. They outlive a rename or removal of the file, but not its truncation,
// nor a failure of its disk: then an access raises SIGBUS, and the program can at least report
// which file it was.
#pragma once

#include <filesystem>
#include <memory>
#include <string_view>

namespace fathom::data {

// IoError with the path and the system's reason.
[[nodiscard]] std::shared_ptr<const std::string_view> map_file(const std::filesystem::path& path);

// The path (its first 511 bytes) of the mapped file whose pages hold `address`; nullptr if there is
// none. May be called from a signal handler.
[[nodiscard]] const char* mapped_file_at(const void* address);

}  // namespace fathom::data
