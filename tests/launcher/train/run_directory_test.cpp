#include "launcher/train/run_directory.h"

#include <filesystem>
#include <sstream>

#include <gmock/gmock.h>

#include "launcher/config/load.h"
#include "launcher/config/show.h"
#include "tests/core/data/data_support.h"
#include "tests/support/temporary_directory.h"

namespace fathom::launcher {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class RunDirectoryTest : public ::testing::Test {
 protected:
  RunDirectoryTest() {
    config_ = parse_config("data: {train: texts}", "c.yaml", "small",
                           {"run.directory=" + (directory_ / "run").string()});
  }

  support::TemporaryDirectory directory_;
  Config config_;
  std::ostringstream said_;
  monitoring::Log log_{{}, said_};
};

TEST_F(RunDirectoryTest, IsMadeAndLockedByTheFirstRankAlone) {
  const RunDirectory other = open_run_directory(config_, 1, log_);
  EXPECT_EQ(other.lock, nullptr);
  EXPECT_FALSE(other.checkpoints.has_value());
  EXPECT_FALSE(std::filesystem::exists(directory_ / "run"));

  const RunDirectory first = open_run_directory(config_, 0, log_);
  EXPECT_TRUE(first.lock->is_owner());
  EXPECT_TRUE(std::filesystem::is_directory(first.checkpoints->path()));
  EXPECT_THROW((void)open_run_directory(config_, 0, log_), InvalidArgument);
}

TEST_F(RunDirectoryTest, IsGoneAgainWhereTheRunWasRefused) {
  config_.run.directory = directory_ / "runs" / "deep" / "run";
  (void)open_run_directory(config_, 0, log_);
  EXPECT_THAT(support::names_in(directory_.path()), IsEmpty());

  fs::create_directories(directory_ / "runs" / "other");
  (void)open_run_directory(config_, 0, log_);
  EXPECT_THAT(support::names_in(directory_ / "runs"), ElementsAre("other"));

  fs::create_directories(config_.run.directory);
  support::write_text(config_.run.directory + "/notes.txt", "mine");
  (void)open_run_directory(config_, 0, log_);
  EXPECT_THAT(support::names_in(config_.run.directory), ElementsAre("notes.txt"));
}

TEST_F(RunDirectoryTest, LosesWhatAKilledProcessLeftUnfinished) {
  fs::create_directories(config_.run.directory);
  support::write_text(config_.run.directory + "/.tmp-0123", "half a result.json");
  support::write_text(config_.run.directory + "/notes.txt", "mine");
  (void)open_run_directory(config_, 0, log_);
  EXPECT_THAT(support::names_in(config_.run.directory), ElementsAre("notes.txt"));
}

TEST_F(RunDirectoryTest, StaysWhereItIsKept) {
  {
    const RunDirectory run = open_run_directory(config_, 0, log_);
    run.new_files->keep();
  }
  EXPECT_THAT(support::names_in(directory_ / "run"), ElementsAre(".lock", ".owner", "checkpoints"));
  (void)open_run_directory(config_, 0, log_);  // nothing in it is new to this start
  EXPECT_THAT(support::names_in(directory_ / "run"), ElementsAre(".lock", ".owner", "checkpoints"));
}

TEST_F(RunDirectoryTest, IsMovedAsideWholeWhereItIsReplaced) {
  RunDirectory run = open_run_directory(config_, 0, log_);
  support::write_text(directory_ / "run" / "metrics.jsonl", "{}\n");

  const fs::path aside = replace_run_directory(run, config_, log_);

  EXPECT_THAT(aside.filename().string(), StartsWith("run.replaced-"));
  EXPECT_EQ(support::read_text(aside / "metrics.jsonl"), "{}\n");
  EXPECT_FALSE(fs::exists(directory_ / "run" / "metrics.jsonl"));
  EXPECT_TRUE(run.lock->is_owner());
  run.new_files->keep();
}

TEST_F(RunDirectoryTest, ComesBackWhereTheStartThatReplacesItIsRefused) {
  {
    RunDirectory run = open_run_directory(config_, 0, log_);
    support::write_text(directory_ / "run" / "metrics.jsonl", "{}\n");
    (void)replace_run_directory(run, config_, log_);
    EXPECT_FALSE(fs::exists(directory_ / "run" / "metrics.jsonl"));
    support::write_text(directory_ / "run" / "config.yaml", "new");
  }
  EXPECT_EQ(support::read_text(directory_ / "run" / "metrics.jsonl"), "{}\n");
  EXPECT_THAT(support::names_in(directory_.path()), ElementsAre("run"));
}

TEST_F(RunDirectoryTest, OfALinkTheDirectoryItLeadsToIsReplaced) {
  fs::create_directory(directory_ / "disk");
  fs::create_directory_symlink(directory_ / "disk", directory_ / "run");
  RunDirectory run = open_run_directory(config_, 0, log_);
  support::write_text(directory_ / "run" / "metrics.jsonl", "{}\n");

  const fs::path aside = replace_run_directory(run, config_, log_);
  run.new_files->keep();

  EXPECT_EQ(aside.parent_path(), fs::canonical(directory_.path()));
  EXPECT_THAT(aside.filename().string(), StartsWith("disk.replaced-"));
  EXPECT_TRUE(fs::is_symlink(directory_ / "run"));
  EXPECT_THAT(support::names_in(directory_ / "disk"),
              ElementsAre(".lock", ".owner", "checkpoints"));
}

TEST_F(RunDirectoryTest, ADanglingLinkOfItsUserIsNotRemoved) {
  fs::create_directory_symlink(directory_ / "gone", directory_ / "run");
  EXPECT_THROW((void)open_run_directory(config_, 0, log_), IoError);
  EXPECT_TRUE(fs::is_symlink(directory_ / "run"));
}

TEST_F(RunDirectoryTest, SaysWithWhichConfigItsStepsAreMade) {
  fs::create_directory(directory_ / "run");
  write_config(config_);

  EXPECT_EQ(support::read_text(directory_ / "run" / "config.yaml"), to_yaml(config_));
}

TEST_F(RunDirectoryTest, WritesTheTokenizerOnlyWhereItIsAnother) {
  (void)fs::create_directory(directory_ / "run");
  std::vector<std::string> text;
  for (int i = 0; i < 40; ++i) text.push_back(data::testing::sentence(i, false));
  const auto learned = [&](int64_t size) {
    return std::make_shared<data::Tokenizer>(
        data::Tokenizer::train(text, text, data::TokenizerKind::kBpe, size));
  };
  data::PreparedData data = {.directory = {},
                             .fingerprint = {},
                             .content_hash = {},
                             .tokenizer = learned(60),
                             .train = data::Dataset::from_pairs({}, false),
                             .valid = {},
                             .test = {},
                             .reports = {},
                             .notes = {}};
  const fs::path path = directory_ / "run" / "tokenizer.model";
  write_tokenizer(config_, data);
  EXPECT_EQ(support::read_text(path), data.tokenizer->bytes());
  fs::create_hard_link(path, directory_ / "same file");

  write_tokenizer(config_, data);
  EXPECT_EQ(fs::hard_link_count(path), 2u) << "it was written again";
  data.tokenizer = learned(61);
  write_tokenizer(config_, data);
  EXPECT_EQ(support::read_text(path), data.tokenizer->bytes());
}

TEST_F(RunDirectoryTest, KnowsHowTheLastRunEnded) {
  const auto written = [&](const std::string& text) {
    support::write_text(directory_ / "run" / "result.json", text);
    const LastResult result = last_result(config_);
    return join(result.status, " ", result.step);
  };
  EXPECT_EQ(last_result(config_).status, "");
  std::filesystem::create_directories(directory_ / "run");
  EXPECT_EQ(last_result(config_).status, "");
  EXPECT_EQ(written(R"({"status": "failed", "step": 3})"), "failed 3");
  for (const char* damaged : {"{\"sta", "", "[]", R"({"status": 5, "step": "x"})", "\xff"})
    EXPECT_EQ(written(damaged), " 0") << damaged;
}

}  // namespace
}  // namespace fathom::launcher
