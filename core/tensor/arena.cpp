#include "core/tensor/arena.h"

#include <algorithm>
#include <utility>

namespace fathom::tensor {
namespace {

constexpr int64_t kAlignment = 64;  // a cache line, and the widest vector register

int64_t aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

int64_t aligned_bytes(int64_t rows, int64_t cols, DType dtype) {
  return aligned(std::max<int64_t>(rows * cols * size_of(dtype), 1));
}

}  // namespace

Arena::Arena(Context& context, int64_t bytes, std::string remedy)
    : context_(context), capacity_(aligned(bytes)), remedy_(std::move(remedy)) {
  require(bytes > 0, "arena: ", bytes, " bytes");
  void* block = nullptr;
  context_.check(context_.table().allocate(context_.handle(), uint64_t(capacity_), &block));
  base_ = static_cast<std::byte*>(block);
  top_ = capacity_;
  discard(0, capacity_);
}

Arena::~Arena() { context_.table().release(context_.handle(), base_); }

void Arena::check_room(int64_t wanted) {
  require<DeviceError>(bottom_ + wanted <= top_, "arena: ", wanted >> 10,
                       " KiB more do not fit: ", used_bytes() >> 20, " of ", capacity_ >> 20,
                       " MiB are in use; lower batch.micro_tokens or data.max_length",
                       remedy_.empty() ? "" : ", or ", remedy_);
}

void Arena::discard(int64_t offset, int64_t bytes) {
  if (context_.table().discard != nullptr && bytes > 0)
    context_.table().discard(context_.handle(), base_ + offset, uint64_t(bytes));
}

Tensor Arena::bottom(int64_t rows, int64_t cols, DType dtype) {
  const int64_t bytes = aligned_bytes(rows, cols, dtype);
  check_room(bytes);
  Tensor t(base_ + bottom_, rows, cols, dtype);
  bottom_ += bytes;
  peak_ = std::max(peak_, used_bytes());
  return t;
}

void Arena::rewind(Mark mark) {
  discard(mark, bottom_ - mark);
  bottom_ = mark;
}

Tensor Arena::top(int64_t rows, int64_t cols, DType dtype) {
  const int64_t bytes = aligned_bytes(rows, cols, dtype);
  check_room(bytes);
  top_ -= bytes;
  const int64_t offset = top_;
  blocks_.emplace(offset, true);
  peak_ = std::max(peak_, used_bytes());
  std::shared_ptr<void> owner(base_ + offset, [this, offset](void*) { free_top(offset); });
  return Tensor(base_ + offset, rows, cols, dtype, std::move(owner));
}

// Gradients are freed roughly in the reverse order of their allocation, so the top moves back over
// every free block at its edge; a block freed early waits for those allocated after it.
void Arena::free_top(int64_t offset) {
  blocks_.at(offset) = false;
  const int64_t before = top_;
  while (!blocks_.empty() && !blocks_.begin()->second) {
    blocks_.erase(blocks_.begin());
    top_ = blocks_.empty() ? capacity_ : blocks_.begin()->first;
  }
  discard(before, top_ - before);
}

}  // namespace fathom::tensor
