#include "core/score/chrf.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "tests/core/score/expected_cases.h"

namespace fathom::score {
namespace {

using nlohmann::json;
using test::ExpectedCase;
using test::message_of;
using ::testing::HasSubstr;
using Streams = std::vector<std::vector<std::string>>;

double chrf2(const std::string& hypothesis, const Streams& references) {
  return corpus_chrf({&hypothesis, 1}, references).score;
}

TEST(Chrf, EqualsSacreBleuOnEveryCase) {
  int checked = 0;
  for (const ExpectedCase& c : test::expected_cases()) {
    for (const json& row : c.expected["scores"]) {
      if (row["metric"] == "BLEU") continue;
      SCOPED_TRACE(c.name + " " + row["signature"].dump());
      ChrfOptions options = row["metric"] == "chrF2" ? kChrf2 : kChrf2PlusPlus;
      options.lowercase = row["lowercase"];

      const ChrfScore score = corpus_chrf(c.hypotheses, c.references, options);

      EXPECT_DOUBLE_EQ(score.score, row["score"].get<double>());
      EXPECT_EQ(to_line(score, options), row["printed"].get<std::string>());
      EXPECT_EQ(signature(score, options), test::with_our_version(row["signature"]));
      ++checked;
    }
  }
  EXPECT_EQ(checked, 40);
}

TEST(Chrf, LeavesOutOrdersThatTheReferenceIsTooShortFor) {
  // Order 1: P = 2/8, R = 1; order 2: P = 1/7, R = 1; above 2 the reference has nothing.
  const double precision = (2.0 / 8 + 1.0 / 7) / 2;

  EXPECT_DOUBLE_EQ(chrf2("abcdefgh", {{"ab"}}), 100 * 5 * precision / (4 * precision + 1));
}

TEST(Chrf, TakesTheBestReferenceOfEachLine) {
  const double alone = chrf2("abc def", {{"abc deg"}});

  EXPECT_LT(alone, 100);
  EXPECT_DOUBLE_EQ(chrf2("abc def", {{"abc deg"}, {"abc def"}}), 100);
  EXPECT_DOUBLE_EQ(chrf2("abc def", {{"abc deg"}, {"xyz"}}), alone);
}

// Figures of sacreBLEU 2.6.0.
TEST(Chrf, TakesAnEmptyReferenceLineForAReferenceOfNoWords) {
  const auto corpus = [](const std::vector<std::string>& hypotheses, const Streams& references) {
    return corpus_chrf(hypotheses, references).score;
  };
  EXPECT_NEAR(corpus({"a b c d e", "x"}, {{"a b c d e", ""}, {"a b c d f", "y z w v"}}), 100, 1e-9);
  EXPECT_NEAR(corpus({"a b c d e", "f g h i j"}, {{"a b c d e", ""}}), 100, 1e-9);
  EXPECT_NEAR(corpus({"a b c d e", ""}, {{"a b c d e", ""}}), 100, 1e-9);
}

TEST(Chrf, OfNothingInCommonIsZero) {
  EXPECT_EQ(chrf2("xxxx", {{"yyyy"}}), 0);
  EXPECT_EQ(chrf2("", {{"yyyy"}}), 0);
}

TEST(Chrf, CountsCodePointsNotBytes) {
  // One of two characters is right, no bigram: order 1 gives P = R = 1/2, order 2 gives 0.
  EXPECT_DOUBLE_EQ(chrf2("\u00E4\U0001F600", {{"\u00E4\U0001F601"}}), 25);
}

TEST(Chrf, RefusesStreamsOfDifferentLengthAndImpossibleOrders) {
  const std::vector<std::string> hypotheses{"a", "b"};
  const Streams references{{"a"}};

  EXPECT_THAT(message_of<DataError>([&] { (void)corpus_chrf(hypotheses, references); }),
              HasSubstr("chrf: the hypothesis has 2 lines, but reference 1 has 1"));
  EXPECT_THAT(message_of<InvalidArgument>(
                  [&] { (void)corpus_chrf(hypotheses, references, {.char_order = 0}); }),
              HasSubstr("got char_order 0, word_order 0, beta 2, expected at least 1, 0 and 1"));
}

}  // namespace
}  // namespace fathom::score
