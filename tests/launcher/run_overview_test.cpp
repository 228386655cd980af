#include "launcher/run_overview.h"

#include <filesystem>
#include <sstream>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "checkpoint/run_lock.h"
#include "core/base/error.h"
#include "core/base/system.h"
#include "launcher/commands/runs.h"
#include "tests/support/expect_error.h"
#include "tests/support/temporary_directory.h"

namespace fathom::launcher {
namespace {

namespace fs = std::filesystem;

// Run directories as they are left behind.
class Runs : public ::testing::Test {
 protected:
  fs::path make(const std::string& name, const std::string& metrics = "") {
    const fs::path run = directory_ / name;
    fs::create_directories(run / "checkpoints");
    write(run / "config.yaml", "train: {max_steps: 100}\n");
    if (!metrics.empty()) write(run / "metrics.jsonl", metrics);
    return run;
  }
  static void write(const fs::path& path, const std::string& text) {
    support::write_text(path, text);
  }
  // As a process of this host that has ended without releasing it.
  static void abandon(const fs::path& run) {
    const pid_t child = ::fork();
    if (child == 0) {
      auto lock = std::make_unique<checkpoint::RunLock>(checkpoint::RunLock::acquire(run));
      (void)lock.release();
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
  }

  support::TemporaryDirectory directory_;
};

TEST_F(Runs, StandAsTheirResultSays) {
  for (const char* status : {"completed", "failed", "interrupted", "stopped"}) {
    const fs::path run = make(status, "{\"step\":40,\"loss\":3.5}\n");
    write(run / "result.json",
          join("{\"status\":\"", status, "\",\"reason\":\"why\",\"step\":42}\n"));

    const RunOverview seen = overview_of(run);

    EXPECT_EQ(seen.status, status);
    EXPECT_EQ(seen.note, "why");
    EXPECT_EQ(seen.name, status);
    EXPECT_EQ(seen.step, 42);
    EXPECT_EQ(seen.max_steps, 100);
    EXPECT_EQ(seen.loss, 3.5);
    EXPECT_GT(seen.written, 0);
  }
}

TEST_F(Runs, RunWhileTheirProcessLivesAndHaveCrashedWhenItIsGone) {
  const fs::path run = make("run", "{\"step\":1,\"loss\":9.0}\n{\"step\":2,\"loss\":8.0}\n");
  EXPECT_EQ(overview_of(run).status, "crashed");
  {
    const checkpoint::RunLock lock = checkpoint::RunLock::acquire(run);
    const RunOverview seen = overview_of(run);
    EXPECT_EQ(seen.status, "running");
    EXPECT_NE(seen.note.find(join("pid ", ::getpid())), std::string::npos) << seen.note;
    EXPECT_EQ(seen.step, 2);
    EXPECT_EQ(seen.loss, 8);
  }
  EXPECT_EQ(overview_of(run).status, "crashed");  // released, without a result
  abandon(run);
  EXPECT_EQ(overview_of(run).status, "crashed");
}

TEST_F(Runs, OnAnotherHostAreNotSeen) {
  const fs::path run = make("run");
  { const checkpoint::RunLock lock = checkpoint::RunLock::acquire(run); }
  std::string owner = support::read_text(run / ".owner");
  const auto replace = [&owner](const std::string& old, const std::string& by) {
    const size_t at = owner.find(old);
    ASSERT_NE(at, owner.npos) << owner;
    owner.replace(at, old.size(), by);
  };
  replace("\"" + host_name() + "\"", "\"far-away\"");
  replace("\"released\": true", "\"released\": false");
  write(run / ".owner", owner);

  const RunOverview seen = overview_of(run);

  EXPECT_EQ(seen.status, "running");
  EXPECT_NE(seen.note.find("host far-away"), std::string::npos);
  EXPECT_NE(seen.note.find("not seen from here"), std::string::npos);
}

TEST_F(Runs, StepsThatAreDoneAgainDoNotCount) {
  const std::string lines =
      "{\"step\":4,\"loss\":4.0}\n{\"step\":5,\"loss\":5.0}\n"
      "{\"step\":6,\"loss\":6.0}\n{\"marker\":\"resumed\",\"step\":4}\n";
  RunOverview seen = overview_of(make("rewound", lines));
  EXPECT_EQ(seen.step, 4);
  EXPECT_EQ(seen.loss, 4);
  seen = overview_of(make("gone-on", lines + "{\"step\":5,\"loss\":5.5}\n{\"step\":6,\"lo"));
  EXPECT_EQ(seen.step, 5);
  EXPECT_EQ(seen.loss, 5.5);
}

TEST_F(Runs, ShowTheBestValidationOfThoseThatCount) {
  const fs::path run = make("run", "{\"step\":30,\"loss\":4.0}\n");
  const auto validated = [](int step, double loss, double bleu) {
    return join("{\"event\":\"validated\",\"step\":", step, ",\"validation_loss\":", loss,
                ",\"bleu\":", bleu, "}\n");
  };
  write(run / "events.jsonl", "{\"event\":\"started\",\"step\":0}\n" + validated(10, 3, 1) +
                                  validated(20, 1, 9) + validated(10, 2.5, 2) +
                                  "{\"event\":\"resumed\",\"step\":10}\n" + validated(20, 2, 3) +
                                  validated(30, 2.2, 7) + "{\"event\":\"valid");

  RunOverview seen = overview_of(run);
  EXPECT_EQ(seen.validation_loss, 2);
  EXPECT_EQ(seen.validation_step, 20);
  write(run / "config.yaml", "train: {best_metric: bleu}\n");
  seen = overview_of(run);
  EXPECT_EQ(seen.bleu, 7);
  EXPECT_EQ(seen.validation_step, 30);
}

TEST_F(Runs, ThatAreDamagedAreShownAsSuchBesideTheOthers) {
  write(make("a") / "result.json", "{\"status\":5}");
  write(make("b") / "result.json", "\xFF\xFE garbage");
  write(make("c") / ".owner", "no json");
  const fs::path d = make("d", std::string(1000, '\xFF') + "\n[1]\n{\"step\":\"x\"}\n{}\n");
  write(d / "config.yaml", "a: [");
  write(d / "events.jsonl", "{\"event\":5,\"step\":1}\n{\"event\":\"validated\",\"step\":2}\n");
  const fs::path e = make("e");
  ASSERT_EQ(::mkfifo((e / "metrics.jsonl").c_str(), 0600), 0);
  ASSERT_EQ(::mkfifo((e / "result.json").c_str(), 0600), 0);
  const fs::path f = make("f");
  fs::remove(f / "config.yaml");
  fs::create_directory(f / "result.json");
  fs::create_symlink("metrics.jsonl", f / "metrics.jsonl");
  write(f / ".owner", "");
  write(make("ok") / "result.json", R"({"status":"completed","reason":"","step":3})");
  write(directory_ / "file", "no run");
  fs::create_directory(directory_ / "empty");
  fs::create_directory(directory_ / ".hidden");
  write(directory_ / ".hidden" / ".owner", "");

  const std::vector<RunOverview> all = overviews_in(directory_.path());

  std::vector<std::string> names;
  for (const RunOverview& run : all) names.push_back(run.name + " " + run.status);
  EXPECT_EQ(names, (std::vector<std::string>{"a damaged", "b damaged", "c damaged", "d crashed",
                                             "e crashed", "f damaged", "ok completed"}));
}

TEST_F(Runs, AreLookedAtWithoutAWrite) {
  const fs::path run = make("run", "{\"step\":1,\"loss\":9.0}\n");
  const checkpoint::RunLock lock = checkpoint::RunLock::acquire(run);
  write(run / "events.jsonl", "{\"event\":\"started\",\"step\":0}\n");
  std::vector<std::pair<fs::path, fs::file_time_type>> before;
  for (const auto& entry : fs::recursive_directory_iterator(run))
    before.emplace_back(entry.path(), fs::last_write_time(entry.path()));
  fs::permissions(run, fs::perms::owner_read | fs::perms::owner_exec);

  EXPECT_EQ(overview_of(run).status, "running");

  fs::permissions(run, fs::perms::owner_all);
  std::vector<std::pair<fs::path, fs::file_time_type>> after;
  for (const auto& entry : fs::recursive_directory_iterator(run))
    after.emplace_back(entry.path(), fs::last_write_time(entry.path()));
  EXPECT_EQ(before, after);
  EXPECT_TRUE(lock.is_owner());
}

TEST_F(Runs, ArePrintedAsATableOrAsJson) {
  const fs::path run = make("run", "{\"step\":40,\"loss\":3.5}\n");
  write(run / "result.json", R"({"status":"failed","reason":"plateau","step":40})");
  std::ostringstream table, json, one, none;

  EXPECT_EQ(runs({.directory = directory_.path().string()}, table), 0);
  EXPECT_EQ(runs({.directory = directory_.path().string(), .json = true}, json), 0);
  EXPECT_EQ(runs({.directory = run.string()}, one), 0);
  fs::create_directory(directory_ / "none");
  EXPECT_EQ(runs({.directory = (directory_ / "none").string()}, none), 0);

  const std::string text = table.str();
  EXPECT_TRUE(text.starts_with("name  status  step    loss  best validation  last written\n"))
      << text;
  EXPECT_NE(text.find("\nrun   failed  40/100  3.5   -                "), text.npos) << text;
  EXPECT_TRUE(text.ends_with("  plateau\n")) << text;
  EXPECT_EQ(one.str(), text);
  EXPECT_TRUE(json.str().starts_with("{\"name\":\"run\",\"directory\":\"")) << json.str();
  EXPECT_NE(
      json.str().find("\"status\":\"failed\",\"note\":\"plateau\",\"step\":40,\"max_steps\":100,"
                      "\"loss\":3.5,\"age_seconds\":"),
      std::string::npos)
      << json.str();
  EXPECT_EQ(none.str().substr(0, 11), "no runs in ");
  EXPECT_TRUE(support::throws_with<InvalidArgument>("no such directory",
                                                    [] { (void)overviews_in("/nowhere/at/all"); }));
}

}  // namespace
}  // namespace fathom::launcher
