#include "core/model/device_batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/core/model/model_support.h"
#include "tests/support/expect_error.h"

namespace fathom::model {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

const std::vector<data::TokenPair> kPairs = {{{5, 6, 7}, {8}}, {{}, {}}, {{9}, {10, 11}}};

data::PackedBatch packed(const std::vector<data::TokenPair>& pairs, bool decoder_only = false) {
  const std::vector<int64_t> chosen = {2, 0, 1};
  return data::pack(data::Dataset::from_pairs(pairs, decoder_only), chosen);
}

std::span<const int32_t> numbers(const Tensor& t) { return {t.data<int32_t>(), size_t(t.numel())}; }

void expect_rows(const PackedRows& rows, const std::vector<int32_t>& tokens,
                 const std::vector<int32_t>& position, const data::Segments& segments) {
  EXPECT_THAT(numbers(rows.tokens), ElementsAreArray(tokens));
  EXPECT_THAT(numbers(rows.position), ElementsAreArray(position));
  const kernels::Segments seen = rows.segments();
  EXPECT_THAT(std::span(seen.begin, size_t(seen.count)), ElementsAreArray(segments.begin));
  EXPECT_THAT(std::span(seen.length, size_t(seen.count)), ElementsAreArray(segments.length));
  EXPECT_EQ(seen.total, segments.total);
  EXPECT_EQ(seen.longest, segments.longest());
}

TEST(DeviceBatch, HoldsWhatWasPacked) {
  for (const auto& device : support::host_devices()) {
    Tape tape(*device, DType::kF32, {});
    const data::PackedBatch batch = packed(kPairs);

    const DeviceBatch got = upload(tape, batch, 12);

    expect_rows(got.source, batch.source, batch.source_position, batch.source_segments);
    expect_rows(got.target, batch.decoder_input, batch.target_position, batch.target_segments);
    EXPECT_THAT(numbers(got.targets), ElementsAreArray(batch.target));
  }
}

TEST(DeviceBatch, ShowsItsRowsToDropout) {
  const auto device = tensor::make_reference_device();
  Tape tape(*device, DType::kF32, {});
  const DeviceBatch batch = upload(tape, packed(kPairs), 12);
  const auto position = [](const PackedRows& rows) {
    return std::span(rows.ids().position, size_t(rows.tokens.numel()));
  };
  const auto sentence = [](const PackedRows& rows) {
    return std::span(rows.ids().sentence, size_t(rows.tokens.numel()));
  };

  EXPECT_THAT(position(batch.source), ElementsAre(0, 1, 0, 1, 2, 3, 0));
  EXPECT_THAT(sentence(batch.source), ElementsAre(2, 2, 0, 0, 0, 0, 1));
  EXPECT_THAT(position(batch.target), ElementsAre(0, 1, 2, 0, 1, 0));
  EXPECT_THAT(sentence(batch.target), ElementsAre(2, 2, 2, 0, 0, 1));
}

TEST(DeviceBatch, OfADecoderHasNoSource) {
  const auto device = tensor::make_reference_device();
  Tape tape(*device, DType::kF32, {});
  std::vector<data::TokenPair> pairs = kPairs;
  for (data::TokenPair& p : pairs) p.source.clear();

  const DeviceBatch batch = upload(tape, packed(pairs, true), 12);

  EXPECT_TRUE(batch.source.tokens.is_empty());
  EXPECT_EQ(batch.source.segments().count, 0);
  EXPECT_THAT(numbers(batch.targets), ElementsAre(10, 11, 1, 8, 1, 1));
}

TEST(DeviceBatch, OfOneSideHasNoSentences) {
  const auto device = tensor::make_reference_device();
  Tape tape(*device, DType::kF32, {});
  const data::PackedBatch batch = packed(kPairs);

  const PackedRows rows =
      upload_rows(tape, batch.source, batch.source_position, batch.source_segments, 12);

  expect_rows(rows, batch.source, batch.source_position, batch.source_segments);
  EXPECT_EQ(rows.ids().sentence, nullptr);
}

TEST(DeviceBatch, RefusesTokensOutsideTheVocabulary) {
  const auto device = tensor::make_reference_device();
  Tape tape(*device, DType::kF32, {});
  const auto refuses = [&](const std::string& part, const auto& change) {
    data::PackedBatch batch = packed(kPairs);
    change(batch);
    return support::throws_with<InvalidArgument>(part, [&] { (void)upload(tape, batch, 12); });
  };

  EXPECT_TRUE(refuses("batch: token 12 is outside the vocabulary of 12",
                      [](data::PackedBatch& b) { b.source[1] = 12; }));
  EXPECT_TRUE(refuses("batch: token 13 is outside the vocabulary of 12",
                      [](data::PackedBatch& b) { b.decoder_input[0] = 13; }));
  EXPECT_TRUE(refuses("batch: token 12 is outside the vocabulary of 12",
                      [](data::PackedBatch& b) { b.target.back() = 12; }));
  EXPECT_TRUE(refuses("batch: token -1 is outside the vocabulary of 12",
                      [](data::PackedBatch& b) { b.target[2] = -1; }));
  EXPECT_TRUE(
      support::throws_with<InvalidArgument>("batch: token 3 is outside the vocabulary of 3", [&] {
        (void)upload_rows(tape, std::vector<int32_t>{3}, std::vector<int32_t>{0},
                          data::Segments::from_lengths(std::vector<int32_t>{1}), 3);
      }));
  EXPECT_NO_THROW((void)upload(tape, packed(kPairs), 12));
}

}  // namespace
}  // namespace fathom::model
