#include "monitoring/log.h"

#include <sstream>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/temporary_directory.h"

namespace fathom::monitoring {
namespace {

using ::testing::MatchesRegex;

std::string everything(const LogConfig& config) {
  std::ostringstream out;
  const Log log(config, out);
  log.debug("d");
  log.info("i");
  log.warn("w");
  log.error("e");
  return out.str();
}

TEST(Log, OneLinePerMessageWithTimeAndLevel) {
  EXPECT_THAT(everything({}), MatchesRegex("[0-9:]+ info: i\n[0-9:]+ warning: w\n"
                                           "[0-9:]+ error: e\n"));
}

TEST(Log, NamesTheRankWhenThereAreSeveral) {
  EXPECT_THAT(everything({.level = LogLevel::kError, .rank = 0, .size = 4}),
              MatchesRegex("[0-9:]+ rank 0/4 error: e\n"));
}

TEST(Log, OtherRanksPrintWarningsAndErrorsOnly) {
  EXPECT_THAT(everything({.level = LogLevel::kDebug, .rank = 3, .size = 4}),
              MatchesRegex("[0-9:]+ rank 3/4 warning: w\n[0-9:]+ rank 3/4 error: e\n"));
}

TEST(Log, IsAlsoInAFileWithWhatWasSaidBefore) {
  const support::TemporaryDirectory directory;
  for (int start = 0; start < 2; ++start) {
    std::ostringstream out;
    Log log({.level = LogLevel::kWarning}, out);
    log.debug("d");
    log.info("before");
    log.also_to(directory / "log.txt");
    log.warn("after");
    log.note("of the file alone");
    EXPECT_THAT(out.str(), MatchesRegex("[0-9:]+ warning: after\n"));
  }
  constexpr const char* kOnce =
      "[0-9]+-[0-9-]+ [0-9:]+ info: before\n"
      "[0-9: -]+ warning: after\n"
      "[0-9: -]+ info: of the file alone\n";
  EXPECT_THAT(support::read_text(directory / "log.txt"), MatchesRegex(std::string(kOnce) + kOnce));
}

TEST(Log, OfAnotherRankIsInNoFile) {
  const support::TemporaryDirectory directory;
  std::ostringstream out;
  Log log({.rank = 1, .size = 2}, out);
  log.warn("before");
  log.also_to(directory / "log.txt");
  log.warn("after");
  EXPECT_FALSE(std::filesystem::exists(directory / "log.txt"));
}

TEST(Log, GoesOnWhereItsFileCannotBeOpened) {
  const support::TemporaryDirectory directory;
  std::ostringstream out;
  Log log({}, out);
  std::filesystem::create_directory(directory / "log.txt");
  log.also_to(directory / "log.txt");
  log.info("after");
  EXPECT_THAT(out.str(), MatchesRegex("[0-9:]+ warning: log: .*log.txt.*\n[0-9:]+ info: after\n"));
}

TEST(Log, TextIsNotAFormat) {
  std::ostringstream out;

  Log({}, out).warn("100% {} %s {0}");

  EXPECT_THAT(out.str(), MatchesRegex("[0-9:]+ warning: 100% \\{\\} %s \\{0\\}\n"));
}

TEST(Log, TheHookRunsBeforePrintedLinesOnly) {
  std::ostringstream out;
  Log log({}, out);
  log.before_line([&out] { out << "<clear>"; });

  log.debug("not shown");
  log.info("shown");

  EXPECT_THAT(out.str(), MatchesRegex("<clear>[0-9:]+ info: shown\n"));
}

TEST(Log, LinesOfSeveralThreadsStayWhole) {
  std::ostringstream out;
  const Log log({}, out);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&log] {
      for (int i = 0; i < 100; ++i) log.info("whole");
    });
  for (std::thread& thread : threads) thread.join();

  std::istringstream lines(out.str());
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count)
    EXPECT_THAT(line, MatchesRegex("[0-9:]+ info: whole"));
  EXPECT_EQ(count, 400);
}

}  // namespace
}  // namespace fathom::monitoring
