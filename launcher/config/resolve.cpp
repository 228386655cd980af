#include "launcher/config/resolve.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/data/batch_plan.h"
#include "core/topology/registry.h"
#include "launcher/config/schema.h"

namespace fathom::launcher {
namespace {

// A config and where its values were given.
struct Given {
  const Config& config;
  const Settings& settings;
  const std::string& source;
  Problems& problems;

  [[nodiscard]] Setting find(std::string_view key) const {
    const auto found = settings.find(key);
    return found == settings.end() ? Setting{.place = source} : found->second;
  }
  [[nodiscard]] Strength strength(std::string_view key) const { return find(key).strength; }
  [[nodiscard]] bool has(std::string_view key) const { return strength(key) > Strength::kDefault; }
  // "model.width (256)"
  [[nodiscard]] std::string with_value(const std::string& key) const {
    return key + " (" + value_of(config, key) + ")";
  }

  // A key left at its default has no place of its own: then the other key of the rule is shown.
  void refuse(const std::string& key, const std::string& other, const std::string& allowed) const {
    problems.add(InvalidArgument(join(find(has(key) ? key : other).place, ": ", key, ": got ",
                                      value_of(config, key), has(key) ? "" : " (the default)",
                                      ", allowed ", allowed)));
  }
};

// Sets `field`, which belongs to `key`, to what `by` implies, unless it was given by a place as
// strong as `by` or stronger: then it must agree.
template <class T>
void imply(const Given& given, const std::string& key, T& field, T implied, const std::string& by) {
  const bool holds = given.has(key) && given.strength(key) >= given.strength(by);
  if (holds && field != implied)
    given.refuse(key, by, join(implied, " with ", by, " ", value_of(given.config, by)));
  field = implied;
}

// After this the map holds each option of the topology and nothing else.
void imply_topology_options(const Given& given, model::ModelConfig& model) {
  const auto& known = topology::find_topology(model.topology).options;
  std::map<std::string, std::string> options;
  for (const auto& [name, value] : model.topology_options) {
    const std::string key = "model.topology_options." + name;
    const topology::TopologyOption* option = topology::find_option(known, name);
    if (option && !option->accepts(value))
      given.refuse(key, key, option->allowed() + " with " + given.with_value("model.topology"));
    if (!option && given.strength(key) >= given.strength("model.topology"))
      given.problems.add(
          InvalidArgument(join(given.find(key).place, ": ", key, ": got ", value, ", but topology ",
                               model.topology, " has no such option")));
    if (option) options.emplace(name, value);
  }
  for (const topology::TopologyOption& option : known)
    options.emplace(option.name, option.default_value);
  model.topology_options = options;
}

void check_model(const Given& given) {
  for (const model::Contradiction& wrong : model::contradictions(given.config.model)) {
    const bool blames_other = given.has(wrong.other) && !given.has(wrong.key);
    if (blames_other)
      given.refuse(wrong.other, wrong.other, wrong.other_allowed);
    else
      given.refuse(wrong.key, wrong.other, wrong.allowed);
  }
}

void check_batch(const Given& given) {
  const data::BatchConfig& batch = given.config.batch;
  const bool is_cut = given.config.dist.reduction == dist::Reduction::kTree && batch.shards > 0;
  const int64_t needed = data::fewest_shards(batch);
  if (is_cut && batch.shards < needed)
    given.refuse(
        "batch.shards", "batch.tokens",
        join("at least ", needed, " with ", given.with_value("batch.tokens"), ", ",
             given.with_value("batch.micro_tokens"), " and ", given.with_value("dist.reduction")));
}

void check_schedule(const Given& given) {
  using optim::Schedule;
  const optim::OptimizerConfig& c = given.config.optimizer;
  const std::string schedule = given.with_value("optimizer.schedule");
  const bool decays_to_end = c.schedule == Schedule::kCosine || c.schedule == Schedule::kLinear;
  if (!decays_to_end && c.warmup_steps == 0)
    given.refuse("optimizer.warmup_steps", "optimizer.schedule",
                 "at least 1 with " + schedule + "; without warm-up choose inverse-sqrt-w1");
  if (decays_to_end && c.warmup_steps >= given.config.train.max_steps)
    given.refuse("optimizer.warmup_steps", "train.max_steps",
                 "fewer than " + given.with_value("train.max_steps") + " with " + schedule);
  const bool has_ramp = decays_to_end || c.schedule == Schedule::kInverseSqrt;
  if (has_ramp && c.warmup_start > c.learning_rate)
    given.refuse("optimizer.warmup_start", "optimizer.learning_rate",
                 "at most " + given.with_value("optimizer.learning_rate"));
}

void check_train(const Given& given) {
  const TrainConfig& train = given.config.train;
  if (train.precision != Precision::kFp32 && train.device != DeviceChoice::kReference)
    given.refuse("train.precision", "train.device",
                 "fp32, or fp64 and bf16 with train.device: reference");
  const bool is_decoder = given.config.model.kind == model::ModelKind::kDecoder;
  if (train.best_metric == BestMetric::kBleu && is_decoder)
    given.refuse("train.best_metric", "model.kind", "loss with " + given.with_value("model.kind"));
  if (train.patience > 0 && train.validate_every == 0)
    given.refuse("train.patience", "train.validate_every",
                 "0 (off) with " + given.with_value("train.validate_every"));
}

void check_checkpoint(const Given& given) {
  const CheckpointConfig& checkpoint = given.config.checkpoint;
  const std::string steps = given.with_value("checkpoint.every_steps");
  if (checkpoint.keep_every == 0) return;
  if (checkpoint.every_steps == 0)
    given.refuse("checkpoint.keep_every", "checkpoint.every_steps",
                 "0 (off) with " + steps + "; set every_steps to save at such steps");
  else if (checkpoint.keep_every % checkpoint.every_steps != 0)
    given.refuse("checkpoint.keep_every", "checkpoint.every_steps", "a multiple of " + steps);
}

// A rule and the sections that it looks at.
struct Rule {
  std::vector<std::string> sections;
  void (*apply)(const Given& given, Config& config);
};

const Rule kRules[] = {
    {{"model"},
     [](const Given& given, Config& config) {
       if (config.model.kind == model::ModelKind::kDecoder)
         imply(given, "model.encoder_layers", config.model.encoder_layers, 0, "model.kind");
     }},
    {{"optimizer"},
     [](const Given& given, Config& config) {
       if (config.optimizer.schedule == optim::Schedule::kInverseSqrtW1)
         imply(given, "optimizer.warmup_steps", config.optimizer.warmup_steps, int64_t{1},
               "optimizer.schedule");
     }},
    {{"run"},
     [](const Given&, Config& config) {
       if (config.run.directory.empty()) config.run.directory = "runs/" + config.run.name;
     }},
    {{"model"}, [](const Given& given, Config& c) { imply_topology_options(given, c.model); }},
    {{"model"}, [](const Given& given, Config&) { check_model(given); }},
    {{"batch", "dist"}, [](const Given& given, Config&) { check_batch(given); }},
    {{"optimizer", "train"}, [](const Given& given, Config&) { check_schedule(given); }},
    {{"train", "model"}, [](const Given& given, Config&) { check_train(given); }},
    {{"checkpoint"}, [](const Given& given, Config&) { check_checkpoint(given); }}};

}  // namespace

void resolve(Config& config, const Settings& settings, const std::string& source,
             const std::set<std::string>& broken, Problems& problems) {
  const Given given = {config, settings, source, problems};
  const auto is_broken = [&](const std::string& section) { return broken.contains(section); };
  for (const Rule& rule : kRules)
    if (std::ranges::none_of(rule.sections, is_broken)) rule.apply(given, config);
}

}  // namespace fathom::launcher
