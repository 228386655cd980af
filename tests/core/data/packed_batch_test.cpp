#include "core/data/packed_batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/core/data/data_support.h"

namespace fathom::data {
namespace {

using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::vector<TokenPair> kPairs{{{5, 6, 7}, {8}}, {{}, {}}, {{9}, {10, 11}}};
const std::vector<int64_t> kChosen{2, 0, 1};

TEST(PackedBatch, HoldsTheTokensWithEosAndNoPadding) {
  const PackedBatch batch = pack(Dataset::from_pairs(kPairs, false), kChosen);

  EXPECT_EQ(batch.sentences(), 3);
  EXPECT_THAT(batch.sentence_id, ElementsAre(2, 0, 1));
  EXPECT_THAT(batch.source, ElementsAre(9, 1, 5, 6, 7, 1, 1));
  EXPECT_THAT(batch.source_position, ElementsAre(0, 1, 0, 1, 2, 3, 0));
  EXPECT_THAT(batch.source_sentence, ElementsAre(2, 2, 0, 0, 0, 0, 1));
  EXPECT_THAT(batch.decoder_input, ElementsAre(1, 10, 11, 1, 8, 1));
  EXPECT_THAT(batch.target, ElementsAre(10, 11, 1, 8, 1, 1));
  EXPECT_THAT(batch.target_position, ElementsAre(0, 1, 2, 0, 1, 0));
  EXPECT_THAT(batch.target_sentence, ElementsAre(2, 2, 2, 0, 0, 1));
  EXPECT_THAT(batch.source_segments.begin, ElementsAre(0, 2, 6));
  EXPECT_THAT(batch.source_segments.length, ElementsAre(2, 4, 1));
  EXPECT_EQ(batch.source_segments.total, 7);
  EXPECT_THAT(batch.target_segments.begin, ElementsAre(0, 3, 5));
  EXPECT_THAT(batch.target_segments.length, ElementsAre(3, 2, 1));
  EXPECT_EQ(batch.target_segments.total, 6);
}

TEST(PackedBatch, ExchangesSourcesAndNothingElse) {
  const Dataset set = Dataset::from_pairs(kPairs, false);
  const std::vector<int64_t> sources{0, 1, 2};
  const PackedBatch plain = pack(set, kChosen), exchanged = pack(set, kChosen, sources);

  EXPECT_THAT(exchanged.source, ElementsAre(5, 6, 7, 1, 1, 9, 1));
  EXPECT_THAT(exchanged.source_segments.length, ElementsAre(4, 1, 2));
  EXPECT_EQ(exchanged.target, plain.target);
  EXPECT_EQ(exchanged.decoder_input, plain.decoder_input);
  EXPECT_EQ(exchanged.sentence_id, plain.sentence_id);
}

TEST(PackedBatch, DecoderOnlyHasNoSourceRows) {
  const std::vector<TokenPair> pairs{{{}, {4, 5}}, {{}, {6}}};
  const std::vector<int64_t> both{0, 1};
  const Dataset set = Dataset::from_pairs(pairs, true);

  const PackedBatch batch = pack(set, both);

  EXPECT_THAT(batch.source, IsEmpty());
  EXPECT_EQ(batch.source_segments.count(), 0);
  EXPECT_THAT(batch.decoder_input, ElementsAre(1, 4, 5, 1, 6));
  EXPECT_THAT(batch.target, ElementsAre(4, 5, 1, 6, 1));
  EXPECT_THAT(error_of<InvalidArgument>([&] { (void)pack(set, both, both); }),
              HasSubstr("decoder-only and has none"));
}

TEST(PackedBatch, OfNoPairsIsEmpty) {
  const PackedBatch batch = pack(Dataset::from_pairs(kPairs, false), {});

  EXPECT_EQ(batch.sentences(), 0);
  EXPECT_EQ(batch.source_segments.total, 0);
  EXPECT_THAT(batch.target, IsEmpty());
}

TEST(PackedBatch, RefusesWhatDoesNotFit) {
  const Dataset set = Dataset::from_pairs(kPairs, false);
  const std::vector<int64_t> two{0, 1}, beyond{3};

  EXPECT_THAT(error_of<InvalidArgument>([&] { (void)pack(set, kChosen, two); }),
              HasSubstr("2 sources for 3 pairs"));
  EXPECT_THAT(error_of<InvalidArgument>([&] { (void)pack(set, beyond); }),
              HasSubstr("pair 3 of 3"));
}

TEST(Segments, FollowEachOtherWithoutGaps) {
  const std::vector<int32_t> lengths{3, 0, 2};
  const Segments segments = Segments::from_lengths(lengths);

  EXPECT_THAT(segments.begin, ElementsAre(0, 3, 3));
  EXPECT_THAT(segments.length, ElementsAre(3, 0, 2));
  EXPECT_EQ(segments.total, 5);
  EXPECT_EQ(segments.count(), 3);
  EXPECT_EQ(segments.longest(), 3);
  EXPECT_EQ(Segments{}.longest(), 0);
}

}  // namespace
}  // namespace fathom::data
