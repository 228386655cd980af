#include "launcher/train/run_config.h"

#include <filesystem>

#include "core/base/error.h"
#include "core/data/batch_plan.h"
#include "launcher/cores.h"
#include "launcher/metric_catalogue.h"

namespace fathom::launcher {
namespace {

// Before the long work, not at the first step that has layer statistics.
void check_series(const Config& config, int ranks) {
  const int64_t blocks =
      config.monitoring.detail == Detail::kBlock ? model::block_count(config.model) : 0;
  const int64_t needed = monitoring::series_needed(metric_catalogue(), blocks, ranks);
  require(needed <= config.monitoring.max_series, "monitoring.max_series: got ",
          config.monitoring.max_series, ", but ", blocks, " blocks on ", ranks,
          ranks == 1 ? " rank need " : " ranks need ", needed, "; raise it",
          blocks > 0 ? ", or set monitoring.detail: run" : "");
}

void check_ranks(const data::BatchConfig& batch, int ranks) {
  require(ranks <= batch.shards, "batch.shards: ", batch.shards,
          " virtual shards cannot be shared out over ", ranks,
          " ranks; start at most that many, or raise batch.shards");
}

}  // namespace

void make_paths_absolute(data::DataConfig& data) {
  for (std::string* path : {&data.train, &data.valid, &data.test, &data.tokenizer_model})
    if (!path->empty()) *path = std::filesystem::absolute(*path).lexically_normal().string();
}

Config for_these_ranks(Config config, int ranks, int cores) {
  make_paths_absolute(config.data);
  // The working directory may be moved aside with the run.
  config.run.directory =
      std::filesystem::absolute(config.run.directory).lexically_normal().string();
  config.train.threads = threads_per_rank(config, cores);
  if (config.batch.shards > 0) check_ranks(config.batch, ranks);
  check_series(config, ranks);
  return config;
}

void settle_shards(data::BatchConfig& batch, const std::optional<Config>& before) {
  if (batch.shards > 0) return;
  batch.shards = before ? before->batch.shards : data::resolved_shards(batch);
}

void check_shards(const Config& config, int ranks) {
  const data::BatchConfig& batch = config.batch;
  check_ranks(batch, ranks);
  const int64_t needed = data::fewest_shards(batch);
  require(config.dist.reduction != dist::Reduction::kTree || needed <= batch.shards,
          "batch.micro_tokens: got ", batch.micro_tokens, ", but a shard of batch.tokens ",
          batch.tokens, " in the run's ", batch.shards,
          " shards has more; raise batch.micro_tokens to ",
          (batch.tokens + batch.shards - 1) / batch.shards, ", or batch.shards to ", needed);
}

}  // namespace fathom::launcher
