// Hands the newest value from one writer to any number of readers; the writer never waits. Three
// slots: the writer owns one, the readers own one, and the third changes owner by one atomic
// exchange. Readers take turns among themselves with a lock that the writer never touches.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <utility>

namespace fathom::monitoring {

template <class T>
class Mailbox {
 public:
  // From one thread only. Wait-free.
  void put(T value) {
    slots_[back_] = std::move(value);
    back_ = middle_.exchange(back_ | kFresh, std::memory_order_acq_rel) & kSlot;
  }

  // The value of the last put() that has returned, or a newer one; T() before the first.
  [[nodiscard]] T get() const {
    const std::lock_guard turn(readers_);
    if (middle_.load(std::memory_order_relaxed) & kFresh)
      front_ = middle_.exchange(front_, std::memory_order_acq_rel) & kSlot;
    return slots_[front_];
  }

 private:
  static constexpr uint32_t kSlot = 3, kFresh = 4;

  std::array<T, 3> slots_{};
  uint32_t back_ = 0;                         // the writer's
  mutable std::atomic<uint32_t> middle_ = 1;  // plus kFresh when the writer put it there
  mutable uint32_t front_ = 2;                // the readers'
  mutable std::mutex readers_;
};

}  // namespace fathom::monitoring
