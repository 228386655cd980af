#include "core/score/bleu.h"

#include <array>
#include <cstdint>
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
using test::expected_cases;
using test::ExpectedCase;
using test::message_of;
using ::testing::HasSubstr;
using Streams = std::vector<std::vector<std::string>>;

BleuOptions options_of(const json& expected) {
  BleuOptions options;
  options.tokenizer = parse_bleu_tokenizer(expected["tokenize"].get<std::string>());
  options.smoothing = parse_bleu_smoothing(expected.value("smooth", "exp"));
  options.lowercase = expected["lowercase"].get<bool>();
  return options;
}

TEST(Bleu, EqualsSacreBleuOnEveryCase) {
  int checked = 0;
  for (const ExpectedCase& c : expected_cases()) {
    ASSERT_EQ(c.hypotheses.size(), c.expected["lines"].get<size_t>()) << c.name;
    for (const json& row : c.expected["scores"]) {
      if (row["metric"] != "BLEU") continue;
      SCOPED_TRACE(c.name + " " + row["signature"].dump());
      const BleuOptions options = options_of(row);

      const BleuScore score = corpus_bleu(c.hypotheses, c.references, options);

      EXPECT_DOUBLE_EQ(score.score, row["score"].get<double>());
      EXPECT_EQ(to_line(score), row["printed"].get<std::string>());
      EXPECT_EQ(signature(score, options), test::with_our_version(row["signature"]));
      if (row.contains("counts")) {
        EXPECT_EQ(json(score.counts), row["counts"]);
        EXPECT_EQ(json(score.totals), row["totals"]);
        EXPECT_EQ(score.hypothesis_length, row["sys_len"].get<int64_t>());
        EXPECT_EQ(score.reference_length, row["ref_len"].get<int64_t>());
        EXPECT_DOUBLE_EQ(score.brevity_penalty, row["bp"].get<double>());
        for (size_t n = 0; n < 4; ++n)
          EXPECT_DOUBLE_EQ(score.precisions[n], row["precisions"][n].get<double>());
      }
      ++checked;
    }
  }
  EXPECT_EQ(checked, 110);
}

TEST(SentenceBleu, EqualsSacreBleuOnEveryCase) {
  int checked = 0;
  for (const ExpectedCase& c : expected_cases()) {
    const json& scores = c.expected["sentence_bleu_first20"];
    for (size_t i = 0; i < scores.size(); ++i) {
      std::vector<std::string> references;
      for (const auto& stream : c.references) references.push_back(stream[i]);

      const BleuScore score = sentence_bleu(c.hypotheses[i], references);

      EXPECT_NEAR(score.score, scores[i].get<double>(), 5.1e-7)  // six decimals are kept
          << c.name << " line " << i + 1;
      ++checked;
    }
  }
  EXPECT_GT(checked, 150);
}

// Figures of sacreBLEU 2.6.0, of its interface in Python and on the command line.
TEST(Bleu, TakesAnEmptyReferenceLineForAReferenceOfNoWords) {
  const std::vector<std::string> two{"a b c d e", "x"};
  const Streams beside_others{{"a b c d e", ""}, {"a b c d f", "y z w v"}};
  const BleuScore score = corpus_bleu(two, beside_others);
  EXPECT_NEAR(score.score, 95.54, 0.005);
  EXPECT_EQ(score.reference_length, 5) << "0 is closer to 1 than 4 is";
  EXPECT_EQ(signature(score),
            "nrefs:2|case:mixed|eff:no|tok:13a|smooth:exp|version:fathom-" FATHOM_SCORE_VERSION);

  const BleuScore half =
      corpus_bleu(std::vector<std::string>{"a b c d e", "f g h i j"}, Streams{{"a b c d e", ""}});
  EXPECT_NEAR(half.score, 50, 1e-9);
  EXPECT_EQ(half.hypothesis_length, 10);
  EXPECT_EQ(half.reference_length, 5);

  EXPECT_NEAR(
      corpus_bleu(std::vector<std::string>{"a b c d e", ""}, Streams{{"a b c d e", ""}}).score, 100,
      1e-9);
  EXPECT_EQ(corpus_bleu(std::vector<std::string>{"a b"}, Streams{{""}}).score, 0);
}

