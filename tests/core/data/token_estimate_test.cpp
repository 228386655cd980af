#include "core/data/token_estimate.h"

#include <gtest/gtest.h>

#include "core/data/prepare.h"
#include "tests/core/data/data_support.h"

namespace fathom::data {
namespace {

TEST(TokenEstimate, HasATokenForEveryWord) {
  EXPECT_EQ(estimated_tokens("a b c", 100), 3);
  EXPECT_EQ(estimated_tokens("  a \t b ", 100), 2);
  EXPECT_EQ(estimated_tokens("", 3), 0);
  EXPECT_EQ(estimated_tokens("  ", 3), 0);
}

TEST(TokenEstimate, CountsLettersAndTheSpaceBeforeAWord) {
  EXPECT_DOUBLE_EQ(estimated_tokens("abcdefg hijk", 2), (11 + 2) / 2.0);
  EXPECT_DOUBLE_EQ(estimated_tokens("sch\u00F6ner", 1), 7 + 1);  // letters, not bytes
}

TEST(TokenEstimate, CountsScriptsWithoutSpacesByLetter) {
  EXPECT_NEAR(estimated_tokens("\u4ECA\u5929\u5929\u6C14\u5F88\u597D", 4), 6 * 2 / 3.0, 1.01);
}

TEST(TokenEstimate, LargerVocabulariesHaveLongerTokens) {
  double before = 0;
  for (const int64_t size : {8, 250, 500, 1000, 4000, 8000, 16000, 32000}) {
    EXPECT_GE(letters_per_token(size), before) << size;
    before = letters_per_token(size);
  }
  EXPECT_EQ(letters_per_token(1'000'000), before);
}

// German and English of the bundled corpus, what a BPE tokenizer of this size makes of them.
TEST(TokenEstimate, IsWithinAFifthOfWhatIsLearned) {
  constexpr int kLines = 3000;
  const Text source = read_text(FATHOM_CORPUS "/train.de"),
             target = read_text(FATHOM_CORPUS "/train.en");
  std::vector<std::string> german, english;
  for (int i = 0; i < kLines; ++i) {
    german.emplace_back(source.line(i));
    english.emplace_back(target.line(i));
  }
  for (const int64_t size : {1000, 4000}) {
    const Tokenizer tokenizer = Tokenizer::train(german, english, TokenizerKind::kBpe, size);
    for (const auto* lines : {&german, &english}) {
      double tokens = 0, estimated = 0;
      for (const std::string& line : *lines) {
        tokens += double(tokenizer.encode(line).size());
        estimated += estimated_tokens(line, letters_per_token(size));
      }
      EXPECT_NEAR(estimated / tokens, 1, 0.2) << size;
    }
  }
}

}  // namespace
}  // namespace fathom::data
