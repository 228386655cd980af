#include "monitoring/progress.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fathom::monitoring {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

struct Screen {
  std::ostringstream out;
  double now = 100;

  ProgressConfig config(bool is_terminal, int columns = 80) {
    ProgressConfig made;
    made.title = "train";
    made.total = 200;
    made.is_terminal = is_terminal;
    made.width = [columns] { return columns; };
    made.seconds = [this] { return now; };
    return made;
  }
  [[nodiscard]] int64_t count(char c) const {
    const std::string text = out.str();
    return std::count(text.begin(), text.end(), c);
  }
};

TEST(Progress, TerminalShowsABarTextAndTimeLeft) {
  Screen screen;
  Progress progress(screen.out, screen.config(/*is_terminal=*/true));
  screen.now += 10;

  progress.update(50, training_text(3.2144, 5e-4, 12345));

  EXPECT_EQ(
      screen.out.str(),
      "\rtrain 50/200 [##-------] 25%  loss 3.214, lr 5.00e-04, 12.3k tokens/s  30s left\033[K");
}

TEST(Progress, TerminalLineNeverFillsTheWidth) {
  for (int columns = 1; columns <= 200; ++columns) {
    Screen screen;
    Progress progress(screen.out, screen.config(/*is_terminal=*/true, columns));
    screen.now += 10;
    progress.update(50, training_text(3.2144, 5e-4, 12345));

    const std::string text = screen.out.str();
    const size_t drawn = text.size() - std::string("\r\033[K").size();
    EXPECT_LE(drawn, size_t(std::max(1, columns - 1))) << text;
  }
}

TEST(Progress, TerminalRedrawsTenTimesASecondAtMost) {
  Screen screen;
  Progress progress(screen.out, screen.config(/*is_terminal=*/true));

  for (int step = 1; step <= 200; ++step) {
    screen.now += 0.01;  // two seconds in all
    progress.update(step, "");
  }

  EXPECT_LE(screen.count('\r'), 21);
  EXPECT_GE(screen.count('\r'), 18);
}

TEST(Progress, TerminalIsClearedAtTheEnd) {
  Screen screen;
  {
    Progress progress(screen.out, screen.config(/*is_terminal=*/true));
    progress.update(1, "");
  }

  EXPECT_THAT(screen.out.str(), EndsWith("\r\033[K"));
  EXPECT_EQ(screen.count('\n'), 0);
}

TEST(Progress, ClearMakesRoomForALineAndTheBarComesBack) {
  Screen screen;
  Progress progress(screen.out, screen.config(/*is_terminal=*/true));
  progress.update(1, "");
  progress.clear();
  const std::string cleared = screen.out.str();
  progress.clear();
  EXPECT_EQ(screen.out.str(), cleared);  // nothing left to clear

  screen.now += 1;
  progress.update(2, "");

  EXPECT_THAT(cleared, EndsWith("\r\033[K"));
  EXPECT_THAT(screen.out.str(), HasSubstr("train 2/200 ["));
}

TEST(Progress, PlainLinesAreTheFirstOneEveryTenSecondsAndTheLast) {
  Screen screen;
  Progress progress(screen.out, screen.config(/*is_terminal=*/false));

  for (int step = 1; step <= 200; ++step) {
    screen.now += 0.125;
    progress.update(step, "loss 1");
  }
  progress.finish();
  progress.finish();

  EXPECT_EQ(screen.out.str(),
            "train 1/200 0%  loss 1\n"
            "train 81/200 40%  loss 1  15s left\n"
            "train 161/200 80%  loss 1  5s left\n"
            "train 200/200 100%  loss 1\n");
}

TEST(Progress, PlainLineIsNotRepeatedAtTheEnd) {
  Screen screen;
  {
    Progress progress(screen.out, screen.config(/*is_terminal=*/false));
    progress.update(200, "");
  }

  EXPECT_EQ(screen.out.str(), "train 200/200 100%\n");
}

TEST(Progress, NothingDoneWritesNothing) {
  Screen screen;
  { Progress progress(screen.out, screen.config(/*is_terminal=*/false)); }

  EXPECT_EQ(screen.out.str(), "");
}

