#include "core/tensor/arena.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <sys/mman.h>
#include <unistd.h>

namespace fathom::tensor {
namespace {

constexpr int64_t kAlignment = 64;  // a cache line, and the widest vector register

int64_t aligned_bytes(int64_t rows, int64_t cols, DType dtype) {
  const int64_t bytes = std::max<int64_t>(rows * cols * size_of(dtype), 1);
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

int64_t physical_memory() { return int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE); }

}  // namespace

Arena::Arena(int64_t bytes) {
  capacity_ = bytes > 0 ? (bytes + kAlignment - 1) / kAlignment * kAlignment : physical_memory();
  void* block = mmap(nullptr, size_t(capacity_), PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (block == MAP_FAILED)
    fail<DeviceError>("arena: cannot reserve ", capacity_ >> 20,
                      " MiB of address space: ", std::strerror(errno),
                      "; raise the limit (ulimit -v)");
  base_ = static_cast<std::byte*>(block);
  madvise(base_, size_t(capacity_), MADV_HUGEPAGE);  // advice only: fewer page faults
  top_ = capacity_;
}

Arena::~Arena() { munmap(base_, size_t(capacity_)); }

void Arena::check_room(int64_t wanted) {
  require<DeviceError>(bottom_ + wanted <= top_, "arena: ", wanted >> 10,
                       " KiB more do not fit: ", used_bytes() >> 20, " of ", capacity_ >> 20,
                       " MiB are in use; lower batch.micro_tokens or data.max_length");
}

Tensor Arena::bottom(int64_t rows, int64_t cols, DType dtype) {
  const int64_t bytes = aligned_bytes(rows, cols, dtype);
  check_room(bytes);
  Tensor t(base_ + bottom_, rows, cols, dtype);
  bottom_ += bytes;
  peak_ = std::max(peak_, used_bytes());
  return t;
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

// Gradients die roughly in the reverse order of their birth, so the top retreats over every block
// at its edge that is no longer used; a block freed early waits for its younger neighbours.
void Arena::free_top(int64_t offset) {
  blocks_.at(offset) = false;
  while (!blocks_.empty() && !blocks_.begin()->second) {
    blocks_.erase(blocks_.begin());
    top_ = blocks_.empty() ? capacity_ : blocks_.begin()->first;
  }
}

}  // namespace fathom::tensor
