#include "launcher/check_config.h"

#include <filesystem>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "core/base/limits.h"
#include "launcher/check_texts.h"
#include "launcher/config/show.h"
#include "launcher/memory_plan.h"
#include "launcher/metric_catalogue.h"
#include "launcher/train/run_config.h"
#include "launcher/train/run_data.h"
#include "monitoring/endpoint.h"

namespace fathom::launcher {
namespace {

std::string describe_splits(const CheckedTexts& texts) {
  std::string out;
  for (const char* name : {"train", "valid", "test"}) {
    const auto found = texts.splits.find(name);
    out += fmt::format("{}{}: ", out.empty() ? "" : "; ", name);
    if (found == texts.splits.end()) {
      out += "none";
      continue;
    }
    const data::SplitReport& split = found->second;
    out += fmt::format("{} of {} pairs", split.pairs, split.lines);
    if (!split.counts.empty())
      out += fmt::format(" ({} {})", name == std::string("train") ? "left out:" : "repaired:",
                         data::describe(split.counts));
  }
  return out;
}

std::string describe_epoch(const Config& config, const CheckedTexts& texts) {
  const std::string whence = texts.prepared.empty()
                                 ? "an estimate from the text: the data set is not prepared yet"
                                 : "by the data set in " + texts.prepared.string();
  if (texts.steps_per_epoch == 0) return "epoch       unknown: not all texts were read\n";
  const double epochs = double(config.train.max_steps) / double(texts.steps_per_epoch);
  std::string out = fmt::format("epoch       {}{} steps of batch.tokens {}, {}\n",
                                texts.prepared.empty() ? "about " : "", texts.steps_per_epoch,
                                config.batch.tokens, whence);
  out += fmt::format("run         train.max_steps {}, about {:.3g} epochs", config.train.max_steps,
                     epochs);
  if (config.train.max_epochs > 0)
    out += fmt::format("; train.max_epochs {} ends it {}", config.train.max_epochs,
                       double(config.train.max_epochs) < epochs ? "earlier" : "no earlier");
  return out + "\n";
}

int64_t series_of(const Config& config) {
  const int64_t blocks =
      config.monitoring.detail == Detail::kBlock ? model::block_count(config.model) : 0;
  return monitoring::series_needed(metric_catalogue(), blocks, 1);
}

// What the numbers of ranks, series and shards rule out.
void check_for_this_machine(Config config, Problems& problems) {
  const bool is_sound = problems.empty();
  problems.attempt([&] { config = for_these_ranks(config, 1, available_cores()); });
  if (!is_sound) return;  // shards that contradict the batch are named already
  problems.attempt([&] {
    settle_shards(config.batch, std::nullopt);
    check_shards(config, 1);
  });
}

}  // namespace

std::string check_config(const ConfigSource& source, const std::vector<std::string>& overrides,
                         Problems& problems) {
  auto [config, broken] = gather_config(source, overrides, problems);
  const auto is_whole = [&](const char* section) { return !broken.contains(section); };
  if (broken.empty()) check_for_this_machine(config, problems);
  if (is_whole("data")) check_complete(config, source.name, problems);
  if (is_whole("monitoring"))
    problems.attempt([&] { (void)monitoring::parse_listen(config.monitoring.listen); });
  std::optional<CheckedTexts> texts;
  if (is_whole("data")) {
    Config read = config;
    make_paths_absolute(read.data);
    if (!is_whole("batch")) read.batch = {.tokens = INT32_MAX, .micro_tokens = INT32_MAX};
    texts = check_texts(read, problems);
    if (texts->splits.contains("valid") && is_whole("train"))
      problems.attempt([&] { (void)validation_references(read, monitoring::Log({})); });
  }
  if (!problems.empty() || !texts) return "";

  std::string out =
      fmt::format("{}: ok: run {}, config {}\ntexts       {}\n{}", source.name, config.run.name,
                  config_hash(config), describe_splits(*texts), describe_epoch(config, *texts));
  out += fmt::format("series      {} with one rank, of monitoring.max_series {}\n",
                     series_of(config), config.monitoring.max_series);
  config.model.vocabulary_size = texts->pieces;
  problems.attempt([&] { out += describe_memory(config); });
  for (const std::string& warning : texts->warnings) out += "warning: " + warning + "\n";
  return out;
}

}  // namespace fathom::launcher
