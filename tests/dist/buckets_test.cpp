#include <chrono>
#include <stdexcept>
#include <thread>

#include <gtest/gtest.h>

#include "dist/bucket_ledger.h"
#include "dist/bucket_thread.h"
#include "expect_error.h"

namespace fathom::dist {
namespace {

using Buckets = std::vector<int64_t>;

TEST(BucketLedger, CompletesABucketWithItsLastElement) {
  BucketLedger ledger(10, 4);
  EXPECT_EQ(ledger.bucket_count(), 3);
  EXPECT_EQ(ledger.slice(2).offset, 8);
  EXPECT_EQ(ledger.slice(2).count, 2);

  EXPECT_EQ(ledger.mark(1, 5), Buckets{});
  EXPECT_EQ(ledger.mark(8, 2), Buckets{2});
  EXPECT_EQ(ledger.mark(0, 1), Buckets{0});
  EXPECT_EQ(ledger.mark(3, 0), Buckets{});
  EXPECT_EQ(ledger.mark_rest(), Buckets{1});
  EXPECT_EQ(ledger.mark_rest(), Buckets{});

  ledger.clear();
  EXPECT_EQ(ledger.mark(0, 10), (Buckets{0, 1, 2}));
}

TEST(BucketLedger, RefusesOverlapFromEitherSide) {
  BucketLedger ledger(10, 4);
  (void)ledger.mark(4, 2);

  for (const auto& [offset, count] : {std::pair{3, 2}, {5, 1}, {5, 3}, {4, 2}, {0, 10}})
    expect_error<InvalidArgument>([&, o = offset, n = count] { (void)ledger.mark(o, n); },
                                  {"announced before"});
  expect_error<InvalidArgument>([&] { (void)ledger.mark(-1, 2); }, {"leaves the buffer"});
  EXPECT_EQ(ledger.mark(0, 4), Buckets{0});
}

TEST(BucketThread, WorksInAscendingOrderWhateverTheAnnouncements) {
  Buckets done;
  BucketThread thread(4, [&](int64_t bucket) { done.push_back(bucket); });

  for (int step = 0; step < 2; ++step) {
    done.clear();
    thread.announce(Buckets{3, 1});
    thread.announce(Buckets{});
    thread.announce(Buckets{0});
    thread.announce(Buckets{2});
    thread.finish();
    EXPECT_EQ(done, (Buckets{0, 1, 2, 3}));
  }
}

TEST(BucketThread, ErrorSurfacesInFinishAndStays) {
  BucketThread thread(2, [](int64_t bucket) {
    if (bucket == 1) throw DeviceError("link down");
  });
  thread.announce(Buckets{0, 1});

  expect_error<DeviceError>([&] { thread.finish(); }, {"link down"});
  expect_error<DeviceError>([&] { thread.finish(); }, {"link down"});
}

TEST(BucketThread, EndsWithBucketsOpen) {
  BucketThread thread(2, [](int64_t) {});
  thread.announce(Buckets{0});
}

}  // namespace
}  // namespace fathom::dist
