// How much memory of its device a rank needs: by a formula for what it holds all the time, by a
// pass over a model whose kernels do nothing for activations. Nothing is read, and only address
// space is taken.
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
  int64_t activations = 0;  // of the largest micro-batch that there may be, with its scratch
  int64_t save = 0;  // on rank 0's host from the first save on: the snapshot, and to write it
};

// For each number of ranks that of the rank with most; model.vocabulary_size is set and
// batch.shards resolved. InvalidArgument for a model that cannot be.
[[nodiscard]] MemoryPlan plan_memory(const Config& config, const std::vector<int>& ranks);

// Parameters and a table, for the powers of two up to batch.shards and, where
// model.vocabulary_size is not set, a vocabulary of data.vocabulary_size.
[[nodiscard]] std::string describe_memory(Config config);

}  // namespace fathom::launcher
