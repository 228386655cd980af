// How much memory of its device a rank needs for what it holds all the time, by a formula: nothing
// is read and nothing is allocated. Activations come on top; they grow with batch.micro_tokens.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "launcher/config/config.h"

namespace fathom::launcher {

// Bytes.
struct RankMemory {
  int ranks = 1;
  int64_t weights = 0;    // masters, working weights where they are others, the model's tables
  int64_t gradients = 0;  // one buffer per partial sum
  int64_t moments = 0;    // whole, or what the rank owns
  int64_t staging = 0;    // of a bucket on its way between ranks
  [[nodiscard]] int64_t total() const { return weights + gradients + moments + staging; }
};

struct MemoryPlan {
  int64_t parameters = 0;
  std::vector<RankMemory> by_ranks;
  int64_t save = 0;  // on rank 0's host from the first save on: the snapshot, and to write it
};

// For each number of ranks that of the rank with most; model.vocabulary_size is set and
// batch.shards resolved. InvalidArgument for a model that cannot be.
[[nodiscard]] MemoryPlan plan_memory(const Config& config, const std::vector<int>& ranks);

// A table, for the powers of two up to batch.shards and a vocabulary of data.vocabulary_size.
[[nodiscard]] std::string describe_memory(Config config);

}  // namespace fathom::launcher