TEST(Bleu, TakesTheShorterOfTwoEquallyCloseReferences) {
  const std::vector<std::string> hypotheses{"a b c"};
  const Streams references{{"a b c d"}, {"a b"}};

  EXPECT_EQ(corpus_bleu(hypotheses, references).reference_length, 2);
}

TEST(Bleu, FloorCountsATenthOfAMatch) {
  const std::vector<std::string> hypotheses{"a b c d"};
  const Streams references{{"a x y z"}};

  const BleuScore score = corpus_bleu(hypotheses, references, {.smoothing = BleuSmoothing::kFloor});

  const std::array<double, 4> expected{100.0 / 4, 10.0 / 3, 10.0 / 2, 10.0 / 1};
  for (size_t n = 0; n < 4; ++n) EXPECT_DOUBLE_EQ(score.precisions[n], expected[n]);
  EXPECT_EQ(score.counts, (std::array<int64_t, 4>{1, 0, 0, 0}));
}

TEST(Bleu, IgnoresSpaceAtTheEndBeforeItTokenizes) {
  // With the space the intl rule would split the period from the year.
  const std::vector<std::string> hypotheses{"in 1990. \r"};
  const Streams references{{"in 1990."}};

  const BleuScore score = corpus_bleu(hypotheses, references, {.tokenizer = BleuTokenizer::kIntl});

  EXPECT_EQ(score.hypothesis_length, 2);
  EXPECT_EQ(score.counts[0], 2);
}

TEST(Bleu, SeparatesAtEveryUnicodeSpaceAndDropsACarriageReturnAtTheEnd) {
  const std::vector<std::string> hypotheses{"a\rb\u3000c\u2028d\r"};
  const Streams references{{"a b c d"}};

  const BleuScore score = corpus_bleu(hypotheses, references, {.tokenizer = BleuTokenizer::kNone});

  EXPECT_EQ(score.counts, (std::array<int64_t, 4>{4, 3, 2, 1}));
  EXPECT_EQ(score.totals, score.counts);
}

TEST(Bleu, LowerCasesBeyondAscii) {
  const std::vector<std::string> hypotheses{"\u00C4RGER \u03A3\u0391\u03A3 \u0416 \u0130"};
  const Streams references{{"\u00E4rger \u03C3\u03B1\u03C2 \u0436 i\u0307"}};

  const BleuScore score = corpus_bleu(hypotheses, references, {.lowercase = true});

  EXPECT_EQ(score.counts[0], 4);
}

TEST(Bleu, ScoresIllFormedUtf8AsReplacementCharacters) {
  const std::vector<std::string> hypotheses{"caf\xC3 b c d"};
  const Streams references{{"caf\uFFFD b c d"}};

  EXPECT_EQ(corpus_bleu(hypotheses, references).counts[0], 4);
}

TEST(Bleu, RefusesStreamsOfDifferentLengthWithBothCounts) {
  const std::vector<std::string> hypotheses{"a", "b"};
  const Streams references{{"a", "b"}, {"a", "b", "c"}};

  const auto message = message_of<DataError>([&] { (void)corpus_bleu(hypotheses, references); });

  EXPECT_THAT(message, HasSubstr("the hypothesis has 2 lines, but reference 2 has 3"));
}

TEST(Bleu, RefusesNothing) {
  const Streams none, empty{{}};

  EXPECT_THAT(message_of<InvalidArgument>([&] { (void)corpus_bleu({}, none); }),
              HasSubstr("got no reference"));
  EXPECT_THAT(message_of<DataError>([&] { (void)corpus_bleu({}, empty); }),
              HasSubstr("got 0 lines"));
}

TEST(Bleu, NamesWhatIsAllowedForAWrongName) {
  EXPECT_THAT(message_of<InvalidArgument>([] { (void)parse_bleu_tokenizer("14a"); }),
              HasSubstr("tokenizer '14a', expected 13a, intl, char or none"));
  EXPECT_THAT(message_of<InvalidArgument>([] { (void)parse_bleu_smoothing("add"); }),
              HasSubstr("smoothing 'add', expected exp, floor, add-k or none"));
}

}  // namespace
}  // namespace fathom::score
