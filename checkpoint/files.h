// Reading a checkpoint's files: they must be regular files, not links, of the expected size; every
// error is a CheckpointError. core/base/file.h is about files in general.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/base/file.h"

namespace fathom::checkpoint {

inline constexpr std::string_view kPlace = "checkpoint";  // in the messages of core/base/file.h

// A buffer that is not zeroed first.
class Bytes {
 public:
  Bytes() = default;
  explicit Bytes(size_t size)
      : data_(std::make_unique_for_overwrite<std::byte[]>(size)), size_(size) {}
  [[nodiscard]] std::span<std::byte> span() { return {data_.get(), size_}; }
  [[nodiscard]] std::span<const std::byte> span() const { return {data_.get(), size_}; }
  [[nodiscard]] size_t size() const { return size_; }

 private:
  std::unique_ptr<std::byte[]> data_;
  size_t size_ = 0;
};

// Size of a regular file that is not a link. CheckpointError.
[[nodiscard]] int64_t regular_file_size(const Directory& directory, const std::string& name);

// A regular file that is not a link and has `size` bytes, whole. CheckpointError.
[[nodiscard]] Bytes read_regular_file(const Directory& directory, const std::string& name,
                                      int64_t size);

}  // namespace fathom::checkpoint
