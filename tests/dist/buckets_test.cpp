#include <gtest/gtest.h>

#include "dist/bucket_ledger.h"
#include "expect_error.h"

namespace fathom::dist {
namespace {

using Buckets = std::vector<int64_t>;

TEST(BucketLedger, CompletesABucketWithItsLastElement) {
  BucketLedger ledger({0, 4, 8, 10});
  EXPECT_EQ(ledger.bucket_count(), 3);

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
  BucketLedger ledger({0, 4, 8, 10});
  (void)ledger.mark(4, 2);

  for (const auto& [offset, count] : {std::pair{3, 2}, {5, 1}, {5, 3}, {4, 2}, {0, 10}})
    expect_error<InvalidArgument>([&, o = offset, n = count] { (void)ledger.mark(o, n); },
                                  {"marked final before"});
  expect_error<InvalidArgument>([&] { (void)ledger.mark(-1, 2); }, {"leaves the buffer"});
  EXPECT_EQ(ledger.mark(0, 4), Buckets{0});
}

TEST(BucketLedger, TakesBucketsOfAnyLength) {
  BucketLedger ledger({0, 1, 7, 9});

  EXPECT_EQ(ledger.mark(0, 3), Buckets{0});
  EXPECT_EQ(ledger.mark(3, 5), Buckets{1});
  EXPECT_EQ(ledger.mark(8, 1), Buckets{2});
  expect_error<InvalidArgument>([&] { (void)ledger.mark(9, 1); }, {"leaves the buffer of 9"});
  for (const std::vector<int64_t>& bad : {Buckets{0}, {1, 2}, {0, 2, 2}})
    expect_error<InvalidArgument>([&] { BucketLedger{bad}; }, {"boundaries"});
}

}  // namespace
}  // namespace fathom::dist
