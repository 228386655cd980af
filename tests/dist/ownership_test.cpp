#include "dist/ownership.h"

#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

#include "core/base/philox.h"
#include "expect_error.h"

namespace fathom::dist {
namespace {

using Cuts = std::vector<Slice>;

// Chunks of 1 to 40 elements in a shuffled order.
struct Table {
  std::vector<int64_t> chunks;
  int64_t count = 0, longest = 0;

  explicit Table(uint64_t seed, size_t n) {
    const PhiloxStream random(seed, "chunks");
    for (size_t k = 0; k < n; ++k) {
      chunks.push_back(count);
      const int64_t length = 1 + int64_t(random.bits(k) % 40);
      count += length;
      longest = std::max(longest, length);
    }
    for (size_t i = n; i > 1; --i) std::swap(chunks[i - 1], chunks[random.bits(n + i) % i]);
  }
};

void expect_every_chunk_owned_once(const Ownership& o, const Table& table) {
  int64_t end = 0;
  for (int64_t b = 0; b < o.bucket_count(); ++b) {
    EXPECT_EQ(o.bucket(b).offset, end);
    std::vector<int64_t> counts;
    for (int r = 0; r < o.ranks(); ++r) {
      const Slice part = o.part(b, r);
      EXPECT_EQ(part.offset, end);
      EXPECT_TRUE(part.count >= 0 && part.count <= o.longest_part(r));
      end = part.end();
      counts.push_back(part.count);
      EXPECT_TRUE(end == table.count || std::ranges::count(table.chunks, end) == 1);
    }
    EXPECT_EQ(o.bucket(b).end(), end);
    EXPECT_LE(o.bucket(b).count, o.longest_bucket());
    EXPECT_EQ(o.counts(b), counts);
  }
  EXPECT_EQ(end, table.count);

  std::vector<int64_t> owned;
  for (int r = 0; r < o.ranks(); ++r) {
    int64_t in_ranges = 0, last = -1;
    for (const Slice& range : o.ranges(r)) {
      EXPECT_GT(range.offset, last);  // those that touch are one
      last = range.end();
      in_ranges += range.count;
    }
    EXPECT_EQ(in_ranges, o.owned_count(r));
    EXPECT_TRUE(std::ranges::is_sorted(o.chunks_of(r), {},
                                       [&](int64_t k) { return table.chunks[size_t(k)]; }));
    for (const int64_t k : o.chunks_of(r)) {
      owned.push_back(k);
      EXPECT_TRUE(std::ranges::any_of(o.ranges(r), [&](const Slice& range) {
        return table.chunks[size_t(k)] >= range.offset && table.chunks[size_t(k)] < range.end();
      }));
    }
  }
  std::ranges::sort(owned);
  std::vector<int64_t> all(table.chunks.size());
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(owned, all);
}

TEST(Ownership, CoversEverythingOnceAndSplitsBetweenChunks) {
  for (const uint64_t seed : {1, 2, 3})
    for (const size_t n : {1, 2, 7, 300})
      for (const int64_t bucket : {1, 30, 200, 100000})
        for (const int ranks : {1, 2, 3, 4, 7, 16, 64}) {
          const Table table(seed, n);
          const Ownership o(table.chunks, table.count, bucket, ranks);
          EXPECT_EQ(o.ranks(), ranks);
          EXPECT_EQ(o.count(), table.count);
          EXPECT_LE(o.longest_bucket(), std::max(bucket, table.longest));
          expect_every_chunk_owned_once(o, table);
        }
}

TEST(Ownership, IsEvenToWithinTwoChunks) {
  for (const uint64_t seed : {1, 2, 3})
    for (const int64_t bucket : {1, 30, 200, 1000})
      for (const int ranks : {2, 3, 4, 7, 16, 64}) {
        const Table table(seed, 2000);
        const Ownership o(table.chunks, table.count, bucket, ranks);
        for (int r = 0; r < ranks; ++r)
          EXPECT_NEAR(double(o.owned_count(r)), double(table.count) / ranks,
                      2 * double(table.longest))
              << "rank " << r << " of " << ranks << ", buckets of " << bucket;
      }
}

TEST(Ownership, OfSomeElementsHasTheSameOwners) {
  const std::vector<int64_t> chunks = {0, 10, 20, 30, 40, 50};
  const Ownership whole(chunks, 60, 30, 2);

  // Every element from 20 on but those of [30, 40).
  const Ownership some = whole.of_elements(
      [](int64_t i) { return std::clamp<int64_t>(i - 20, 0, 10) + std::max<int64_t>(i - 40, 0); });

  EXPECT_EQ(some.count(), 30);
  EXPECT_EQ(some.bucket_count(), 2);
  EXPECT_EQ(some.counts(0), (std::vector<int64_t>{0, 10}));
  EXPECT_EQ(some.counts(1), (std::vector<int64_t>{0, 20}));
  EXPECT_EQ(some.owned_count(0), 0);
  EXPECT_EQ(some.ranges(1), (Cuts{{.offset = 0, .count = 30}}));
}

TEST(Ownership, GivesARankThatGotLessMoreOfTheNextBucket) {
  const std::vector<int64_t> chunks = {0, 10, 20, 30, 40, 50};  // two buckets of three chunks

  const Ownership o(chunks, 60, 30, 2);

  EXPECT_EQ(o.bucket_count(), 2);
  EXPECT_EQ(o.ranges(0), (Cuts{{.offset = 0, .count = 20}, {.offset = 30, .count = 10}}));
  EXPECT_EQ(o.ranges(1), (Cuts{{.offset = 20, .count = 10}, {.offset = 40, .count = 20}}));
}

TEST(Ownership, LeavesRanksEmptyWhereThereAreMoreOfThemThanChunks) {
  const Ownership o(std::vector<int64_t>{5, 0}, 9, 100, 4);

  EXPECT_EQ(o.counts(0).size(), 4u);
  int owners = 0;
  for (int r = 0; r < 4; ++r) owners += o.ranges(r).empty() ? 0 : 1;
  EXPECT_EQ(owners, 2);
}

TEST(Ownership, WithOneRankIsOneRange) {
  const Table table(5, 50);
  EXPECT_EQ(Ownership(table.chunks, table.count, 20, 1).ranges(0),
            (Cuts{{.offset = 0, .count = table.count}}));
}

TEST(Ownership, RefusesAnInvalidTable) {
  const auto make = [](std::vector<int64_t> chunks, int64_t count, int64_t bucket, int ranks) {
    return [=] { Ownership(chunks, count, bucket, ranks); };
  };
  expect_error<InvalidArgument>(make({0}, 5, 1, 0), {"0 ranks"});
  expect_error<InvalidArgument>(make({0}, 5, 0, 1), {"buckets of 0"});
  for (const auto& [chunks, count] : std::vector<std::pair<std::vector<int64_t>, int64_t>>{
           {{}, 0}, {{}, 5}, {{1}, 5}, {{0, 0}, 5}, {{0, 5}, 5}})
    expect_error<InvalidArgument>(make(chunks, count, 1, 1), {"expected distinct ones"});
}

}  // namespace
}  // namespace fathom::dist
