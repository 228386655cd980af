// Translations and their scores are the same on any number of ranks.
#include "launcher/translation_score.h"

#include <optional>
#include <set>

#include <gtest/gtest.h>

#include "tests/core/decode/decode_support.h"
#include "tests/dist/rank_threads.h"
#include "tests/support/expect_error.h"

namespace fathom::launcher {
namespace {

constexpr int64_t kVocabulary = 20;

data::Tokenizer small_tokenizer() {
  std::vector<std::string> lines;
  for (const char* word : {"abab", "cdcd", "efef", "abcd", "cdef", "efab"})
    for (const char* other : {"fade", "deaf", "cafe", "face"})
      lines.push_back(std::string(word) + " " + other);
  return data::Tokenizer::train(lines, lines, data::TokenizerKind::kBpe, kVocabulary);
}

class TranslationScore : public ::testing::Test {
 protected:
  TranslationScore() {
    std::vector<data::TokenPair> pairs;
    for (decode::Tokens& source : decode::random_sources(13, int32_t(kVocabulary), 6, 2)) {
      pairs.push_back({.source = std::move(source), .target = {2}});
      references_.push_back("abcd cafe " + std::to_string(pairs.size()));
    }
    pairs[5].source.clear();
    data_.emplace(data::Dataset::from_pairs(pairs, false));
  }

  // One result for each rank; every rank has a model and a device of its own.
  std::vector<SplitScore> run(int ranks) {
    std::vector<SplitScore> scores(static_cast<size_t>(ranks));
    dist::run_ranks(ranks, [&](dist::Communicator& group) {
      const auto model = decode::random_model(DType::kF32, kVocabulary);
      const auto device = tensor::make_cpu_device(1);
      scores[size_t(group.rank())] = score_split(model->transformer, *device, *data_, references_,
                                                 tokenizer_, /*batch_tokens=*/12, group);
    });
    return scores;
  }

  data::Tokenizer tokenizer_ = small_tokenizer();
  std::vector<std::string> references_;
  std::optional<data::Dataset> data_;
};

TEST_F(TranslationScore, IsTheSameOnEveryRankOfAnyNumber) {
  const SplitScore expected = run(1)[0];
  ASSERT_EQ(expected.translations.size(), 13u);
  EXPECT_EQ(expected.translations[5], "");
  EXPECT_GT(std::set(expected.translations.begin(), expected.translations.end()).size(), 5u);

  for (const int ranks : {2, 3})
    for (const SplitScore& score : run(ranks)) {
      EXPECT_EQ(score.translations, expected.translations) << ranks;
      EXPECT_EQ(score.line, expected.line);
      EXPECT_EQ(score.bleu, expected.bleu);
      EXPECT_EQ(score.chrf, expected.chrf);
      EXPECT_EQ(score.chrf_plus_plus, expected.chrf_plus_plus);
    }
}

TEST_F(TranslationScore, CountsEveryLineAlsoWhereItsReferenceIsEmpty) {
  const auto hypothesis_length = [](const SplitScore& score) {
    return score.line.substr(score.line.find("hyp_len"),
                             score.line.find(" ref_len") - score.line.find("hyp_len"));
  };
  const SplitScore all = run(1)[0];
  references_[2].clear();
  references_[7].clear();

  const SplitScore some = run(1)[0];

  EXPECT_EQ(some.translations, all.translations);
  EXPECT_EQ(hypothesis_length(some), hypothesis_length(all));
  EXPECT_NE(some.line, all.line);
}

}  // namespace
}  // namespace fathom::launcher