TEST(Progress, TimeLeftCountsFromTheResume) {
  Screen screen;
  ProgressConfig config = screen.config(/*is_terminal=*/false);
  config.start = 100;
  Progress progress(screen.out, config);
  screen.now += 10;

  progress.update(110, "");  // a second a step: 90 left

  EXPECT_EQ(screen.out.str(), "train 110/200 55%  1m30s left\n");
}

// The first step takes a hundred times as long as the others.
TEST(Progress, TimeLeftIsToldOnceItIsKnownAndWithoutTheFirstSteps) {
  Screen screen;
  ProgressConfig config = screen.config(/*is_terminal=*/false);
  config.plain_interval_seconds = 0;
  Progress progress(screen.out, config);

  screen.now += 100;
  for (int step = 1; step <= 10; ++step) {
    progress.update(step, "");
    screen.now += 1;
  }

  EXPECT_EQ(screen.out.str().find("left"), screen.out.str().rfind("left")) << screen.out.str();
  EXPECT_THAT(screen.out.str(), EndsWith("train 10/200 5%  3m10s left\n"));
}

TEST(Progress, TerminalIsClearedWithoutEscapesWhereTheyAreNotWanted) {
  Screen screen;
  {
    ProgressConfig config = screen.config(/*is_terminal=*/true, 40);
    config.uses_escapes = false;
    Progress progress(screen.out, config);
    progress.update(1, "a long text");
    screen.now += 1;
    progress.update(2, "");
  }

  const std::string text = screen.out.str();
  EXPECT_EQ(screen.count('\033'), 0);
  const auto at = [&](int n) {  // where the n-th line begins
    size_t place = 0;
    for (int i = 0; i < n; ++i) place = text.find('\r', place) + 1;
    return place;
  };
  const size_t first = at(2) - 1 - at(1), second = at(3) - 1 - at(2);
  EXPECT_EQ(first, 39u);
  EXPECT_EQ(second, first);  // covers what was there
  EXPECT_EQ(text.substr(at(3)), std::string(at(4) - 1 - at(3), ' ') + "\r");
}

TEST(Progress, NoColorMeansNoEscapes) {
  for (const auto& [value, uses_escapes] : {std::pair("1", false), std::pair("", true)}) {
    setenv("NO_COLOR", value, 1);
    EXPECT_EQ(stderr_progress("train", 10).uses_escapes, uses_escapes) << value;
  }
  unsetenv("NO_COLOR");
  EXPECT_TRUE(stderr_progress("train", 10).uses_escapes);
}

TEST(Progress, UnknownTotalHasNoBarAndNoTimeLeft) {
  Screen screen;
  ProgressConfig config = screen.config(/*is_terminal=*/true);
  config.total = 0;
  Progress progress(screen.out, config);
  screen.now += 10;

  progress.update(7, "lines");

  EXPECT_EQ(screen.out.str(), "\rtrain 7  lines\033[K");
}

TEST(Progress, StderrOfATestIsNotTakenForATerminalWithoutTerm) {
  const char* before = std::getenv("TERM");
  const std::string saved = before ? before : "";
  setenv("TERM", "dumb", 1);

  const ProgressConfig config = stderr_progress("train", 10, 2);

  if (before) setenv("TERM", saved.c_str(), 1);
  EXPECT_FALSE(config.is_terminal);
  EXPECT_GT(config.width(), 0);
  const double earlier = config.seconds();
  EXPECT_LE(earlier, config.seconds());
}

TEST(Progress, TrainingTextScalesTheRate) {
  EXPECT_EQ(training_text(1, 0.25, 999), "loss 1.000, lr 2.50e-01, 999 tokens/s");
  EXPECT_EQ(training_text(-std::nan(""), 0.25, 999), "loss nan, lr 2.50e-01, 999 tokens/s");
  EXPECT_EQ(training_text(1, 0.25, 2.5e6), "loss 1.000, lr 2.50e-01, 2.5M tokens/s");
}

}  // namespace
}  // namespace fathom::monitoring
