// What check_config says of a config, and with which words.
#include "launcher/check_config.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "core/data/batch_plan.h"
#include "core/data/prepare.h"
#include "tests/core/data/data_support.h"

namespace fathom::launcher {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

// 300 pairs for training, 20 for validation, and a config that fits them.
class CheckConfig : public ::testing::Test {
 protected:
  CheckConfig() {
    for (const bool is_german : {true, false}) {
      const std::string ending = is_german ? ".de" : ".en";
      dir.write("train" + ending, data::testing::sentences(300, is_german));
      dir.write("valid" + ending, data::testing::sentences(20, is_german));
    }
  }

  std::string check(const std::vector<std::string>& overrides = {}) {
    const std::string text =
        "model: {depth: E1D1, width: 8, ffn_width: 16, heads: 2}\n"
        "data: {train: " +
        (dir / "train") + ", valid: " + (dir / "valid") +
        ", vocabulary_size: 90, directory: " + (dir / "set") +
        "}\n"
        "batch: {tokens: 300, micro_tokens: 300}\n"
        "monitoring: {listen: off}\n";
    problems = {};
    const std::string out =
        check_config({.text = text, .name = "c.yaml", .run_name = "c"}, overrides, problems);
    said.clear();
    for (const Error& error : problems.errors()) said.emplace_back(error.what());
    return out;
  }

