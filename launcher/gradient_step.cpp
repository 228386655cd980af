#include "launcher/gradient_step.h"

#include <algorithm>
#include <chrono>

#include "dist/reduction_tree.h"
#include "dist/shard_values.h"

namespace fathom::launcher {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

template <class T>
class GradientStepOf final : public GradientStep {
 public:
  GradientStepOf(model::Transformer& model, Device& device, const data::Dataset& data,
                 dist::Communicator& group, const StepOptions& options)
      : model_(model),
        device_(device),
        data_(data),
        group_(group),
        options_(options),
        owned_(dist::shard_range(group.rank(), group.size(), options.reducer.shards)),
        reducer_(group, options.reducer, model.parameters().size()),
        blocks_(model.blocks()) {}

  StepGradient run(const data::Batch& batch, int64_t step, bool observe) override {
    const Clock::time_point start = Clock::now();
    timing_ = {};
    losses_.clear();
    sums_.clear();
    for (int shard = owned_.begin; shard < owned_.end;) {
      const int end = fused_end(batch, shard);
      run_shards(batch, shard, end, step, observe);
      shard = end;
    }
    const RankWork work = {.seconds = seconds_since(start), .tokens = tokens_of(batch)};
    StepGradient out;
    const std::span<const T> sum = reducer_.finish();
    out.gradient =
        Tensor(const_cast<T*>(sum.data()), 1, int64_t(sum.size()), tensor::dtype_of<T>());
    timing_.reduce_seconds = reducer_.wait_seconds();
    out.timing = timing_;
    out.ranks = gather(work);

    const int shards = options_.reducer.shards;
    const std::vector<double> losses = dist::gather_in_shard_order(group_, shards, losses_);
    for (size_t i = 0; i < losses.size(); i += 2) {
      out.loss += losses[i] / double(batch.target_tokens);
      out.nll += losses[i + 1] / double(batch.target_tokens);
    }
    if (observe)
      out.blocks = observe::add_shards(dist::gather_in_shard_order(group_, shards, sums_), shards,
                                       int64_t(blocks_.size()));
    return out;
  }

  int64_t memory_bytes() const override {
    return reducer_.memory_bytes() + device_.arena().peak_bytes();
  }

 private:
  double tokens_of(const data::Batch& batch) const {
    int64_t tokens = 0;
    for (int shard = owned_.begin; shard < owned_.end; ++shard)
      for (const int64_t pair : batch.shards[size_t(shard)])
        tokens += data_.target_length(pair) + 1 +
                  (data_.decoder_only() ? 0 : data_.source_length(pair) + 1);
    return double(tokens);
  }

  std::vector<RankWork> gather(const RankWork& mine) {
    const double numbers[] = {mine.seconds, mine.tokens};
    std::vector<double> all(2 * size_t(group_.size()));
    group_.all_gather(std::span<const double>(numbers), std::vector<int64_t>(all.size() / 2, 2),
                      std::span<double>(all));
    std::vector<RankWork> ranks;
    for (size_t i = 0; i < all.size(); i += 2) ranks.push_back({all[i], all[i + 1]});
    return ranks;
  }

  // tree: every shard is a micro-batch of its own. fast: neighbours are fused up to micro_tokens.
  int fused_end(const data::Batch& batch, int shard) const {
    int end = shard + 1;
    if (options_.reducer.reduction == dist::Reduction::kTree) return end;
    int64_t cost = cost_of(batch, shard);
    while (end < owned_.end && cost + cost_of(batch, end) <= options_.micro_tokens)
      cost += cost_of(batch, end++);
    return end;
  }
  int64_t cost_of(const data::Batch& batch, int shard) const {
    int64_t cost = 0;
    for (const int64_t pair : batch.shards[size_t(shard)])
      cost += std::max(data_.source_length(pair), data_.target_length(pair)) + 1;
    return cost;
  }

  // Shards [first, end) into one gradient buffer; several only in fast mode.
  void run_shards(const data::Batch& batch, int first, int end, int64_t step, bool observe) {
    const std::span<T> gradient = reducer_.begin_shard(end - first);
    model_.parameters().bind_gradients(
        Tensor(gradient.data(), 1, int64_t(gradient.size()), tensor::dtype_of<T>()));
    const size_t shards = size_t(end - first);
    losses_.resize(losses_.size() + 2 * shards);
    sums_.resize(sums_.size() + (observe ? shards * blocks_.size() * observe::kBlockSums : 0));

    std::vector<Pass> passes = passes_of(batch, first, end);
    for (Pass& pass : passes) {
      pass.weight = 1 / double(batch.target_tokens);
      pass.step = step;
      pass.observe = observe && &pass == &passes.front();
      pass.is_last = &pass == &passes.back();
      run_pass(pass, shards);
    }
    reducer_.end_shard();
  }

