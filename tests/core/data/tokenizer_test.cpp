#include "core/data/tokenizer.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/core/data/data_support.h"

namespace fathom::data {
namespace {

using ::testing::AllOf;
using testing::error_of;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::sentence;
using testing::TemporaryDirectory;

std::vector<std::string> side(bool german) {
  std::vector<std::string> out;
  for (int i = 0; i < 400; ++i) out.push_back(sentence(i, german));
  return out;
}

Tokenizer trained(TokenizerKind kind = TokenizerKind::kBpe, int64_t size = 80) {
  return Tokenizer::train(side(true), side(false), kind, size);
}

class EveryKind : public ::testing::TestWithParam<TokenizerKind> {};

TEST_P(EveryKind, LearnsTheSameBytesTwice) {
  EXPECT_EQ(trained(GetParam()).bytes(), trained(GetParam()).bytes());
}

TEST_P(EveryKind, ReturnsTheSameText) {
  const Tokenizer tokenizer = trained(GetParam());

  EXPECT_EQ(tokenizer.size(), 80);
  for (const bool german : {true, false})
    for (const std::string& text : side(german)) {
      const std::vector<int32_t> tokens = tokenizer.encode(text);
      EXPECT_EQ(tokenizer.decode(tokens), text);
      EXPECT_TRUE(std::all_of(tokens.begin(), tokens.end(),
                              [](int32_t t) { return t > kEndOfSentence && t < 80; }));
    }
}

TEST_P(EveryKind, NamesTheKeyAndTheLimitWhenTheVocabularyIsTooLarge) {
  EXPECT_THAT(error_of<DataError>([&] { (void)trained(GetParam(), 50'000); }),
              AllOf(HasSubstr("data.vocabulary_size is 50000"), HasSubstr("<= ")));
}

TEST_P(EveryKind, NamesTheKeyWhenTheVocabularyIsSmallerThanTheAlphabet) {
  EXPECT_THAT(error_of<DataError>([&] { (void)trained(GetParam(), 10); }),
              AllOf(HasSubstr("data.vocabulary_size is 10"), HasSubstr("Vocabulary size")));
}

INSTANTIATE_TEST_SUITE_P(Tokenizer, EveryKind,
                         ::testing::Values(TokenizerKind::kBpe, TokenizerKind::kUnigram),
                         [](const auto& kind) {
                           return kind.param == TokenizerKind::kBpe ? "Bpe" : "Unigram";
                         });

TEST(Tokenizer, HasUnknownAtZeroAndEosAtOneAndNothingElseSpecial) {
  const Tokenizer tokenizer = trained();

  EXPECT_EQ(tokenizer.piece(0), "<unk>");
  EXPECT_EQ(tokenizer.piece(1), "</s>");
  EXPECT_EQ(tokenizer.eos(), 1);
  EXPECT_EQ(tokenizer.unknown(), 0);
  for (int32_t t = 2; t < 80; ++t) EXPECT_NE(tokenizer.piece(t).front(), '<');
}

TEST(Tokenizer, NeverReadsASpecialTokenFromText) {
  const std::vector<int32_t> tokens = trained().encode("the dog</s>");

  EXPECT_EQ(std::count(tokens.begin(), tokens.end(), kEndOfSentence), 0);
}

TEST(Tokenizer, GivesUnknownForACharacterNeverSeenAndNothingForWhiteSpace) {
  const Tokenizer tokenizer = trained();
  const std::vector<int32_t> tokens = tokenizer.encode("the dog \u2603");

  EXPECT_EQ(std::count(tokens.begin(), tokens.end(), kUnknownToken), 1);
  EXPECT_THAT(tokenizer.encode(""), IsEmpty());
  EXPECT_THAT(tokenizer.encode(" \t\u00A0\u3000"), IsEmpty());
}

TEST(Tokenizer, LeavesEosOutOfText) {
  const Tokenizer tokenizer = trained();
  std::vector<int32_t> tokens = tokenizer.encode("the dog");
  tokens.push_back(kEndOfSentence);

  EXPECT_EQ(tokenizer.decode(tokens), "the dog");
  EXPECT_EQ(tokenizer.decode({}), "");
}

TEST(Tokenizer, RefusesATokenOutsideTheVocabulary) {
  const Tokenizer tokenizer = trained();

  for (const int32_t token : {-1, 80})
    EXPECT_THAT(error_of<InvalidArgument>([&] { (void)tokenizer.decode({{token}}); }),
                HasSubstr("is not in 0 .. 79"));
}

TEST(Tokenizer, LoadsWhatItWrote) {
  const TemporaryDirectory dir;
  const Tokenizer tokenizer = trained();

  const Tokenizer loaded = Tokenizer::load(dir.write("t.model", tokenizer.bytes()));

  EXPECT_EQ(loaded.bytes(), tokenizer.bytes());
  EXPECT_EQ(loaded.encode("die Katze singt"), tokenizer.encode("die Katze singt"));
}

TEST(Tokenizer, RefusesAFileThatIsNoModel) {
  const TemporaryDirectory dir;
  const std::string path = dir.write("t.model", "not a model");

  EXPECT_THAT(error_of<DataError>([&] { (void)Tokenizer::load(path); }),
              AllOf(HasSubstr(path), HasSubstr("not a SentencePiece model")));
  EXPECT_THAT(error_of<IoError>([&] { (void)Tokenizer::load(dir / "none"); }),
              AllOf(HasSubstr(dir / "none"), HasSubstr("No such file")));
}

// Words beyond 32,768 characters made SentencePiece overrun an array, and U+FDFA is normalised to
// 18 characters.
TEST_P(EveryKind, LearnsAroundWordsThatSentencePieceCannotHold) {
  const std::string unspaced(100'000, 'a');
  std::string expanding;
  for (int i = 0; i < 5'000; ++i) expanding += "\xEF\xB7\xBA";
  std::vector<std::string> german = side(true);
  german.insert(german.begin(), {unspaced, "x " + expanding + " y", "\x01\x02", "\t"});
  const Tokenizer tokenizer = Tokenizer::train(german, side(false), GetParam(), 80);
  EXPECT_EQ(tokenizer.bytes(), trained(GetParam()).bytes());
  EXPECT_FALSE(tokenizer.encode(unspaced).empty());
}

TEST_P(EveryKind, RefusesTextWithoutVisibleCharacters) {
  const std::vector<std::string> controls(5, "\x01\x02 \x7F");
  EXPECT_THAT(
      error_of<DataError>([&] { (void)Tokenizer::train(controls, controls, GetParam(), 8); }),
      HasSubstr("none of 10 sentences can be learnt from"));
}

TEST(Tokenizer, RefusesNothingToLearnFrom) {
  EXPECT_THAT(error_of<DataError>([] { (void)Tokenizer::train({}, {}, TokenizerKind::kBpe, 100); }),
              HasSubstr("no sentence"));
  EXPECT_THAT(error_of<InvalidArgument>([] { (void)trained(TokenizerKind::kBpe, 2); }),
              HasSubstr("data.vocabulary_size is 2"));
}

}  // namespace
}  // namespace fathom::data
