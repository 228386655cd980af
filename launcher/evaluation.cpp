#include "launcher/evaluation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/data/batch_plan.h"

namespace fathom::launcher {
namespace {

double summed_nll(model::Transformer& model, Device& device, const data::PackedBatch& batch) {
  Tape tape(
      device, model.parameters().dtype(),
      {.recording = false, .batch_invariant = true, .training = false, .update = model.update()});
  const ops::TokenLosses losses =
      model.losses(tape, model::upload(tape, batch, model.config().vocabulary_size), 0, 1);
  const Tensor sums = tape.keep(1, 2, DType::kF64);
  tape.context().run(&kernels::Kernels::fill, {.y = sums, .value = 0});
  tape.context().run(&kernels::Kernels::sum_losses, {.first = losses.smooth,
                                                     .second = losses.nll,
                                                     .sums = sums,
                                                     .begin = 0,
                                                     .count = losses.nll.cols()});
  std::array<double, 2> values{};
  tape.context().download(std::span<double>(values), sums);
  return values[1];
}

// Every pair's successor in the plan, the last one's being the first: sentences of like length.
std::vector<std::vector<int64_t>> exchanged(const std::vector<std::vector<int64_t>>& plan) {
  std::vector<int64_t> order;
  for (const auto& batch : plan) order.insert(order.end(), batch.begin(), batch.end());
  std::rotate(order.begin(), order.begin() + 1, order.end());
  std::vector<std::vector<int64_t>> sources;
  size_t at = 0;
  for (const auto& batch : plan) {
    sources.emplace_back(order.begin() + std::ptrdiff_t(at),
                         order.begin() + std::ptrdiff_t(at + batch.size()));
    at += batch.size();
  }
  return sources;
}

}  // namespace

Validation validate(model::Transformer& model, Device& device, const data::Dataset& data,
                    int64_t micro_tokens, dist::Communicator& group) {
  const data::PairLengths lengths = data.lengths();
  const std::vector<std::vector<int64_t>> plan = data::evaluation_plan(lengths, micro_tokens);
  const bool measures_gain = !data.decoder_only() && data.size() > 1;
  const std::vector<std::vector<int64_t>> sources =
      measures_gain ? exchanged(plan) : std::vector<std::vector<int64_t>>{};

  // A slot per batch; only its rank writes it, so that the sum over ranks adds zeros to it.
  std::vector<double> sums(plan.size() * 2);
  for (size_t b = size_t(group.rank()); b < plan.size(); b += size_t(group.size())) {
    sums[2 * b] = summed_nll(model, device, data::pack(data, plan[b]));
    if (measures_gain)
      sums[2 * b + 1] = summed_nll(model, device, data::pack(data, plan[b], sources[b]));
  }
  group.all_reduce_sum(std::span<double>(sums));

  Validation out;
  for (const int32_t length : lengths.target) out.tokens += length;
  double right = 0, foreign = 0;
  for (size_t b = 0; b < plan.size(); ++b) {
    right += sums[2 * b];
    foreign += sums[2 * b + 1];
  }
  out.nll = right / double(out.tokens);
  out.source_gain = measures_gain ? foreign / double(out.tokens) - out.nll
                                  : std::numeric_limits<double>::quiet_NaN();
  return out;
}

}  // namespace fathom::launcher
