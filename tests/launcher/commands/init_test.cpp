// From two files to a config that can be trained.
#include "launcher/commands/init.h"

#include <filesystem>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/data/prepare.h"
#include "launcher/check_config.h"
#include "launcher/hold_out.h"
#include "launcher/suggest_config.h"
#include "tests/core/data/data_support.h"

namespace fathom::launcher {
namespace {

using data::testing::error_of;
using data::testing::sentences;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class Init : public ::testing::Test {
 protected:
  Init() {
    dir.write("own.de", sentences(400, true));
    dir.write("own.en", sentences(400, false));
  }
  std::string run(InitCommand command) {
    std::ostringstream out, said;
    if (command.source.empty()) command.source = dir / "own.de";
    if (command.target.empty()) command.target = dir / "own.en";
    EXPECT_EQ(init(command, out, said), 0);
    notes = said.str();
    return out.str();
  }
  static std::vector<std::string> problems_of(const std::string& config) {
    Problems problems;
    std::istringstream in(config);
    (void)check_config(config_source(in), {"monitoring.listen=off"}, problems);
    std::vector<std::string> said;
    for (const Error& error : problems.errors()) said.emplace_back(error.what());
    return said;
  }

  data::testing::TemporaryDirectory dir;
  std::string notes;
};

TEST_F(Init, MakesAConfigThatPassesTheCheck) {
  dir.write("v.de", sentences(20, true));
  dir.write("v.en", sentences(20, false));

  const std::string config = run({.source = {}, .target = {}, .valid = dir / "v", .hold_out = {}});

  EXPECT_EQ(problems_of(config), std::vector<std::string>());
  std::istringstream in(config);
  Problems problems;
  const Config read = gather_config(config_source(in), {}, problems).config;
  EXPECT_EQ(read.run.name, "own");
  EXPECT_EQ(read.data.train, dir / "own");
  EXPECT_EQ(read.data.valid, dir / "v");
  EXPECT_EQ(read.data.source, "de");
  EXPECT_EQ(read.data.target, "en");
  EXPECT_EQ(notes, "");
}

TEST_F(Init, HoldsOutWhatIsMissingAndItsVocabularyCanBeLearned) {
  const std::string config =
      run({.source = {}, .target = {}, .valid = {}, .hold_out = {"20", dir / "split"}});

  EXPECT_EQ(problems_of(config), std::vector<std::string>());
  std::istringstream in(config);
  Problems problems;
  Config read = gather_config(config_source(in), {}, problems).config;
  EXPECT_EQ(read.data.test, dir / "split/test");
  read.data.directory = dir / "set";
  const data::PreparedData data = data::prepare(read.data, false);
  EXPECT_EQ(data.valid->size(), 20);
  EXPECT_EQ(data.test->size(), 20);
  EXPECT_EQ(data.tokenizer->size(), read.data.vocabulary_size);
  EXPECT_THAT(notes,
              AllOf(HasSubstr("20 for validation, 20 for the test"), HasSubstr(dir / "split")));
  EXPECT_THAT(
      error_of<InvalidArgument>([&] {
        (void)run({.source = {}, .target = {}, .valid = {}, .hold_out = {"20", dir / "split"}});
      }),
      HasSubstr("train.de is already there"));
}

TEST_F(Init, SaysHowToHoldOutWhereNothingIsHeldOut) {
  const std::string config = run({});

  EXPECT_THAT(config, AllOf(HasSubstr("--hold-out 500 DIRECTORY"), HasSubstr("  valid: ''\n")));
  EXPECT_THAT(problems_of(config), ::testing::ElementsAre(HasSubstr("data.valid: is not set")));
}

TEST_F(Init, NamesFilesThatAreNoCorpus) {
  dir.write("a.txt", "eins\nzwei\n");
  dir.write("b.txt", sentences(400, false));
  const auto error = [&](InitCommand command) {
    return error_of<Error>([&] { (void)run(std::move(command)); });
  };
  EXPECT_THAT(
      error({.source = dir / "a.txt", .target = dir / "b.txt", .valid = {}, .hold_out = {}}),
      HasSubstr("expected PREFIX.SOURCE and PREFIX.TARGET"));
  EXPECT_THAT(error({.source = dir / "a.txt",
                     .target = dir / "b.txt",
                     .valid = {},
                     .hold_out = {"1", dir / "x"}}),
              HasSubstr("has 2 lines"));
  EXPECT_THAT(
      error({.source = dir / "none.de", .target = dir / "none.en", .valid = {}, .hold_out = {}}),
      HasSubstr("neither"));
  EXPECT_THAT(error({.source = {}, .target = {}, .valid = dir / "none", .hold_out = {}}),
              HasSubstr("none.de"));
  EXPECT_THAT(error({.source = {}, .target = {}, .valid = "v", .hold_out = {"1", "x"}}),
              HasSubstr("not both"));
  for (const char* count : {"0", "-1", "x", "101"})
    EXPECT_THAT(error({.source = {}, .target = {}, .valid = {}, .hold_out = {count, dir / "x"}}),
                HasSubstr("init: --hold-out"))
        << count;
  EXPECT_FALSE(std::filesystem::exists(dir / "x"));
}

TEST_F(Init, TakesFilesOfAnyNameAndLinesThatAreNoTextWhereItHoldsOut) {
  dir.write("a.txt", "\xFF\n\n" + sentences(400, true));
  dir.write("b.txt", "one\ntwo\n" + sentences(400, false));

  const std::string config = run({.source = dir / "a.txt",
                                  .target = dir / "b.txt",
                                  .valid = {},
                                  .hold_out = {"20", dir / "y"}});

  EXPECT_THAT(config, AllOf(HasSubstr("  source: source\n"), Not(HasSubstr("on_bad_line"))));
  EXPECT_THAT(notes, HasSubstr("left out: empty_source 1, invalid_utf8 1"));
  EXPECT_EQ(problems_of(config), std::vector<std::string>());
  dir.write("bad.de", "\xFF\n" + sentences(400, true));
  dir.write("bad.en", "one\n" + sentences(400, false));
  EXPECT_THAT(run({.source = dir / "bad.de",
                   .target = dir / "bad.en",
                   .valid = dir / "own",
                   .hold_out = {}}),
              HasSubstr("  on_bad_line: skip"));
}

data::Corpus numbered(int pairs) {
  data::Corpus corpus;
  for (int i = 0; i < pairs; ++i) {
    corpus.source.push_back(join("s", i));
    corpus.target.push_back(join("t", i));
  }
  return corpus;
}

TEST(HoldOut, TakesTheSamePairsEachTimeAndNoneTwice) {
  const HeldOut a = hold_out(numbered(100), 10), b = hold_out(numbered(100), 10);

  EXPECT_EQ(a.valid.source, b.valid.source);
  EXPECT_EQ(a.test.target, b.test.target);
  EXPECT_EQ(a.train.size(), 80);
  std::set<std::string> all;
  for (const data::Corpus* corpus : {&a.train, &a.valid, &a.test})
    for (size_t i = 0; i < corpus->source.size(); ++i) {
      EXPECT_EQ(corpus->source[i].substr(1), corpus->target[i].substr(1));
      all.insert(corpus->source[i]);
    }
  EXPECT_EQ(all.size(), 100u);
  EXPECT_FALSE(std::ranges::is_sorted(a.valid.source) && a.valid.source[0] == "s0" &&
               a.valid.source[9] == "s9");  // not the first ones
}

TEST(HoldOut, LeavesOutOfTrainingWhatEqualsAHeldOutPair) {
  data::Corpus corpus = numbered(40);
  const data::Corpus again = numbered(40);
  corpus.source.insert(corpus.source.end(), again.source.begin(), again.source.end());
  corpus.target.insert(corpus.target.end(), again.target.begin(), again.target.end());

  const HeldOut out = hold_out(corpus, 5);

  EXPECT_EQ(out.repeated, 10);
  EXPECT_EQ(out.train.size(), 60);
  for (const std::string& line : out.valid.source)
    EXPECT_EQ(std::ranges::count(out.train.source, line), 0) << line;
}

TEST(Suggestion, VocabularyFitsPairsCharactersAndWords) {
  const auto vocabulary = [](int64_t pairs, int64_t characters, int64_t words) {
    return suggested_vocabulary({.pairs = pairs, .characters = characters, .words = words});
  };
  EXPECT_EQ(vocabulary(3'000, 80, 9'000), 1000);
  EXPECT_EQ(vocabulary(30'000, 100, 50'000), 4000);
  EXPECT_EQ(vocabulary(160'000, 150, 120'000), 8000);
  EXPECT_EQ(vocabulary(4'500'000, 300, 1'000'000), 16000);
  EXPECT_EQ(vocabulary(20'000'000, 300, 1'000'000), 32000);
  EXPECT_EQ(vocabulary(3'000, 5'000, 20'000), 10'000);  // Chinese
  EXPECT_EQ(vocabulary(150, 20, 140), 90);              // more cannot be learned
  EXPECT_EQ(vocabulary(1, 1, 1), 8);
}

// Whatever its size a corpus gets a config without contradictions, in lines that fit.
TEST(Suggestion, IsAConfigForACorpusOfAnySize) {
  for (double pairs = 1; pairs < 1e9; pairs *= 4) {
    const std::string text = suggested_config({.command = "fathom init a.de a.en",
                                               .name = "a",
                                               .train = "a",
                                               .valid = "v",
                                               .test = {},
                                               .source = "de",
                                               .target = "en",
                                               .size = {.pairs = int64_t(pairs),
                                                        .characters = 90,
                                                        .words = int64_t(3 * pairs),
                                                        .letters = 100 * pairs}});
    Problems problems;
    std::istringstream in(text), lines(text);
    const Config config = gather_config(config_source(in), {}, problems).config;
    for (const Error& error : problems.errors()) ADD_FAILURE() << error.what() << text;
    EXPECT_GT(config.batch.micro_tokens, config.data.max_length);
    EXPECT_LE(config.optimizer.warmup_steps, config.train.max_steps / 5);
    EXPECT_LE(config.train.validate_every, config.train.max_steps / 10);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100u) << line;
  }
}

}  // namespace
}  // namespace fathom::launcher