  // One forward and backward: the pairs of some shards and which rows belong to which shard.
  struct Pass {
    std::vector<int64_t> pairs;
    std::vector<observe::SampleRange> ranges;
    double weight = 0;
    int64_t step = 0;
    bool observe = false, is_last = false;
  };

  // One pass, unless a single shard is larger than micro_tokens (fast mode only): then several.
  std::vector<Pass> passes_of(const data::Batch& batch, int first, int end) const {
    std::vector<Pass> passes;
    int64_t cost = 0;
    for (int shard = first; shard < end; ++shard) {
      bool is_new = true;
      for (const int64_t pair : batch.shards[size_t(shard)]) {
        const int64_t rows = std::max(data_.source_length(pair), data_.target_length(pair)) + 1;
        if (passes.empty() ||
            (cost > 0 && cost + rows > options_.micro_tokens && end == first + 1)) {
          passes.emplace_back();
          cost = 0;
          is_new = true;
        }
        Pass& pass = passes.back();
        if (is_new) open_range(pass, size_t(shard - first));
        is_new = false;
        cost += rows;
        pass.pairs.push_back(pair);
        if (!data_.decoder_only()) pass.ranges.back().source_rows += data_.source_length(pair) + 1;
        pass.ranges.back().target_rows += data_.target_length(pair) + 1;
      }
    }
    for (Pass& pass : passes) pass.ranges.resize(size_t(end - first));
    return passes;
  }

  // Ranges of earlier shards without pairs stay empty.
  static void open_range(Pass& pass, size_t shard) {
    observe::SampleRange range;
    for (const observe::SampleRange& before : pass.ranges) {
      range.first_source += before.source_rows;
      range.first_target += before.target_rows;
    }
    pass.ranges.resize(shard);
    pass.ranges.push_back(range);
  }

  void run_pass(const Pass& pass, size_t shards) {
    observe::LayerProbe probe(pass.observe ? blocks_ : std::vector<topology::BlockContext>{},
                              pass.observe ? pass.ranges : std::vector<observe::SampleRange>{});
    Clock::time_point start = Clock::now();
    const data::PackedBatch packed = data::pack(data_, pass.pairs);
    Tape tape(device_, tensor::dtype_of<T>(), {.dropout = {options_.seed, pass.step}});
    const ops::TokenLosses losses = model_.losses(tape, packed, options_.label_smoothing,
                                                  pass.weight, pass.observe ? &probe : nullptr);
    for (size_t i = 0; i < shards; ++i)
      add_losses(losses, pass.ranges[i], &losses_[losses_.size() - 2 * (shards - i)]);
    if (pass.observe) {
      const size_t count = blocks_.size() * observe::kBlockSums;
      for (size_t i = 0; i < shards; ++i)
        std::copy(probe.sums(i).begin(), probe.sums(i).end(),
                  sums_.end() - std::ptrdiff_t((shards - i) * count));
    }
    timing_.forward_seconds += seconds_since(start);
    start = Clock::now();
    tape.backward(losses.loss, {}, [&](const Parameter& p) {
      if (pass.is_last) reducer_.ready(p.offset, ParameterStore::padded_count(p));
    });
    timing_.backward_seconds += seconds_since(start);
  }

  static void add_losses(const ops::TokenLosses& losses, const observe::SampleRange& range,
                         double* sums) {
    for (int64_t t = range.first_target; t < range.first_target + range.target_rows; ++t) {
      sums[0] += double(losses.smooth.data<T>()[t]);
      sums[1] += double(losses.nll.data<T>()[t]);
    }
  }

  model::Transformer& model_;
  Device& device_;
  const data::Dataset& data_;
  dist::Communicator& group_;
  StepOptions options_;
  dist::ShardRange owned_;
  dist::GradientReducer<T> reducer_;
  std::vector<topology::BlockContext> blocks_;
  StepTiming timing_;
  std::vector<double> losses_;  // two a shard: sums of loss and nll over its target tokens
  std::vector<double> sums_;    // blocks x kBlockSums a shard
};

}  // namespace

std::unique_ptr<GradientStep> make_gradient_step(model::Transformer& model, Device& device,
                                                 const data::Dataset& data,
                                                 dist::Communicator& group,
                                                 const StepOptions& options) {
  if (model.parameters().dtype() == DType::kF32)
    return std::make_unique<GradientStepOf<float>>(model, device, data, group, options);
  return std::make_unique<GradientStepOf<double>>(model, device, data, group, options);
}

}  // namespace fathom::launcher
