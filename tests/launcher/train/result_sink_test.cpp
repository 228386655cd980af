#include "launcher/train/result_sink.h"

#include <cmath>

#include <gtest/gtest.h>

#include "tests/launcher/train/sample_records.h"
#include "tests/support/temporary_directory.h"

namespace fathom::launcher {
namespace {

using support::read_text;
using support::TemporaryDirectory;

TEST(ResultSink, WritesHowARunEnded) {
  const TemporaryDirectory run;
  ResultSink sink(run.path());

  sink.finished(sample_end());

  EXPECT_EQ(read_text(run / "result.json"),
            R"({"status":"completed","reason":"reached train.max_steps 7","step":7,)"
            R"("validation_loss":1.0,"perplexity":2.718281828459045,"source_gain":0.5})"
            "\n");
}

TEST(ResultSink, LeavesOutWhatTheRunDoesNotHave) {
  const TemporaryDirectory run;
  ResultSink sink(run.path());
  RunEnd end = sample_end();

  end.validation->source_gain = std::nan("");
  sink.finished(end);
  EXPECT_TRUE(read_text(run / "result.json").ends_with("\"perplexity\":2.718281828459045}\n"));
  end.validation.reset();
  sink.finished(end);
  EXPECT_TRUE(read_text(run / "result.json").ends_with("\"step\":7}\n"));
}

TEST(ResultSink, TellsAVerdictThatDidNotEndTheRun) {
  const TemporaryDirectory run;
  ResultSink sink(run.path());
  RunEnd end = sample_end();
  end.verdict = "blind: It does not read.";

  sink.finished(end);

  EXPECT_TRUE(
      read_text(run / "result.json").ends_with("\"verdict\":\"blind: It does not read.\"}\n"));
}

TEST(ResultSink, SaysWhatEveryResumeChanged) {
  const TemporaryDirectory run;
  ResultSink sink(run.path());
  RunStart start = sample_start();
  start.step = 20;
  start.changes = {{10, "run.seed", "1", "2"}, {20, "train.precision", "fp32", "bf16"}};

  sink.started(start);
  sink.finished(sample_end());

  EXPECT_TRUE(read_text(run / "result.json")
                  .ends_with(R"("changes":[{"step":10,"key":"run.seed","from":"1","to":"2"},)"
                             R"({"step":20,"key":"train.precision","from":"fp32","to":"bf16"}]})"
                             "\n"));
}

TEST(ResultSink, RemovesTheFileOfAnEarlierAttempt) {
  const TemporaryDirectory run;
  support::write_text(run / "result.json", "{}");

  const ResultSink sink(run.path());

  EXPECT_FALSE(std::filesystem::exists(run / "result.json"));
}

}  // namespace
}  // namespace fathom::launcher
