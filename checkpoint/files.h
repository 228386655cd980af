// A checkpoint's files on the way in: regular, no links, of the size that is expected, and every
// complaint a CheckpointError. Files in general are the matter of core/base/file.h.
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

// Bytes without the cost of zeroing them first.
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

// Size of a regular file that is no link. CheckpointError.
[[nodiscard]] int64_t regular_file_size(const Directory& directory, const std::string& name);

// The whole of a regular file that is no link and has `size` bytes. CheckpointError.
[[nodiscard]] Bytes read_regular_file(const Directory& directory, const std::string& name,
                                      int64_t size);

}  // namespace fathom::checkpoint
