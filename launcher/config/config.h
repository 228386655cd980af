// Everything that a run is configured with, as plain data: one struct per section of the YAML file,
// each field with its default. Ranges and meanings stand in the table of keys (keys.cpp) and, made
// from it, in docs/configuration.md; here only units, and what 0 means.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/data/config.h"
#include "core/model/config.h"
#include "core/optim/config.h"
#include "dist/reducer_options.h"

namespace fathom::launcher {

enum class BestMetric { kLoss, kBleu };
enum class Precision { kFp32, kFp64, kBf16 };
enum class DeviceChoice { kAuto, kCpu, kCuda, kReference };
enum class Backend { kAuto, kMpi, kNccl };
enum class Detail { kRun, kBlock };
enum class VerdictAction { kStop, kReport, kOff };

struct RunConfig {
  std::string name;  // [A-Za-z0-9._-]{1,64}; default: the config file's name without its ending
  std::string directory;  // default: runs/<name>
  uint64_t seed = 1;
};

struct TrainConfig {
  int64_t max_steps = 100'000;
  int64_t max_epochs = 0;         // 0: no limit
  int64_t validate_every = 1000;  // steps; 0: at the end only
  int64_t patience = 0;           // validations without a better value; 0: off
  BestMetric best_metric = BestMetric::kLoss;
  Precision precision = Precision::kFp32;
  DeviceChoice device = DeviceChoice::kAuto;
  int threads = 0;  // per rank; 0: one for each core that is this rank's, see cores.h
};

struct DistConfig {
  Backend backend = Backend::kAuto;
  dist::Reduction reduction = dist::Reduction::kTree;
  std::optional<dist::Overlap> overlap;  // none: where a rank has a spare core
  double bucket_mb = 1;                  // MiB
  bool shard_optimizer = false;
  std::optional<double> timeout_seconds;  // none: by the steps, see time_limits.h
};

struct CheckpointConfig {
  int64_t every_steps = 0;    // 0: off
  double every_minutes = 10;  // 0: off
  int keep_last = 3;
  int keep_best = 1;
  int64_t keep_every = 0;  // steps; 0: off
};

struct MonitoringConfig {
  std::string listen = "127.0.0.1:9464";
  bool required = false;
  int64_t layer_statistics_every = 50;  // steps; 0: off
  Detail detail = Detail::kBlock;
  int64_t max_series = 5000;
  double linger_seconds = 0;
};

struct VerdictConfig {
  int64_t after = 0;  // steps; 0: score::default_verdict_after
  VerdictAction action = VerdictAction::kStop;
};

struct Config {
  RunConfig run;
  model::ModelConfig model;
  data::DataConfig data;
  data::BatchConfig batch;
  optim::OptimizerConfig optimizer;
  TrainConfig train;
  DistConfig dist;
  CheckpointConfig checkpoint;
  MonitoringConfig monitoring;
  VerdictConfig verdict;
};

}  // namespace fathom::launcher
