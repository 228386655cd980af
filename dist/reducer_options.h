// How gradients are summed over the shards of a step and the ranks. Plain data; the `dist` section
// of a config has two of these.
#pragma once

namespace fathom::dist {

enum class Reduction {
  kTree,  // fixed summation tree: all-to-all of segments, ordered sum
  kFast,  // a rank's shards accumulate in one buffer, then reduce-scatter or all-reduce
};

enum class Outcome {
  kOwned,  // the sum of what a rank owns
  kWhole,  // all of it on every rank: gathered (tree), by an all-reduce (fast)
};

enum class Overlap {
  kOff,  // everything is reduced in finish(), on the compute context
  kOn,   // complete buckets are reduced on the communication context (with one rank: like kOff)
};

struct ReducerOptions {
  Reduction reduction = Reduction::kTree;
  Overlap overlap = Overlap::kOff;
  Outcome outcome = Outcome::kWhole;
  int shards = 8;  // V, at least the number of ranks
};

}  // namespace fathom::dist
