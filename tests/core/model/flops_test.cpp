// The count of operations, against a walk over the model's own matrices.
#include "core/model/flops.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "tests/core/model/model_support.h"

namespace fathom::model {
namespace {

// Every matrix is used once for each row that passes it; attention adds its two products.
double multiply_adds(const ModelConfig& config, double S, double T) {
  const auto device = tensor::make_reference_device();
  const Transformer model(config, *device, DType::kF32);
  double sum = 0;
  for (const auto& p : model.parameters().all()) {
    if (p->shape.size() != 2 || p->role == Role::kEmbedding) continue;
    const bool reads_source = p->name.starts_with("encoder.") || p->role == Role::kKeyValue;
    sum += double(p->numel()) * (reads_source ? S : T);
  }
  sum += T * double(config.vocabulary_size * config.width);  // the output projection
  const double d = double(config.width);
  for (const topology::BlockContext& block : model.blocks()) {
    const double own = block.stack == topology::StackKind::kEncoder ? S : T;
    if (block.kind == topology::BlockKind::kSelfAttention) sum += 2 * own * own * d;
    if (block.kind == topology::BlockKind::kCrossAttention) sum += 2 * T * S * d;
  }
  return sum;
}

TEST(TrainingFlops, AreSixPerMultiplyAddOfTheForwardPass) {
  const data::PairLengths lengths{.source = {5, 9, 3}, .target = {7, 2, 4}};
  for (const auto& [encoder, decoder] : {std::pair{2, 3}, {1, 1}, {0, 4}}) {
    ModelConfig config = small_config("residual", encoder, decoder);
    const auto source = [&](size_t i) { return encoder > 0 ? lengths.source[i] : 0; };
    const std::vector<int64_t> pairs = {2, 0};
    EXPECT_DOUBLE_EQ(
        training_flops(config, lengths, pairs),
        6 * (multiply_adds(config, source(2), 4) + multiply_adds(config, source(0), 7)));
    EXPECT_EQ(training_flops(config, lengths, {}), 0);
  }
}

TEST(MeasuredPeak, IsThatOfAMultiplyAddUnit) {
  const auto device = tensor::make_cpu_device(1);
  double one = 0;  // the best of several: other processes may have the core for most of one
  for (int i = 0; i < 10 && one <= 1e9; ++i) one = std::max(one, device->peak_flops(DType::kF32));
  EXPECT_GT(one, 1e9);   // a core of 1 GHz does one multiply-add of 8 lanes in 16 cycles
  EXPECT_LT(one, 1e12);  // and none does 2 of 16 lanes at 16 GHz
}

}  // namespace
}  // namespace fathom::model
