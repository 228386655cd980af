// From activations to sums: what every block does to the residual stream, over a sample of tokens
// (theory: docs/metrics.md). The sample is the first `kSampleRows` rows of every virtual shard,
// however it is split into micro-batches, so the sums do not depend on the number of ranks; those
// of shards are added in shard order, and only then become statistics (layer_statistics.h).
#pragma once

#include <span>
#include <vector>

#include "core/data/micro_batches.h"
#include "core/model/stack.h"

namespace fathom::observe {

inline constexpr int64_t kSampleRows = 64;

// Sums over sampled tokens for one block; x is the stream before the block, o what it adds, x' the
// stream after it, n(.) the layer norm without gain and bias.
struct BlockSums {
  double tokens = 0;
  double square = 0;    // mean over features of x'^2
  double variance = 0;  // variance over features of x
  double branch = 0;    // variance over features of o
  double change = 0;    // mean over features of (n(x') - n(x))^2
  double cosine = 0;    // cos(x, x')

  BlockSums& operator+=(const BlockSums& other);
};
inline constexpr int64_t kBlockSums = 6;

// Observes a forward pass over one or several shards packed together, and adds the sums of shard i
// to row i of `sums`, in the device's memory: kBlockSums numbers for every block (encoder, then
// decoder).
class LayerProbe final : public model::BlockObserver {
 public:
  // sums (shards, blocks * kBlockSums) f64
  LayerProbe(Context& context, const std::vector<topology::BlockContext>& blocks,
             std::vector<data::ShardRows> shards, Tensor sums);

  void on_block(const topology::BlockContext& block, const Tensor& x, const Tensor& o,
                const Tensor& next) override;

 private:
  Context& context_;
  std::vector<data::ShardRows> shards_;
  Tensor sums_;
  int64_t encoder_blocks_ = 0;
};

// Adds per-shard sums (shards x blocks x kBlockSums, flat) in shard order.
[[nodiscard]] std::vector<BlockSums> add_shards(std::span<const double> values, int64_t shards,
                                                int64_t blocks);

}  // namespace fathom::observe
