#include "launcher/train/run_sinks.h"

#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/launcher/train/sample_records.h"
#include "tests/support/temporary_directory.h"

namespace fathom::launcher {
namespace {

using support::read_text;
using support::TemporaryDirectory;
using ::testing::HasSubstr;

class RunSinksTest : public ::testing::Test {
 protected:
  Config config(const std::string& listen = "off") {
    Config c;
    c.run.name = "small";
    c.run.directory = run_.path();
    c.monitoring.listen = listen;
    return c;
  }
  static void send_events(RunObserver& observer) {
    observer.started(sample_start());
    observer.step_done(sample_step());
    observer.sync();
    observer.finished(sample_end());
  }

  TemporaryDirectory run_;
  std::ostringstream said_;
  monitoring::Log log_{{}, said_};
};

TEST_F(RunSinksTest, WriteTheFilesOfARunOnRank0) {
  RunSinks sinks(config(), {}, -1, false, 0, 2, log_);

  send_events(sinks.observer());

  for (const char* name : {"metrics.jsonl", "events.jsonl", "result.json"})
    EXPECT_FALSE(read_text(run_ / name).empty()) << name;
  EXPECT_FALSE(std::filesystem::exists(run_ / "targets.json"));  // nothing is served
}

TEST_F(RunSinksTest, DoNothingOnOtherRanks) {
  RunSinks sinks(config("127.0.0.1:0"), {}, 5, false, 1, 2, log_);

  send_events(sinks.observer());

  EXPECT_TRUE(std::filesystem::is_empty(run_.path()));
  EXPECT_EQ(said_.str(), "");
}

TEST_F(RunSinksTest, SayWhereTheMetricsAreWhileTheyAreServed) {
  {
    const RunSinks sinks(config("127.0.0.1:0"), {}, -1, false, 0, 2, log_);

    EXPECT_THAT(read_text(run_ / "targets.json"), HasSubstr(R"("labels":{"run":"small")"));
    EXPECT_THAT(said_.str(), HasSubstr("metrics: http://127.0.0.1:"));
  }
  EXPECT_FALSE(std::filesystem::exists(run_ / "targets.json"));
}

TEST_F(RunSinksTest, LeaveTheFilesAsTheyAreWhereARequiredPortIsTaken) {
  const TemporaryDirectory other;
  const RunSinks serving(config("127.0.0.1:0"), {}, -1, false, 0, 2, log_);
  const std::string targets = read_text(run_ / "targets.json");
  const size_t address = targets.find("127.0.0.1:");
  Config taken = config(targets.substr(address, targets.find('"', address) - address));
  taken.run.directory = other.path();
  taken.monitoring.required = true;
  support::write_text(other / "result.json", "{}");

  EXPECT_THROW(RunSinks(taken, {}, 5, false, 0, 2, log_), IoError);

  EXPECT_EQ(support::names_in(other.path()), std::vector<std::string>{"result.json"});
}

}  // namespace
}  // namespace fathom::launcher
