#include "launcher/evaluation.h"

#include <algorithm>
#include <array>
#include <limits>
#include <span>

#include "core/data/batch_plan.h"

namespace fathom::launcher {
namespace {

// The losses of a batch's target rows.
class BatchLosses {
 public:
  BatchLosses(model::Transformer& model, Device& device, const data::PackedBatch& batch)
      : batch_(batch),
        tape_(device, model.parameters().dtype(),
              {.recording = false,
               .batch_invariant = true,
               .training = false,
               .update = model.update()}),
        losses_(model.losses(tape_, model::upload(tape_, batch, model.config().vocabulary_size), 0,
                             1)) {}

  [[nodiscard]] double sum() {
    start();
    add(0, losses_.nll.cols());
    return result();
  }
  // Of the pairs of the data set that are named.
  [[nodiscard]] double sum_of(const std::vector<int64_t>& pairs) {
    start();
    for (int64_t i = 0; i < batch_.sentences(); ++i)
      if (std::find(pairs.begin(), pairs.end(), batch_.sentence_id[size_t(i)]) != pairs.end())
        add(batch_.target_segments.begin[size_t(i)], batch_.target_segments.length[size_t(i)]);
    return result();
  }

 private:
  void start() {
    sums_ = tape_.keep(1, 2, DType::kF64);
    tape_.context().run(&kernels::Kernels::fill, {.y = sums_, .value = 0});
  }
  void add(int64_t begin, int64_t count) {
    tape_.context().run(&kernels::Kernels::sum_losses, {.first = losses_.smooth,
                                                        .second = losses_.nll,
                                                        .sums = sums_,
                                                        .begin = begin,
                                                        .count = count});
  }
  double result() {
    std::array<double, 2> values{};
    tape_.context().download(std::span<double>(values), sums_);
    return values[1];
  }

  const data::PackedBatch& batch_;
  Tape tape_;
  ops::TokenLosses losses_;
  Tensor sums_;
};

int64_t tokens_of(const data::PairLengths& lengths, const std::vector<int64_t>& pairs) {
  int64_t tokens = 0;
  for (const int64_t pair : pairs) tokens += lengths.target[size_t(pair)];
  return tokens;
}

}  // namespace

SourceExchange exchange_sources(const data::Dataset& data,
                                const std::vector<std::vector<int64_t>>& plan) {
  std::vector<int64_t> order;
  for (const auto& batch : plan) order.insert(order.end(), batch.begin(), batch.end());
  SourceExchange exchange;
  size_t at = 0, count = 0;
  for (const auto& batch : plan) {
    auto& pairs = exchange.pairs.emplace_back();
    auto& sources = exchange.sources.emplace_back();
    for (const int64_t pair : batch) {
      const int64_t next = order[++at % order.size()];
      if (std::ranges::equal(data.source(pair), data.source(next))) continue;
      pairs.push_back(pair);
      sources.push_back(next);
    }
    count += pairs.size();
  }
  exchange.is_telling = count >= 2 && 10 * count >= order.size();
  return exchange;
}

Validation validate(model::Transformer& model, Device& device, const data::Dataset& data,
                    int64_t micro_tokens, dist::Communicator& group,
                    const std::function<void()>& before_batch) {
  const data::PairLengths lengths = data.lengths();
  const std::vector<std::vector<int64_t>> plan = data::evaluation_plan(lengths, micro_tokens);
  const SourceExchange exchange =
      data.decoder_only() ? SourceExchange() : exchange_sources(data, plan);

  // Three slots per batch: its loss, and what the pairs of the exchange lose with their own sources
  // and with foreign ones. Only its rank writes them, so that the sum over ranks adds zeros to
  // them.
  std::vector<double> sums(3 * plan.size());
  for (size_t first = 0; first < plan.size(); first += size_t(group.size())) {
    if (before_batch) before_batch();
    const size_t b = first + size_t(group.rank());
    if (b >= plan.size()) continue;
    const std::span<double> slots = std::span(sums).subspan(3 * b, 3);
    const bool exchanges = exchange.is_telling && !exchange.pairs[b].empty();
    {
      const data::PackedBatch batch = data::pack(data, plan[b]);
      BatchLosses losses(model, device, batch);
      slots[0] = losses.sum();
      const bool has_all = exchanges && exchange.pairs[b].size() == plan[b].size();
      if (exchanges) slots[1] = has_all ? slots[0] : losses.sum_of(exchange.pairs[b]);
    }
    if (!exchanges) continue;
    const data::PackedBatch foreign = data::pack(data, exchange.pairs[b], exchange.sources[b]);
    slots[2] = BatchLosses(model, device, foreign).sum();
  }
  group.all_reduce_sum(std::span<double>(sums));

  Validation out;
  int64_t exchanged_tokens = 0;
  double all = 0, right = 0, foreign = 0;
  for (size_t b = 0; b < plan.size(); ++b) {
    all += sums[3 * b];
    right += sums[3 * b + 1];
    foreign += sums[3 * b + 2];
    out.tokens += tokens_of(lengths, plan[b]);
    if (exchange.is_telling) exchanged_tokens += tokens_of(lengths, exchange.pairs[b]);
  }
  out.nll = all / double(out.tokens);
  out.source_gain = exchange.is_telling
                        ? foreign / double(exchanged_tokens) - right / double(exchanged_tokens)
                        : std::numeric_limits<double>::quiet_NaN();
  return out;
}

}  // namespace fathom::launcher
