// One block of a device's memory with two ends, reused from step to step. Forward pushes what it
// must keep at the bottom and the tape frees it in reverse order; gradients and scratch live at the
// top, where memory is freed with its last handle. The block belongs to one context, and memory is
// reused in that context's order, so nothing waits. On the host only address space is reserved:
// pages are committed on first use, and the memory taken is the largest that a step has needed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "core/tensor/context.h"

namespace fathom::tensor {

class Arena {
 public:
  // DeviceError when the device cannot reserve `bytes`. `remedy`: what else to do where it is too
  // small, "raise ulimit -v".
  Arena(Context& context, int64_t bytes, std::string remedy = {});
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // At the bottom; contents undefined. DeviceError with the sizes when there is no room.
  [[nodiscard]] Tensor bottom(int64_t rows, int64_t cols, DType dtype);
  // At the top; freed with the last tensor that shares it. Contents undefined.
  [[nodiscard]] Tensor top(int64_t rows, int64_t cols, DType dtype);

  using Mark = int64_t;
  [[nodiscard]] Mark mark() const { return bottom_; }
  void rewind(Mark mark);  // frees the bottom down to `mark`

  [[nodiscard]] int64_t peak_bytes() const { return peak_; }
  [[nodiscard]] int64_t used_bytes() const { return bottom_ + (capacity_ - top_); }

 private:
  void free_top(int64_t offset);
  void check_room(int64_t wanted);
  void discard(int64_t offset, int64_t bytes);

  Context& context_;
  std::byte* base_ = nullptr;
  int64_t capacity_ = 0;
  std::string remedy_;
  int64_t bottom_ = 0;
  int64_t top_ = 0;
  int64_t peak_ = 0;
  std::map<int64_t, bool> blocks_;  // offset of each block at the top: still in use?
};

// Rewinds the bottom at the end of a scope; for forward passes without a tape.
class ArenaScope {
 public:
  explicit ArenaScope(Arena& arena) : arena_(arena), mark_(arena.mark()) {}
  ~ArenaScope() { arena_.rewind(mark_); }
  ArenaScope(const ArenaScope&) = delete;
  ArenaScope& operator=(const ArenaScope&) = delete;

 private:
  Arena& arena_;
  Arena::Mark mark_;
};

}  // namespace fathom::tensor

namespace fathom {
using tensor::Arena;
}
