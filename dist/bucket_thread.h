// A communication thread: works through the buckets of a step while backward goes on. Strictly in
// ascending order, whatever the order of the announcements: peers must make equal calls.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

namespace fathom::dist {

class BucketThread {
 public:
  // Calls reduce(bucket) on its thread for 0 <= bucket < bucket_count, once per step each.
  BucketThread(int64_t bucket_count, std::function<void(int64_t)> reduce);
  BucketThread(const BucketThread&) = delete;
  BucketThread& operator=(const BucketThread&) = delete;
  ~BucketThread();  // waits for the bucket in work, drops the others

  // What the caller wrote before is seen by reduce().
  void announce(std::span<const int64_t> buckets);

  // Waits until all buckets, each announced, are done; then a new step begins. Rethrows what
  // reduce() threw, now and on every later call: after an error the thread does nothing more.
  void finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fathom::dist
