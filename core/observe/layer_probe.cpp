#include "core/observe/layer_probe.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace fathom::observe {
namespace {

struct Moments {
  double mean, variance, square;
};

template <class T>
Moments moments(const T* x, int64_t C) {
  double sum = 0, squares = 0;
  for (int64_t c = 0; c < C; ++c) sum += double(x[c]);
  const double mean = sum / double(C);
  for (int64_t c = 0; c < C; ++c) squares += (double(x[c]) - mean) * (double(x[c]) - mean);
  const double variance = squares / double(C);
  return {mean, variance, variance + mean * mean};
}

template <class T>
void add_row(const T* x, const T* o, const T* next, int64_t C, double* sums) {
  const Moments mx = moments(x, C), mo = moments(o, C), mn = moments(next, C);
  const double rx = 1 / std::sqrt(mx.variance), rn = 1 / std::sqrt(mn.variance);
  double change = 0, dot = 0;
  for (int64_t c = 0; c < C; ++c) {
    const double d = (double(next[c]) - mn.mean) * rn - (double(x[c]) - mx.mean) * rx;
    change += d * d;
    dot += double(x[c]) * double(next[c]);
  }
  sums[0] += 1;
  sums[1] += mn.square;
  sums[2] += mx.variance;
  sums[3] += mo.variance;
  sums[4] += change / double(C);
  sums[5] += dot / double(C) / std::sqrt(mx.square * mn.square);
}

}  // namespace

BlockStatistics statistics_of(const BlockSums& s) {
  const double V = s.variance / s.tokens, f = s.branch / s.tokens;
  return {.hidden_rms = std::sqrt(s.square / s.tokens),
          .omega = std::sqrt(s.change / s.tokens),
          .omega_predicted = std::sqrt(2 - 2 * std::sqrt(V / (V + f))),
          .branch_share = std::sqrt(f / (V + f)),
          .cosine = s.cosine / s.tokens};
}

LayerProbe::LayerProbe(std::vector<topology::BlockContext> blocks, std::vector<SampleRange> shards)
    : blocks_(std::move(blocks)),
      shards_(std::move(shards)),
      sums_(shards_.size(), std::vector<double>(blocks_.size() * size_t(kBlockSums))),
      encoder_blocks_(
          std::count_if(blocks_.begin(), blocks_.end(), [](const topology::BlockContext& b) {
            return b.stack == topology::StackKind::kEncoder;
          })) {}

void LayerProbe::on_block(const topology::BlockContext& block, const Tensor& x, const Tensor& o,
                          const Tensor& next) {
  const bool is_encoder = block.stack == topology::StackKind::kEncoder;
  const size_t at = size_t((is_encoder ? 0 : encoder_blocks_) + block.block - 1);
  for (size_t i = 0; i < shards_.size(); ++i) {
    const SampleRange& s = shards_[i];
    const int64_t first = is_encoder ? s.first_source : s.first_target;
    const int64_t rows = std::min(kSampleRows, is_encoder ? s.source_rows : s.target_rows);
    double* sums = &sums_[i][at * size_t(kBlockSums)];
    visit_float(x.dtype(), [&]<class T>() {
      for (int64_t t = first; t < first + rows; ++t)
        add_row(x.row<T>(t), o.row<T>(t), next.row<T>(t), x.cols(), sums);
    });
  }
}

std::vector<BlockSums> add_shards(const std::vector<double>& values, int64_t shards,
                                  int64_t blocks) {
  require(int64_t(values.size()) == shards * blocks * kBlockSums, "add_shards: got ", values.size(),
          " values for ", shards, " shards of ", blocks, " blocks");
  std::vector<BlockSums> out(static_cast<size_t>(blocks));
  const double* v = values.data();
  for (int64_t s = 0; s < shards; ++s) {
    for (BlockSums& b : out) {
      b.tokens += v[0];
      b.square += v[1];
      b.variance += v[2];
      b.branch += v[3];
      b.change += v[4];
      b.cosine += v[5];
      v += kBlockSums;
    }
  }
  return out;
}

}  // namespace fathom::observe
