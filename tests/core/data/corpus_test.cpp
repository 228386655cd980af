#include "core/data/corpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/core/data/data_support.h"

namespace fathom::data {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;
using testing::TemporaryDirectory;

CorpusFiles files(std::string source, std::string target) {
  return {Text("x.de", std::move(source)), Text("x.en", std::move(target))};
}

TEST(Corpus, RefusesUnequalLineCountsWithBothCountsAndPaths) {
  const TemporaryDirectory dir;
  // A bad line too: the counts must be what is reported.
  const std::string de = dir.write("x.de", "a\n\xFF\nc\n"), en = dir.write("x.en", "a\nb\nc\nd\n");

  EXPECT_THAT(
      error_of<DataError>([&] { (void)load_parallel(dir / "x", "de", "en", OnBadLine::kFail); }),
      AllOf(HasSubstr(de + " has 3 lines"), HasSubstr(en + " has 4"),
            HasSubstr("line 4 has no translation")));
}

TEST(Corpus, LineSeparatorsOtherThanLineFeedNeverShiftASide) {
  const TemporaryDirectory dir;
  dir.write("x.de", "eins\u2028eins\nzwei\rzwei\ndrei\n");
  dir.write("x.en", "one\ntwo\nthree");

  const Corpus corpus = load_parallel(dir / "x", "de", "en", OnBadLine::kFail);

  EXPECT_THAT(corpus.source, ElementsAre("eins\u2028eins", "zwei\rzwei", "drei"));
  EXPECT_THAT(corpus.target, ElementsAre("one", "two", "three"));
}

TEST(Corpus, StopsAtABadLineWithItsPlaceAndTheRemedy) {
  using namespace std::string_literals;
  const auto error = [](std::string source, std::string target) {
    return error_of<DataError>([&] {
      (void)training_corpus(files(std::move(source), std::move(target)), OnBadLine::kFail);
    });
  };

  EXPECT_THAT(error("a\nb\xE4r\n", "a\nb\n"),
              AllOf(HasSubstr("x.de:2:2:"), HasSubstr("0xE4"), HasSubstr("iconv"),
                    HasSubstr("data.on_bad_line: skip")));
  EXPECT_THAT(error("a\nb\n", "a\r\nb\r\n"),
              AllOf(HasSubstr("x.en:1:2:"), HasSubstr("carriage return"), HasSubstr("sed"),
                    HasSubstr("data.on_bad_line: skip")));
  EXPECT_THAT(error("a\nb\0\n"s, "a\nb\n"),
              AllOf(HasSubstr("x.de:2:2: NUL byte"), HasSubstr("data.on_bad_line: skip")));
}

TEST(Corpus, SaysHowManyLinesAreBad) {
  const auto error = [](const std::string& bytes) {
    return error_of<DataError>([&] { refuse_bad_lines(Text("x.de", bytes)); });
  };

  EXPECT_THAT(error("a\nb\r\n\xFF\nc\r\n"), AllOf(HasSubstr("x.de:2:2: carriage return"),
                                                  HasSubstr(", the first of 3 bad lines;")));
  EXPECT_THAT(error("a\nb\r\n"), ::testing::Not(HasSubstr("first of")));
  EXPECT_EQ(error("a\n"), "<no error>");
}

TEST(Corpus, DropsAndCountsEveryPairThatCannotBeUsed) {
  using namespace std::string_literals;
  const std::string huge(2'000'000, 'x');
  const CorpusFiles bad = files("gut\n\n \t\nleer\n\xFF\ncr\r\nn\0l\n"s + huge + "\nkurz\nende\n",
                                "good\na\nb\n  \nc\nd\ne\nf\n" + huge + "\nend\n");

  const Corpus corpus = training_corpus(bad, OnBadLine::kSkip);

  EXPECT_THAT(corpus.source, ElementsAre("gut", "ende"));
  EXPECT_THAT(corpus.target, ElementsAre("good", "end"));
  EXPECT_EQ(corpus.counts, (DropCounts{{"empty_source", 2},
                                       {"empty_target", 1},
                                       {"invalid_utf8", 1},
                                       {"carriage_return", 1},
                                       {"nul_byte", 1},
                                       {"too_long", 2}}));
}

TEST(Corpus, BlankAndOverlongLinesAreCountedEvenWhenBadLinesFail) {
  const std::string huge(2'000'000, 'x');

  const Corpus corpus = training_corpus(files("a\n\n" + huge, "a\nb\nc"), OnBadLine::kFail);

  EXPECT_EQ(corpus.size(), 1);
  EXPECT_EQ(describe(corpus.counts), "empty_source 1, too_long 1");
}

TEST(Corpus, RefusesATextWithoutAUsablePair) {
  EXPECT_THAT(
      error_of<DataError>([] { (void)training_corpus(files("\n\n", "a\n\n"), OnBadLine::kFail); }),
      AllOf(HasSubstr("x.de and x.en: all 2 pairs were dropped (empty_source 2)")));
  EXPECT_THAT(error_of<DataError>([] { (void)training_corpus(files("", ""), OnBadLine::kFail); }),
              HasSubstr("no lines"));
}

TEST(Corpus, NotesAByteOrderMark) {
  const Corpus corpus = training_corpus(files("\xEF\xBB\xBF"
                                              "a\n",
                                              "a\n"),
                                        OnBadLine::kFail);

  EXPECT_THAT(corpus.source, ElementsAre("a"));
  EXPECT_THAT(corpus.notes, ElementsAre(HasSubstr("x.de: took off a byte order mark")));
}

TEST(Corpus, EvaluationKeepsEveryLine) {
  const CorpusFiles bad = files("gut\n\n\xFF\nwin\r\n", "good\na\nb\n\n");

  const Corpus corpus = evaluation_corpus(bad, OnBadLine::kSkip);

  EXPECT_THAT(corpus.source, ElementsAre("gut", "", "\uFFFD", "win"));
  EXPECT_THAT(corpus.target, ElementsAre("good", "a", "b", ""));
  EXPECT_EQ(corpus.counts, (DropCounts{{"invalid_utf8", 1}, {"carriage_return", 1}}));
  EXPECT_THAT(corpus.notes, ElementsAre(HasSubstr("kept all 4")));
  EXPECT_THAT(error_of<DataError>([&] { (void)evaluation_corpus(bad, OnBadLine::kFail); }),
              HasSubstr("x.de:3:1:"));
}

TEST(Corpus, DecoderOnlyReadsTheTargetSideAlone) {
  const TemporaryDirectory dir;
  dir.write("x.en", "one\n\ntwo\n");  // there is no x.de

  const Corpus corpus = training_corpus(read_corpus(dir / "x", "de", "en", true), OnBadLine::kFail);

  EXPECT_TRUE(corpus.source.empty());
  EXPECT_THAT(corpus.target, ElementsAre("one", "two"));
  EXPECT_EQ(corpus.counts, (DropCounts{{"empty_target", 1}}));
}

}  // namespace
}  // namespace fathom::data
