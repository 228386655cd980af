// What a run's config becomes on this machine, with these ranks, and after what was trained so far.
#pragma once

#include <optional>

#include "launcher/config/config.h"

namespace fathom::launcher {

// Of texts and tokenizer: a run, its checkpoints and its config.yaml mean the same from any working
// directory.
void make_paths_absolute(data::DataConfig& data);

// With the threads of a rank that has so many cores, and paths of texts absolute. InvalidArgument
// when more series would be served than monitoring.max_series, and when the config names fewer
// shards than there are ranks.
[[nodiscard]] Config for_these_ranks(Config config, int ranks, int cores);

// A run keeps the virtual shards that it began with: where the config leaves batch.shards open they
// are those of `before`, the config of the checkpoint that is resumed, else those that follow from
// the batch.
void settle_shards(data::BatchConfig& batch, const std::optional<Config>& before);

// InvalidArgument when they are fewer than the ranks, or under dist.reduction tree too few for
// batch.micro_tokens.
void check_shards(const Config& config, int ranks);

}  // namespace fathom::launcher
