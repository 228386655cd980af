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
  RunSinksTest() { std::filesystem::create_directory(run_); }
  Config config(const std::string& listen = "off") {
    Config c;
    c.run.name = "small";
    c.run.directory = run_.string();
    c.monitoring.listen = listen;
    return c;
  }
  static void send_events(RunObserver& observer) {
    observer.started(sample_start());
    observer.step_done(sample_step());
    observer.sync();
    observer.finished(sample_end());
  }

  TemporaryDirectory root_;
  std::filesystem::path run_ = root_ / "run";
  std::ostringstream said_;
  monitoring::Log log_{{}, said_};
};

TEST_F(RunSinksTest, WriteTheFilesOfARunOnRank0) {
  const Config small = config();
  RunSinks sinks(small, {}, -1, false, 0, log_);

  send_events(sinks.observer());

  for (const char* name : {"metrics.jsonl", "events.jsonl", "result.json"})
    EXPECT_FALSE(read_text(run_ / name).empty()) << name;
  EXPECT_FALSE(std::filesystem::exists(run_ / "targets.json"));  // nothing is served
}

TEST_F(RunSinksTest, DoNothingOnOtherRanks) {
  const Config small = config("127.0.0.1:0");
  RunSinks sinks(small, {}, 5, false, 1, log_);

  send_events(sinks.observer());

  EXPECT_TRUE(std::filesystem::is_empty(run_));
  EXPECT_EQ(said_.str(), "");
}

TEST_F(RunSinksTest, SayWhereTheMetricsAreWhileTheyAreServed) {
  {
    const Config small = config("127.0.0.1:0");
    const RunSinks sinks(small, {}, -1, false, 0, log_);

    EXPECT_THAT(read_text(run_ / "targets.json"),
                HasSubstr(R"("labels":{"instance":"small","run":"small"}}])"));
    EXPECT_EQ(read_text(root_ / ".targets" / "run.json"), read_text(run_ / "targets.json"));
    EXPECT_THAT(said_.str(), HasSubstr("metrics: http://127.0.0.1:"));
  }
  EXPECT_FALSE(std::filesystem::exists(run_ / "targets.json"));
  EXPECT_FALSE(std::filesystem::exists(root_ / ".targets" / "run.json"));
}

TEST_F(RunSinksTest, ForgetTargetsOfRunsThatAreGone) {
  std::filesystem::create_directory(root_ / ".targets");
  for (const char* name : {"here", "gone"})
    support::write_text(root_ / ".targets" / join(name, ".json"), "[]");
  std::filesystem::create_directory(root_ / "here");

  const Config small = config("127.0.0.1:0");
  const RunSinks sinks(small, {}, -1, false, 0, log_);

  EXPECT_EQ(support::names_in(root_ / ".targets"),
            (std::vector<std::string>{"here.json", "run.json"}));
}

// A read-only root, say.
TEST_F(RunSinksTest, ServeAlsoWhereTheTargetsOfAllRunsCannotBeWritten) {
  support::write_text(root_ / ".targets", "in the way");

  const Config small = config("127.0.0.1:0");
  const RunSinks sinks(small, {}, -1, false, 0, log_);

  EXPECT_TRUE(std::filesystem::exists(run_ / "targets.json"));
  EXPECT_THAT(said_.str(), HasSubstr("warning: targets: "));
}

// Else Prometheus, told of it by hand, loses the run at each start.
TEST_F(RunSinksTest, KeepThePortOfTheStartBefore) {
  const auto served = [&](const std::string& listen) {
    const Config small = config(listen);
    const RunSinks sinks(small, {}, -1, false, 0, log_);
    return read_text(run_ / "targets.json");
  };
  const std::string first = served("127.0.0.1:0");
  EXPECT_EQ(served("127.0.0.1:0"), first);
  support::write_text(run_ / ".port", "garbage");
  EXPECT_NE(served("127.0.0.1:0"), "");
}

TEST_F(RunSinksTest, WriteTheMetricsForATextfileCollector) {
  const Config small = config();
  RunSinks sinks(small, {}, -1, false, 0, log_);

  send_events(sinks.observer());

  const std::string text = read_text(run_ / "metrics.prom");
  EXPECT_THAT(text, HasSubstr("\nfathom_steps_total{run=\"small\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("\nfathom_run_status{status=\""));
  EXPECT_THAT(text, HasSubstr("fathom_tokens_total{side=\"target\",run=\"small\"} 100\n"));
}

TEST_F(RunSinksTest, GoOnWhereTheFileForTheCollectorCannotBeWritten) {
  std::filesystem::create_directory(run_ / "metrics.prom");
  const Config small = config();
  RunSinks sinks(small, {}, -1, false, 0, log_);

  send_events(sinks.observer());

  EXPECT_FALSE(read_text(run_ / "result.json").empty());
  EXPECT_THAT(said_.str(), HasSubstr("warning: metrics: "));
}

TEST_F(RunSinksTest, LeaveTheFilesAsTheyAreWhereARequiredPortIsTaken) {
  const TemporaryDirectory other;
  const Config first = config("127.0.0.1:0");
  const RunSinks serving(first, {}, -1, false, 0, log_);
  const std::string targets = read_text(run_ / "targets.json");
  const size_t address = targets.find("127.0.0.1:");
  Config taken = config(targets.substr(address, targets.find('"', address) - address));
  taken.run.directory = other.path();
  taken.monitoring.required = true;
  support::write_text(other / "result.json", "{}");

  EXPECT_THROW(RunSinks(taken, {}, 5, false, 0, log_), IoError);

  EXPECT_EQ(support::names_in(other.path()), std::vector<std::string>{"result.json"});
}

}  // namespace
}  // namespace fathom::launcher
