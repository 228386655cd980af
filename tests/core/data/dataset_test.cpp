#include "core/data/dataset.h"

#include <cmath>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/data/mapped_file.h"
#include "tests/core/data/data_support.h"

namespace fathom::data {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;
using testing::TemporaryDirectory;

const std::vector<TokenPair> kPairs{{{5, 6, 7}, {8}}, {{}, {}}, {{9}, {10, 11}}};

std::vector<int32_t> values(std::span<const int32_t> tokens) {
  return {tokens.begin(), tokens.end()};
}

TEST(Dataset, GivesBackItsPairsFromMemoryAndFromAFile) {
  const TemporaryDirectory dir;
  const Dataset made = Dataset::from_pairs(kPairs, false);
  const Dataset opened = Dataset::open(dir.write("x.bin", made.image()));

  for (const Dataset* set : {&made, &opened}) {
    ASSERT_EQ(set->size(), 3);
    for (int64_t i = 0; i < 3; ++i) {
      EXPECT_EQ(values(set->source(i)), kPairs[size_t(i)].source);
      EXPECT_EQ(values(set->target(i)), kPairs[size_t(i)].target);
    }
    EXPECT_EQ(set->source_length(0), 3);
    EXPECT_EQ(set->target_length(2), 2);
    EXPECT_EQ(set->source_tokens(), 4);
    EXPECT_EQ(set->target_tokens(), 3);
    EXPECT_FALSE(set->decoder_only());
    EXPECT_THAT(set->lengths().source, ElementsAre(4, 1, 2));
    EXPECT_THAT(set->lengths().target, ElementsAre(2, 1, 3));
  }
  EXPECT_EQ(made.hash(), opened.hash());
  EXPECT_EQ(made.hash().size(), 32u);
}

TEST(Dataset, OutlivesItsFileAndItsMaker) {
  const TemporaryDirectory dir;
  const std::string path = dir.write("x.bin", Dataset::from_pairs(kPairs, false).image());

  const Dataset opened = [&] {
    Dataset first = Dataset::open(path);
    return Dataset(first);
  }();
  std::filesystem::remove(path);

  EXPECT_THAT(values(opened.target(2)), ElementsAre(10, 11));
}

TEST(Dataset, HashDiffersForDifferentData) {
  const std::string hash = Dataset::from_pairs(kPairs, false).hash();
  std::vector<TokenPair> other = kPairs;
  other[0].source[1] = 60;
  std::vector<TokenPair> moved = kPairs;  // the same tokens, cut elsewhere
  moved[0].source = {5, 6};
  moved[1].source = {7};

  EXPECT_NE(Dataset::from_pairs(other, false).hash(), hash);
  EXPECT_NE(Dataset::from_pairs(moved, false).hash(), hash);
  EXPECT_EQ(Dataset::from_pairs(kPairs, false).hash(), hash);
}

TEST(Dataset, DecoderOnlyHasNoSource) {
  const std::vector<TokenPair> pairs{{{}, {4, 5}}, {{}, {6}}};
  const Dataset set = Dataset::from_pairs(pairs, true);

  EXPECT_TRUE(set.decoder_only());
  EXPECT_THAT(set.lengths().source, ElementsAre(0, 0));
  EXPECT_THAT(set.lengths().target, ElementsAre(3, 2));
  EXPECT_EQ(set.lengths().cost(0), 3);
  EXPECT_THAT(error_of<InvalidArgument>([] { (void)Dataset::from_pairs(kPairs, true); }),
              HasSubstr("4 source tokens"));
}

TEST(Dataset, RefusesAnyFlippedBit) {
  const TemporaryDirectory dir;
  const std::string image(Dataset::from_pairs(kPairs, false).image());

  for (size_t i = 0; i < image.size(); ++i) {
    std::string damaged = image;
    damaged[i] = char(damaged[i] ^ (1 << (i % 8)));
    const std::string path = dir.write("x.bin", damaged);
    EXPECT_THAT(error_of<DataError>([&] { (void)Dataset::open(path); }),
                AllOf(HasSubstr(path), HasSubstr("delete it and run `fathom prepare`")))
        << "byte " << i;
  }
}

TEST(MappedFile, IsFoundByItsPagesWhileItIsMapped) {
  const TemporaryDirectory dir;
  const std::string path = dir.write("x.bin", std::string(10'000, 'x'));
  auto first = map_file(path);
  const char* last = &first->back();

  EXPECT_EQ(mapped_file_at(first->data()), path);
  EXPECT_EQ(mapped_file_at(last), path);
  EXPECT_EQ(mapped_file_at(last + 1), nullptr);
  EXPECT_EQ(mapped_file_at(&first), nullptr);
  {
    const std::string other = dir.write("y.bin", "y");
    const auto second = map_file(other);
    EXPECT_EQ(mapped_file_at(second->data()), other);
  }
  first.reset();
  EXPECT_EQ(mapped_file_at(last), nullptr);
}

TEST(Dataset, RefusesAFileOfAnyOtherLength) {
  const TemporaryDirectory dir;
  const std::string image(Dataset::from_pairs(kPairs, false).image());

  for (size_t size = 0; size < image.size(); ++size) {
    const std::string path = dir.write("x.bin", image.substr(0, size));
    EXPECT_THAT(error_of<DataError>([&] { (void)Dataset::open(path); }), HasSubstr("bytes"));
  }
  const std::string longer = dir.write("x.bin", image + "x");
  EXPECT_THAT(error_of<DataError>([&] { (void)Dataset::open(longer); }),
              HasSubstr("its header says " + std::to_string(image.size())));
}

TEST(Dataset, NamesAnotherFormat) {
  const TemporaryDirectory dir;
  std::string image(Dataset::from_pairs(kPairs, false).image());
  image[8] = 9;
  const std::string newer = dir.write("newer.bin", image);
  const std::string foreign = dir.write("foreign.bin", std::string(200, 'x'));

  EXPECT_THAT(error_of<DataError>([&] { (void)Dataset::open(newer); }),
              HasSubstr("format version 9, this program reads 1"));
  EXPECT_THAT(error_of<DataError>([&] { (void)Dataset::open(foreign); }),
              HasSubstr("is not a data set of Fathom"));
  EXPECT_THAT(error_of<IoError>([&] { (void)Dataset::open(dir / "none.bin"); }),
              HasSubstr("No such file"));
}

TEST(Dataset, RefusesAPairThatIsNotThere) {
  const Dataset set = Dataset::from_pairs(kPairs, false);

  EXPECT_THAT(error_of<InvalidArgument>([&] { (void)set.source(3); }), HasSubstr("pair 3 of 3"));
  EXPECT_THAT(error_of<InvalidArgument>([&] { (void)set.target(-1); }), HasSubstr("pair -1 of 3"));
}

TEST(UnigramEntropy, CountsEosAndIsInNats) {
  // Targets 2 2 EOS, 3 EOS, EOS: twice 2, once 3, three times EOS.
  const std::vector<TokenPair> pairs{{{9}, {2, 2}}, {{9}, {3}}, {{9}, {}}};
  const double expected =
      -(2 / 6.0 * std::log(2 / 6.0) + 1 / 6.0 * std::log(1 / 6.0) + 3 / 6.0 * std::log(3 / 6.0));

  EXPECT_NEAR(unigram_entropy(Dataset::from_pairs(pairs, false)), expected, 1e-15);
}

}  // namespace
}  // namespace fathom::data
