// Speed of one training step on this machine, as a share of what its multiply-add units can do.
//
//   step_bench [iwslt-e6d6 | iwslt-e12d12 | small-e12d12] [threads]
//
// iwslt: width 256, ffn 1024, 4 heads, 10,000 pieces, 4096 tokens a step, dropout 0.3/0.1/0.1,
// sentence lengths N(22, 12). Random tokens; the median of nine steps after two; forward, backward
// and Adam. FLOPs as core/model/flops.h counts them.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "core/base/limits.h"
#include "core/model/flops.h"
#include "core/model/transformer.h"
#include "core/optim/adam.h"

namespace fathom::bench {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct Shape {
  model::ModelConfig model;
  int64_t tokens;
  double mean, deviation;
};

Shape shape_of(const std::string& name) {
  Shape s;
  const bool is_small = name == "small-e12d12";
  require(is_small || name == "iwslt-e6d6" || name == "iwslt-e12d12", "step_bench: unknown shape ",
          name);
  s.model.topology = "residual";
  s.model.encoder_layers = s.model.decoder_layers = name == "iwslt-e6d6" ? 6 : 12;
  s.model.width = is_small ? 128 : 256;
  s.model.ffn_width = 4 * s.model.width;
  s.model.heads = 4;
  s.model.vocabulary_size = is_small ? 4000 : 10000;
  s.model.dropout = 0.3;
  s.model.attention_dropout = s.model.activation_dropout = 0.1;
  s.tokens = is_small ? 2048 : 4096;
  s.mean = is_small ? 12 : 22;
  s.deviation = is_small ? 6 : 12;
  return s;
}

int run(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "iwslt-e6d6";
  const int threads = argc > 2 ? std::atoi(argv[2]) : available_cores();
  const Shape shape = shape_of(name);
  const auto device = tensor::make_cpu_device(threads);
  model::Transformer model(shape.model, *device, DType::kF32);
  model.initialise(1);
  Context& context = device->compute();
  const Tensor gradient = context.allocate(1, model.parameters().size(), DType::kF32);
  model.parameters().bind_gradients(gradient);
  optim::Adam adam({}, model.parameters());
  const double no_clipping[kernels::kControlValues] = {0, 0, 0, 1, 0};
  const Tensor control = context.allocate(1, kernels::kControlValues, DType::kF64);
  context.upload(control, std::span<const double>(no_clipping));

  const PhiloxStream chance(7, "bench");
  std::vector<data::TokenPair> pairs;
  std::vector<int64_t> order;
  uint64_t draw = 0;
  for (int64_t cost = 0;;) {
    data::TokenPair pair;
    const auto length = [&] {
      return std::clamp<int64_t>(std::llround(shape.mean + shape.deviation * chance.normal(draw++)),
                                 2, 100);
    };
    for (std::vector<int32_t>* side : {&pair.source, &pair.target})
      for (int64_t n = length() - 1; n > 0; --n)
        side->push_back(
            int32_t(2 + chance.bits(draw++) % uint64_t(shape.model.vocabulary_size - 2)));
    cost += int64_t(std::max(pair.source.size(), pair.target.size())) + 1;
    if (cost > shape.tokens) break;
    order.push_back(int64_t(pairs.size()));
    pairs.push_back(std::move(pair));
  }
  const data::Dataset data = data::Dataset::from_pairs(pairs, false);
  const data::PackedBatch batch = data::pack(data, order);

  std::vector<double> times;
  for (int64_t step = 1; step <= 11; ++step) {
    const Clock::time_point start = Clock::now();
    context.run(&kernels::Kernels::fill, {.y = gradient, .value = 0});
    Tape tape(*device, DType::kF32, {.dropout = {1, step}});
    const ops::TokenLosses losses =
        model.losses(tape, model::upload(tape, batch, shape.model.vocabulary_size), 0.1,
                     1 / double(batch.target.size()));
    tape.backward(losses.loss);
    adam.step(gradient, control, 1e-4);
    adam.count_update();
    context.synchronise();
    if (step > 2) times.push_back(seconds_since(start));
  }
  std::nth_element(times.begin(), times.begin() + 4, times.end());
  const double flops = model::training_flops(shape.model, data.lengths(), order),
               peak = device->peak_flops(DType::kF32);
  std::printf(
      "%s, %d threads: %.0f target tokens/s, %.1f GFLOP/s of a peak of %.1f (share %.2f), "
      "arena %.0f MiB\n",
      name.c_str(), threads, double(batch.target.size()) / times[4], flops / times[4] * 1e-9,
      peak * 1e-9, flops / times[4] / peak, double(device->arena().peak_bytes()) / 1048576);
  return 0;
}

}  // namespace
}  // namespace fathom::bench

int main(int argc, char** argv) { return fathom::bench::run(argc, argv); }