  data::testing::TemporaryDirectory dir;
  Problems problems;
  std::vector<std::string> said;
};

TEST_F(CheckConfig, SaysWhatTheRunWouldBe) {
  const std::string out = check();

  EXPECT_THAT(said, SizeIs(0));
  EXPECT_THAT(out, AllOf(HasSubstr("c.yaml: ok: run c, config "),
                         HasSubstr("\ntexts       train: 300 of 300 pairs; valid: 20 of 20 pairs; "
                                   "test: none\n"),
                         HasSubstr("\nepoch       about "),
                         HasSubstr("an estimate from the text: the data set is not prepared yet"),
                         HasSubstr("\nrun         train.max_steps 100000, about "),
                         HasSubstr("\nseries      "), HasSubstr("of monitoring.max_series 5000\n"),
                         HasSubstr("\nparameters  "), HasSubstr(" with 90 pieces\n"),
                         HasSubstr("activations      total\n"), Not(HasSubstr("warning"))));
  EXPECT_FALSE(std::filesystem::exists(dir / "set"));
  EXPECT_FALSE(std::filesystem::exists("runs/c"));
}

TEST_F(CheckConfig, CountsTheStepsOfAPreparedDataSetExactlyAndGuessesWell) {
  const auto steps = [](const std::string& out, const std::string& before) {
    const size_t at = out.find(before);
    return at == out.npos ? -1 : std::atoi(out.c_str() + at + before.size());
  };
  const int guessed = steps(check(), "epoch       about ");
  data::DataConfig config;
  config.train = dir / "train";
  config.valid = dir / "valid";
  config.vocabulary_size = 90;
  config.directory = dir / "set";
  const data::PreparedData built = data::prepare(config, false);

  const std::string out = check();

  const int counted = steps(out, "epoch       ");
  const data::PairLengths lengths = built.train.lengths();
  EXPECT_EQ(counted, data::EpochPlan(lengths, {300, 300, 0}, 1, 0).batch_count());
  EXPECT_THAT(out, HasSubstr("by the data set in " + (dir / "set")));
  EXPECT_NEAR(double(guessed) / counted, 1, 0.35);  // words of a dozen kinds, 90 pieces
  (void)check({"batch.micro_tokens=5"});
  EXPECT_THAT(said, ElementsAre(AllOf(HasSubstr("batch plan: pair "),
                                      HasSubstr("but batch.micro_tokens is 5; raise"))));
}

TEST_F(CheckConfig, NamesEveryProblemOfKeysAndTexts) {
  dir.write("zip.de", "\x1f\x8b\x08 and so on\nmore\n");
  dir.write("zip.en", "one\n");

  EXPECT_EQ(check({"data.train=" + (dir / "zip"), "data.valid=" + (dir / "none"), "data.test=a,b",
                   "data.tokenizer_model=" + (dir / "none.model"), "model.heads=3", "model.widht=4",
                   "monitoring.listen=none.invalid:80"}),
            "");

  EXPECT_THAT(said, ElementsAre(HasSubstr("model.widht: unknown key; did you mean model.width"),
                                HasSubstr("'none.invalid' has no IPv4 address"),
                                "text: " + (dir / "zip.de") +
                                    " is a gzip file; add .gz to its name, or unpack it: gunzip",
                                HasSubstr("neither " + (dir / "none.de")),
                                HasSubstr("neither " + (dir / "none.en")),
                                HasSubstr("/a,b.de.gz exists"), HasSubstr("/a,b.en.gz exists"),
                                HasSubstr("opening " + (dir / "none.model"))));
  EXPECT_EQ(problems.code(), ExitCode::kUsage);
}

TEST_F(CheckConfig, BlamesTheTextsWhereOnlyTheyAreWrong) {
  dir.write("bad.de", "eins\nzw\xFF\ndrei\r\n");
  dir.write("bad.en", "one\r\ntwo\nthree\n");
  dir.write("short.de", "eins\n");
  dir.write("short.en", "one\ntwo\n");
  dir.write("empty.de", "");
  dir.write("empty.en", "");

  (void)check({"data.train=" + (dir / "bad"), "data.valid=" + (dir / "short"),
               "data.test=" + (dir / "empty")});

  EXPECT_THAT(said, ElementsAre(HasSubstr("bad.de:2:3: byte 0xFF"), HasSubstr("bad.en:1:4: carr"),
                                AllOf(HasSubstr("short.de has 1 lines"), HasSubstr("has 2")),
                                HasSubstr("no lines to evaluate on")));
  EXPECT_EQ(problems.code(), ExitCode::kData);

  (void)check({"data.train=" + (dir / "bad"), "data.on_bad_line=skip"});
  EXPECT_THAT(said, ElementsAre(HasSubstr("all 3 pairs were dropped")));
}

TEST_F(CheckConfig, FindsWhatOnlyARunWouldRefuse) {
  EXPECT_EQ(check({"data.train=", "data.valid="}), "");
  EXPECT_THAT(
      said, ElementsAre(HasSubstr("data.train: is not set"), HasSubstr("data.valid: is not set")));
  (void)check({"model.depth=E110D110"});
  EXPECT_THAT(said, ElementsAre(HasSubstr("monitoring.max_series: got 5000, but 550 blocks")));
  EXPECT_EQ(problems.code(), ExitCode::kUsage);
  (void)check({"batch.shards=1", "batch.tokens=600"});
  EXPECT_THAT(said, ElementsAre(HasSubstr("batch.shards: got 1, allowed at least 2")));
  (void)check({"data.source=en"});
  EXPECT_THAT(said, ElementsAre(HasSubstr("data.source: \"en\" is the same as data.target")));
}

TEST_F(CheckConfig, BleuNeedsReferences) {
  dir.write("blank.de", "eins\nzwei\n");
  dir.write("blank.en", "\n\n");

  EXPECT_THAT(check({"data.valid=" + (dir / "blank")}), HasSubstr("valid: 2 of 2 pairs"));
  (void)check({"data.valid=" + (dir / "blank"), "train.best_metric=bleu"});

  EXPECT_THAT(said, ElementsAre(HasSubstr("data.valid: all 2 references are empty")));
  EXPECT_EQ(problems.code(), ExitCode::kData);
}

TEST_F(CheckConfig, SaysThatPairsAreLongerThanABatch) {
  (void)check({"batch.micro_tokens=5"});
  EXPECT_THAT(said, ElementsAre(AllOf(HasSubstr("data.train: about "),
                                      HasSubstr(" pairs have more than 5 tokens with EOS, but "
                                                "batch.micro_tokens is 5; raise it to 257"))));
  EXPECT_EQ(problems.code(), ExitCode::kUsage);
  // Some might be.
  EXPECT_THAT(check({"batch.micro_tokens=150"}),
              HasSubstr("\nwarning: batch.micro_tokens 150 is less than a pair of data.max_length "
                        "256 tokens"));
  EXPECT_THAT(check({"batch.micro_tokens=150", "data.max_length=149"}), Not(HasSubstr("warning")));
}

TEST_F(CheckConfig, LeavesAPipeToTheRun) {
  ASSERT_EQ(::mkfifo((dir / "pipe.de").c_str(), 0600), 0);
  ASSERT_EQ(::mkfifo((dir / "pipe.en").c_str(), 0600), 0);

  const std::string out = check({"data.train=" + (dir / "pipe")});

  EXPECT_THAT(out, AllOf(HasSubstr("warning: " + (dir / "pipe.de") + " is no file"),
                         HasSubstr("epoch       unknown")));
}

TEST_F(CheckConfig, CountsThePiecesOfATokenizerThatIsGiven) {
  data::DataConfig config;
  config.train = dir / "train";
  config.vocabulary_size = 80;
  config.directory = dir / "other";
  (void)data::prepare(config, false);

  EXPECT_THAT(check({"data.tokenizer_model=" + (dir / "other/tokenizer.model")}),
              HasSubstr(" with 80 pieces"));
}

}  // namespace
}  // namespace fathom::launcher
