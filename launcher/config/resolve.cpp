#include "launcher/config/resolve.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/topology/registry.h"
#include "launcher/config/schema.h"

namespace fathom::launcher {

namespace {

class Resolver {
 public:
  Resolver(Config& config, const Origins& origins, const std::string& source)
      : config_(config), origins_(origins), source_(source) {}

  void run();

 private:
  [[nodiscard]] Origin origin(std::string_view key) const {
    const auto found = origins_.find(key);
    return found == origins_.end() ? Origin{.strength = Strength::kDefault, .place = source_}
                                   : found->second;
  }

  // A key left at its default has no place of its own: then the other key of the rule is shown.
  [[noreturn]] void refuse(const std::string& key, const std::string& other,
                           const std::string& allowed) const {
    const bool given = origins_.contains(key);
    fail(given ? origin(key).place : origin(other).place, ": ", key, ": got ",
         value_of(config_, key), given ? "" : " (the default)", ", allowed ", allowed);
  }

  // "model.width (256)"
  [[nodiscard]] std::string with_value(const std::string& key) const {
    return key + " (" + value_of(config_, key) + ")";
  }

  // Sets `field`, which belongs to `key`, to what `by` implies, unless it was given by a place as
  // strong as `by` or stronger: then it must agree.
  template <class T>
  void imply(const std::string& key, T& field, T implied, const std::string& by) {
    const Origin own = origin(key);
    const bool holds = own.strength != Strength::kDefault && own.strength >= origin(by).strength;
    if (holds && field != implied)
      refuse(key, by, join(implied, " with ", by, " ", value_of(config_, by)));
    field = implied;
  }

  void imply_all();
  void imply_topology_options();
  void check_model() const;
  void check_batch() const;
  void check_schedule() const;
  void check_train() const;
  void check_checkpoint() const;

  Config& config_;
  const Origins& origins_;
  const std::string& source_;
};

void Resolver::run() {
  imply_all();
  imply_topology_options();
  check_model();
  check_batch();
  check_schedule();
  check_train();
  check_checkpoint();
}

void Resolver::imply_all() {
  if (config_.model.kind == model::ModelKind::kDecoder)
    imply("model.encoder_layers", config_.model.encoder_layers, 0, "model.kind");
  if (config_.optimizer.schedule == optim::Schedule::kInverseSqrtW1)
    imply("optimizer.warmup_steps", config_.optimizer.warmup_steps, int64_t{1},
          "optimizer.schedule");
  if (config_.run.directory.empty()) config_.run.directory = "runs/" + config_.run.name;
}

// After this the map holds each option of the topology and nothing else.
void Resolver::imply_topology_options() {
  auto& options = config_.model.topology_options;
  const auto& known = topology::find_topology(config_.model.topology).options;
  for (auto option = options.begin(); option != options.end();) {
    const std::string key = "model.topology_options." + option->first;
    const Origin own = origin(key);
    const auto declared = std::find_if(known.begin(), known.end(),
                                       [&](const auto& o) { return o.name == option->first; });
    const bool is_known = declared != known.end();
    if (is_known && !declared->accepts(option->second))
      refuse(key, "model.topology", declared->allowed() + " with " + with_value("model.topology"));
    if (!is_known && own.strength >= origin("model.topology").strength)
      fail(own.place, ": ", key, ": got ", option->second, ", but topology ",
           config_.model.topology, " has no such option");
    option = is_known ? std::next(option) : options.erase(option);
  }
  for (const topology::TopologyOption& option : known)
    options.emplace(option.name, option.default_value);
}

void Resolver::check_model() const {
  const model::ModelConfig& model = config_.model;
  if (model.kind == model::ModelKind::kEncoderDecoder && model.encoder_layers == 0)
    refuse("model.encoder_layers", "model.depth",
           "at least 1 in an encoder-decoder; for a decoder set model.kind: decoder");
  if (model.width % 2 != 0)
    refuse("model.width", "model.width", "an even number: half of the positions are sines");
  if (model.width % model.heads != 0) {
    const bool blame_heads = origins_.contains("model.heads") || !origins_.contains("model.width");
    if (blame_heads)
      refuse("model.heads", "model.width", "a divisor of " + with_value("model.width"));
    refuse("model.width", "model.heads", "a multiple of " + with_value("model.heads"));
  }
}

void Resolver::check_batch() const {
  const data::BatchConfig& batch = config_.batch;
  const bool is_cut = config_.dist.reduction == Reduction::kTree && batch.shards > 0;
  // Under `tree` a shard is one forward and backward pass.
  const int64_t needed = (batch.tokens + batch.micro_tokens - 1) / batch.micro_tokens;
  if (is_cut && batch.shards < needed)
    refuse("batch.shards", "batch.tokens",
           join("at least ", needed, " with ", with_value("batch.tokens"), ", ",
                with_value("batch.micro_tokens"), " and ", with_value("dist.reduction")));
}

void Resolver::check_schedule() const {
  using optim::Schedule;
  const optim::OptimizerConfig& optimizer = config_.optimizer;
  const Schedule schedule = optimizer.schedule;
  const bool decays_to_end = schedule == Schedule::kCosine || schedule == Schedule::kLinear;
  if (!decays_to_end && optimizer.warmup_steps == 0)
    refuse("optimizer.warmup_steps", "optimizer.schedule",
           "at least 1 with " + with_value("optimizer.schedule") +
               "; without warm-up choose inverse-sqrt-w1");
  if (decays_to_end && optimizer.warmup_steps >= config_.train.max_steps)
    refuse("optimizer.warmup_steps", "train.max_steps",
           "fewer than " + with_value("train.max_steps") + " with " +
               with_value("optimizer.schedule"));
  const bool has_ramp = decays_to_end || schedule == Schedule::kInverseSqrt;
  if (has_ramp && optimizer.warmup_start > optimizer.learning_rate)
    refuse("optimizer.warmup_start", "optimizer.learning_rate",
           "at most " + with_value("optimizer.learning_rate"));
}

void Resolver::check_train() const {
  const TrainConfig& train = config_.train;
  if (train.precision != Precision::kFp32 && train.device != DeviceChoice::kReference)
    refuse("train.precision", "train.device",
           "fp32, or fp64 and bf16 with train.device: reference");
  if (train.best_metric == BestMetric::kBleu && config_.model.kind == model::ModelKind::kDecoder)
    refuse("train.best_metric", "model.kind", "loss with " + with_value("model.kind"));
  if (train.patience > 0 && train.validate_every == 0)
    refuse("train.patience", "train.validate_every",
           "0 (off) with " + with_value("train.validate_every"));
}

void Resolver::check_checkpoint() const {
  const CheckpointConfig& checkpoint = config_.checkpoint;
  if (checkpoint.keep_every == 0) return;
  if (checkpoint.every_steps == 0)
    refuse("checkpoint.keep_every", "checkpoint.every_steps",
           "0 (off) with " + with_value("checkpoint.every_steps") +
               "; set every_steps to save at such steps");
  if (checkpoint.keep_every % checkpoint.every_steps != 0)
    refuse("checkpoint.keep_every", "checkpoint.every_steps",
           "a multiple of " + with_value("checkpoint.every_steps"));
}

}  // namespace

void resolve(Config& config, const Origins& origins, const std::string& source) {
  Resolver(config, origins, source).run();
}

}  // namespace fathom::launcher
