#include "core/observe/layer_probe.h"

#include <algorithm>

namespace fathom::observe {

static_assert(kBlockSums == kernels::kRowMoments);

BlockSums& BlockSums::operator+=(const BlockSums& other) {
  tokens += other.tokens;
  square += other.square;
  variance += other.variance;
  branch += other.branch;
  change += other.change;
  cosine += other.cosine;
  return *this;
}

LayerProbe::LayerProbe(Context& context, const std::vector<topology::BlockContext>& blocks,
                       std::vector<data::ShardRows> shards, Tensor sums)
    : context_(context),
      shards_(std::move(shards)),
      sums_(std::move(sums)),
      encoder_blocks_(
          std::count_if(blocks.begin(), blocks.end(), [](const topology::BlockContext& b) {
            return b.stack == topology::StackKind::kEncoder;
          })) {
  require(sums_.rows() == int64_t(shards_.size()) &&
              sums_.cols() == int64_t(blocks.size()) * kBlockSums,
          "layer probe: sums are ", sums_, " for ", shards_.size(), " shards and ", blocks.size(),
          " blocks");
}

void LayerProbe::on_block(const topology::BlockContext& block, const Tensor& x, const Tensor& o,
                          const Tensor& next) {
  const bool is_encoder = block.stack == topology::StackKind::kEncoder;
  const int64_t at = (is_encoder ? 0 : encoder_blocks_) + block.block - 1;
  for (size_t i = 0; i < shards_.size(); ++i) {
    const data::ShardRows& s = shards_[i];
    const int64_t rows = is_encoder ? s.source_rows : s.target_rows;
    const int64_t sampled = is_encoder ? s.source_before : s.target_before;
    const int64_t count = std::min(kSampleRows - sampled, rows);
    if (count <= 0) continue;
    context_.run(&kernels::Kernels::row_moments,
                 {.x = x,
                  .o = o,
                  .next = next,
                  .sums = sums_.row_range(int64_t(i), 1).columns(at * kBlockSums, kBlockSums),
                  .begin = is_encoder ? s.first_source : s.first_target,
                  .count = count});
  }
}

std::vector<BlockSums> add_shards(std::span<const double> values, int64_t shards, int64_t blocks) {
  require(int64_t(values.size()) == shards * blocks * kBlockSums, "add_shards: got ", values.size(),
          " values for ", shards, " shards of ", blocks, " blocks");
  std::vector<BlockSums> out(static_cast<size_t>(blocks));
  const double* v = values.data();
  for (int64_t s = 0; s < shards; ++s) {
    for (BlockSums& b : out) {
      b += {.tokens = v[0],
            .square = v[1],
            .variance = v[2],
            .branch = v[3],
            .change = v[4],
            .cosine = v[5]};
      v += kBlockSums;
    }
  }
  return out;
}

}  // namespace fathom::observe
