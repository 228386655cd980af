// A whole training run on a small corpus, as `fathom train` makes it.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "checkpoint/resolve.h"
#include "launcher/config/load.h"
#include "launcher/train/training_run.h"
#include "tests/core/data/data_support.h"
#include "tests/dist/rank_threads.h"
#include "tests/support/temporary_directory.h"

namespace fathom::launcher {

class TrainingRunTest : public ::testing::Test {
 protected:
  TrainingRunTest() {
    for (const char* split : {"train", "valid"})
      for (const bool german : {false, true})
        support::write_text(directory_ / join(split, german ? ".xx" : ".yy"),
                            data::testing::sentences(60, german));
    ::testing::internal::CaptureStderr();
  }
  ~TrainingRunTest() override {
    if (is_capturing_) ::testing::internal::GetCapturedStderr();
  }

  [[nodiscard]] Config config(const std::vector<std::string>& changes = {},
                              const std::string& run = "run") const {
    std::vector<std::string> keys = {
        "run.directory=" + (directory_ / run).string(),
        "data.train=" + (directory_ / "train").string(),
        "data.valid=" + (directory_ / "valid").string(),
        "data.directory=" + (directory_ / "prepared").string(),
    };
    keys.insert(keys.end(), changes.begin(), changes.end());
    return parse_config(R"(
model: {depth: E1D1, width: 8, ffn_width: 12, heads: 2}
data: {source: xx, target: yy, vocabulary_size: 90, max_length: 80}
batch: {tokens: 200, micro_tokens: 100, shards: 4}
train: {max_steps: 3, validate_every: 2, threads: 1, device: reference}
monitoring: {listen: "off"}
verdict: {after: 1000000}
)",
                        "c.yaml", "small", keys);
  }

  // As `fathom train` does it; where an earlier start has ended the run, that end.
  struct Trained {
    TrainResult result;
    int64_t first_step = -1;  // before the first one of this start; -1: there was nothing to do
  };
  static Trained train(const Config& config, const RunOptions& options = {}, int ranks = 1) {
    Trained out;
    dist::run_ranks(ranks, [&](dist::Communicator& group) {
      Trained mine;
      TrainingRun run(config, options, group);
      if (const std::optional<TrainResult> end = run.earlier_end()) {
        mine.result = *end;
      } else {
        run.open();
        mine.first_step = run.loop().state().step;
        mine.result = run.loop().run();
        run.finish(mine.result);
      }
      if (group.rank() == 0) out = mine;
    });
    return out;
  }

  [[nodiscard]] nlohmann::json result(const std::string& run = "run") const {
    return nlohmann::json::parse(support::read_text(directory_ / run / "result.json"));
  }
  // By array; equal hashes are equal bits.
  [[nodiscard]] std::map<std::string, std::string> hashes(const std::string& run) const {
    std::map<std::string, std::string> out;
    const checkpoint::Checkpoint checkpoint = checkpoint::open_checkpoint(directory_ / run);
    for (const checkpoint::ArrayInfo& info : checkpoint.manifest().arrays)
      out[info.name] = info.hash;
    return out;
  }
  std::string said() {
    is_capturing_ = false;
    return ::testing::internal::GetCapturedStderr();
  }

  support::TemporaryDirectory directory_;
  bool is_capturing_ = true;
};

}  // namespace fathom::launcher
