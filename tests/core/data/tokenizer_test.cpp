#include "core/data/tokenizer.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include "tests/core/data/data_support.h"

namespace fathom::data {
namespace {

using ::testing::AllOf;
using testing::error_of;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
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
              MatchesRegex("tokenizer: data.vocabulary_size is 50000: the text has pieces for "
                           "[0-9]+ at most; set it to that or less"));
}

TEST_P(EveryKind, NamesTheKeyWhenTheVocabularyIsSmallerThanTheAlphabet) {
  EXPECT_THAT(error_of<DataError>([&] { (void)trained(GetParam(), 10); }),
              MatchesRegex("tokenizer: data.vocabulary_size is 10: it must be at least [0-9]+, for "
                           "the characters of the text at data.character_coverage 0.9995; raise "
                           "the former, or lower the latter"));
}

// Words of two letters, and a character that occurs once: with the space four of them.
std::vector<std::string> with_a_rare_character() {
  std::vector<std::string> lines;
  for (int i = 0; i < 600; ++i) {
    std::string& line = lines.emplace_back();
    for (int bit = 0; bit < 12; ++bit)
      line += join(bit % 4 == 0 ? " " : "", i >> bit & 1 ? 'a' : 'b');
  }
  lines[7] += "\xE4\xB8\x80";
  return lines;
}

TEST_P(EveryKind, LeavesRareCharactersOutWhereThereAreTooMany) {
  const std::vector<std::string> lines = with_a_rare_character();
  const auto knows = [&](double coverage, int64_t size) {
    const Tokenizer tokenizer = Tokenizer::train(lines, {}, GetParam(), size, coverage);
    const std::vector<int32_t> tokens = tokenizer.encode("\xE4\xB8\x80");
    return std::count(tokens.begin(), tokens.end(), kUnknownToken) == 0;
  };
  EXPECT_FALSE(knows(0, 15)) << "four would take more than a quarter";
  EXPECT_TRUE(knows(0, 16)) << "they do not";
  EXPECT_TRUE(knows(1, 15));
  EXPECT_FALSE(knows(0.99, 16));
  for (const double coverage : {-0.1, 1.1, std::nan("")})
    EXPECT_THAT(error_of<InvalidArgument>([&] { (void)knows(coverage, 16); }),
                HasSubstr("data.character_coverage is "));
}

// SentencePiece would leave out every sentence that has it.
TEST_P(EveryKind, LearnsFromSentencesWithTheReservedCharacter) {
  std::vector<std::string> lines = side(true);
  const Tokenizer without = Tokenizer::train(lines, {}, GetParam(), 60);
  for (std::string& line : lines) line = "\xE2\x96\x85 " + line + "\xE2\x96\x85";
  const Tokenizer with = Tokenizer::train(lines, {}, GetParam(), 60);
  EXPECT_EQ(with.bytes(), without.bytes());
  const std::vector<std::string> nothing_else(5, "\xE2\x96\x85");
  EXPECT_THAT(error_of<DataError>([&] { (void)Tokenizer::train(nothing_else, {}, GetParam(), 8); }),
              HasSubstr("none of 5 sentences can be learnt from"));
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

// As other makers number their special tokens: SentencePiece's own default, and one without EOS.
std::string foreign_model(int unknown, int bos, int eos, int pad) {
  const TemporaryDirectory dir;
  std::string text;
  for (const std::string& line : side(true)) text += line + "\n";
  const std::unordered_map<std::string, std::string> settings{{"input", dir.write("text", text)},
                                                              {"model_type", "bpe"},
                                                              {"vocab_size", "80"},
                                                              {"hard_vocab_limit", "false"},
                                                              {"unk_id", std::to_string(unknown)},
                                                              {"bos_id", std::to_string(bos)},
                                                              {"eos_id", std::to_string(eos)},
                                                              {"pad_id", std::to_string(pad)},
                                                              {"minloglevel", "2"}};
  std::string model;
  const auto status = sentencepiece::SentencePieceTrainer::Train(settings, nullptr, &model);
  EXPECT_TRUE(status.ok()) << status.ToString();
  return model;
}

TEST(Tokenizer, NumbersThePiecesOfOtherMakersAnew) {
  for (const std::string& model :
       {foreign_model(0, 1, 2, -1), foreign_model(3, 1, 2, 0), foreign_model(0, -1, -1, -1)}) {
    sentencepiece::SentencePieceProcessor theirs;
    ASSERT_TRUE(theirs.LoadFromSerializedProto(model).ok());
    const Tokenizer ours = Tokenizer::from_bytes(model);

    EXPECT_EQ(ours.bytes(), model);
    EXPECT_EQ(ours.size(), theirs.GetPieceSize() + (theirs.eos_id() < 0 ? 1 : 0));
    EXPECT_EQ(ours.piece(kUnknownToken), theirs.IdToPiece(theirs.unk_id()));
    EXPECT_EQ(ours.piece(kEndOfSentence), "</s>");
    std::set<std::string> pieces;
    for (int32_t token = 0; token < ours.size(); ++token) pieces.insert(ours.piece(token));
    EXPECT_EQ(int64_t(pieces.size()), ours.size());
    for (int i = 0; i < 40; ++i) {
      const std::string text = sentence(i, true);
      const std::vector<int32_t> tokens = ours.encode(text);
      EXPECT_EQ(ours.decode(tokens), text);
      std::vector<std::string> spelled, expected;
      for (const int32_t token : tokens) spelled.push_back(ours.piece(token));
      ASSERT_TRUE(theirs.Encode(text, &expected).ok());
      EXPECT_EQ(spelled, expected);
      for (const int32_t token : tokens) EXPECT_GT(token, kEndOfSentence);
    }
    EXPECT_EQ(ours.encode("\u0434").back(), kUnknownToken);
  }
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
