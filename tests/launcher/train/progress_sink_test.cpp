#include "launcher/train/progress_sink.h"

#include <cmath>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/launcher/train/sample_records.h"

namespace fathom::launcher {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

class ProgressSinkTest : public ::testing::Test {
 protected:
  static monitoring::ProgressConfig progress(bool is_terminal) {
    monitoring::ProgressConfig config;
    config.title = "small";
    config.total = 10;
    config.is_terminal = is_terminal;
    config.seconds = [] { return 0.0; };
    return config;
  }

  std::ostringstream screen_;
  monitoring::Log log_{{}, screen_};
};

TEST_F(ProgressSinkTest, ShowsLossAndSpeedOfAStep) {
  ProgressSink sink(screen_, progress(false), log_);

  sink.step_done(sample_step());
  sink.finished(sample_end());

  EXPECT_EQ(screen_.str(), "small 7/10 70%  loss 2.500, lr 1.00e-03, 200 tokens/s\n");
}

TEST_F(ProgressSinkTest, IsQuietOrVerboseAsTheLogIs) {
  monitoring::Log quiet({.level = monitoring::LogLevel::kWarning}, screen_);
  ProgressSink(screen_, progress(false), quiet).step_done(sample_step());
  EXPECT_EQ(screen_.str(), "");

  monitoring::Log verbose({.level = monitoring::LogLevel::kDebug}, screen_);
  ProgressSink(screen_, progress(false), verbose).step_done(sample_step());
  EXPECT_THAT(screen_.str(), EndsWith("debug: step 7: loss 2.500, lr 1.00e-03, 200 tokens/s\n"));
}

TEST_F(ProgressSinkTest, LogsAValidationWithWhatItHas) {
  ProgressSink sink(screen_, progress(false), log_);
  ValidationRecord record = sample_validation();

  sink.validated(record);
  EXPECT_THAT(screen_.str(), EndsWith("step 7: validation loss 1, perplexity 2.71828, source gain "
                                      "0.5, BLEU 12.5\n"));
  record.bleu.reset();
  record.result.source_gain = std::nan("");
  sink.validated(record);
  EXPECT_THAT(screen_.str(), EndsWith("step 7: validation loss 1, perplexity 2.71828\n"));
}

TEST_F(ProgressSinkTest, LogsAVerdictAsAWarning) {
  ProgressSink sink(screen_, progress(false), log_);

  sink.judged(7, "plateau: Too high.");

  EXPECT_THAT(screen_.str(), EndsWith("warning: step 7: plateau: Too high.\n"));
}

TEST_F(ProgressSinkTest, LogsASaveThatFailedAsAnError) {
  ProgressSink sink(screen_, progress(false), log_);

  sink.save_failed(7, "no space");

  EXPECT_THAT(screen_.str(), EndsWith("error: checkpoint of step 7 failed: no space\n"));
}

TEST_F(ProgressSinkTest, LogsASaveAndWhatItWarnsOf) {
  ProgressSink sink(screen_, progress(false), log_);
  SaveRecord save = sample_save();

  sink.saved(save);
  EXPECT_THAT(screen_.str(), EndsWith(join("info: saved step ", save.step, ", ", save.path, "\n")));
  save.warnings = {"step-3 could not be deleted"};
  sink.saved(save);

  EXPECT_THAT(screen_.str(), EndsWith("warning: step-3 could not be deleted\n"));
}

TEST_F(ProgressSinkTest, TakesTheBarAwayBeforeALineOfTheLogAndAtTheEnd) {
  const std::string erased = "\r\033[K";
  ProgressSink sink(screen_, progress(true), log_);
  sink.step_done(sample_step());
  const size_t drawn = screen_.str().size();

  log_.info("a line");
  EXPECT_EQ(screen_.str().substr(drawn, erased.size()), erased);
  EXPECT_THAT(screen_.str(), HasSubstr("info: a line\n"));
  sink.finished(sample_end());
  log_.info("another");
  EXPECT_THAT(screen_.str(), EndsWith("info: another\n"));
}

TEST_F(ProgressSinkTest, LeavesTheLogAsItWasWhenItGoes) {
  { const ProgressSink sink(screen_, progress(true), log_); }

  log_.info("a line");  // would call what is gone

  EXPECT_THAT(screen_.str(), EndsWith("info: a line\n"));
}

}  // namespace
}  // namespace fathom::launcher
