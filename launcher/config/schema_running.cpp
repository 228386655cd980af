// The sections `train`, `dist`, `checkpoint`, `monitoring` and `verdict` of the table of keys.
#include "launcher/config/schema_builders.h"
#include "monitoring/endpoint.h"

namespace fathom::launcher {

namespace {

void add_train_keys(std::vector<Key>& keys) {
  keys.push_back(integer_key(
      "train.max_steps", [](auto& c) -> auto& { return c.train.max_steps; }, 1, kMostSteps,
      "The run ends after this many optimizer steps in all, resumed ones included."));
  keys.push_back(integer_key(
      "train.max_epochs", [](auto& c) -> auto& { return c.train.max_epochs; }, 0, kMostSteps,
      "The run ends after this many passes over the training set, if max_steps is not reached "
      "before. 0: no limit."));
  keys.push_back(integer_key(
      "train.validate_every", [](auto& c) -> auto& { return c.train.validate_every; }, 0,
      kMostSteps, "Steps from one validation to the next. 0: at the end only."));
  keys.push_back(integer_key(
      "train.patience", [](auto& c) -> auto& { return c.train.patience; }, 0, kMostSteps,
      "The run ends after this many validations without a better best_metric. 0: off."));
  keys.push_back(choice_key(
      "train.best_metric", [](auto& c) -> auto& { return c.train.best_metric; },
      {{"loss", BestMetric::kLoss}, {"bleu", BestMetric::kBleu}},
      "What makes a validation the best one."));
  keys.push_back(choice_key(
      "train.precision", [](auto& c) -> auto& { return c.train.precision; },
      {{"fp32", Precision::kFp32}, {"bf16", Precision::kBf16}, {"fp64", Precision::kFp64}},
      "Type of matrices and activations; bf16 keeps fp32 master weights. bf16 and fp64 on device "
      "reference only."));
  keys.push_back(without(
      choice_key(
          "train.device", [](auto& c) -> auto& { return c.train.device; },
          {{"auto", DeviceChoice::kAuto},
           {"cpu", DeviceChoice::kCpu},
           {"cuda", DeviceChoice::kCuda},
           {"reference", DeviceChoice::kReference}},
          "What computes: the fast kernels of the CPU, a GPU, or the slow plain loops that are the "
          "specification."),
      "cuda", "this program has no GPU kernels yet; available: auto, cpu, reference"));
  keys.push_back(integer_key(
      "train.threads", [](auto& c) -> auto& { return c.train.threads; }, 0, 1024,
      "Threads of a rank. 0: the cores that the rank may use."));
}

void add_dist_keys(std::vector<Key>& keys) {
  keys.push_back(without(
      choice_key(
          "dist.backend", [](auto& c) -> auto& { return c.dist.backend; },
          {{"auto", Backend::kAuto}, {"mpi", Backend::kMpi}, {"nccl", Backend::kNccl}},
          "What carries gradients between ranks."),
      "nccl", "it needs device cuda, which this program does not have yet; available: auto, mpi"));
  keys.push_back(choice_key(
      "dist.reduction", [](auto& c) -> auto& { return c.dist.reduction; },
      {{"tree", Reduction::kTree}, {"fast", Reduction::kFast}},
      "tree: one fixed order of sums, the same bits on any number of ranks. fast: plain "
      "all-reduce (or reduce-scatter), equal up to rounding."));
  keys.push_back(choice_key(
      "dist.overlap", [](auto& c) -> auto& { return c.dist.overlap; },
      {{"auto", Overlap::kAuto}, {"on", Overlap::kOn}, {"off", Overlap::kOff}},
      "Exchange gradients while the backward pass goes on. auto: where a rank has a spare core."));
  keys.push_back(number_key(
      "dist.bucket_mb", [](auto& c) -> auto& { return c.dist.bucket_mb; },
      {.low = 0, .high = 1024, .open_low = true}, "Size of a piece of the gradient, in MiB."));
  keys.push_back(boolean_key(
      "dist.shard_optimizer", [](auto& c) -> auto& { return c.dist.shard_optimizer; },
      "Keep a slice of the optimizer's state on each rank instead of all of it. Under tree the "
      "result has the same bits either way."));
  keys.push_back(number_key(
      "dist.timeout_seconds", [](auto& c) -> auto& { return c.dist.timeout_seconds; },
      {.low = 0, .high = 1e6, .open_low = true},
      "A rank that waits longer than this for its peers stops the run; in validation and saving "
      "ten times as long, at most an hour, during set-up at most six."));
}

void add_checkpoint_keys(std::vector<Key>& keys) {
  keys.push_back(integer_key(
      "checkpoint.every_steps", [](auto& c) -> auto& { return c.checkpoint.every_steps; }, 0,
      kMostSteps,
      "Steps from one save to the next. 0: off. The last step is always saved, and with keep_best "
      "every validation that is the best so far."));
  keys.push_back(number_key(
      "checkpoint.every_minutes", [](auto& c) -> auto& { return c.checkpoint.every_minutes; },
      {.low = 0, .high = 1e6}, "Minutes from one save to the next. 0: off."));
  keys.push_back(integer_key(
      "checkpoint.keep_last", [](auto& c) -> auto& { return c.checkpoint.keep_last; }, 1, 1'000'000,
      "Newest checkpoints that are kept."));
  keys.push_back(integer_key(
      "checkpoint.keep_best", [](auto& c) -> auto& { return c.checkpoint.keep_best; }, 0, 1'000'000,
      "Best checkpoints that are kept, by train.best_metric. 0: none for that reason."));
  keys.push_back(integer_key(
      "checkpoint.keep_every", [](auto& c) -> auto& { return c.checkpoint.keep_every; }, 0,
      kMostSteps,
      "Checkpoints whose step is a multiple of this are kept for ever; a multiple of every_steps. "
      "0: off."));
}

void add_monitoring_keys(std::vector<Key>& keys) {
  keys.push_back(text_key(
      "monitoring.listen", [](auto& c) -> auto& { return c.monitoring.listen; },
      {monitoring::kListenForms, monitoring::is_listen},
      "Where Prometheus finds the metrics. A taken port is replaced by a free one, which is "
      "printed and put in targets.json. Port 0: any free one."));
  keys.push_back(boolean_key(
      "monitoring.required", [](auto& c) -> auto& { return c.monitoring.required; },
      "Stop when the metrics cannot be served at the address asked for."));
  keys.push_back(integer_key(
      "monitoring.layer_statistics_every",
      [](auto& c) -> auto& { return c.monitoring.layer_statistics_every; }, 0, kMostSteps,
      "Steps from one set of layer statistics to the next. 0: off."));
  keys.push_back(choice_key(
      "monitoring.detail", [](auto& c) -> auto& { return c.monitoring.detail; },
      {{"run", Detail::kRun}, {"block", Detail::kBlock}},
      "Served series: those of the whole run, or also those of every block of every layer."));
  keys.push_back(integer_key(
      "monitoring.max_series", [](auto& c) -> auto& { return c.monitoring.max_series; }, 1,
      1'000'000, "Most series that are served; a run that would need more is refused at start."));
}

}  // namespace

void add_running_keys(std::vector<Key>& keys) {
  add_train_keys(keys);
  add_dist_keys(keys);
  add_checkpoint_keys(keys);
  add_monitoring_keys(keys);
  keys.push_back(integer_key(
      "verdict.after", [](auto& c) -> auto& { return c.verdict.after; }, 0, kMostSteps,
      "Step from which a run may be judged failed by plateau or blindness. 0: the smaller of half "
      "of max_steps and the larger of 8000 and twice the warm-up (4000 if the schedule has "
      "none)."));
}

}  // namespace fathom::launcher
