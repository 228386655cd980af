#include "launcher/gradient_step.h"

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
  GradientStepOf(core::Transformer& model, core::Device& device, const core::Dataset& data,
                 dist::Communicator& group, const StepOptions& options)
      : model_(model), device_(device), data_(data), group_(group), options_(options),
        owned_(dist::shard_range(group.rank(), group.size(), options.reducer.shards)),
        reducer_(group, options.reducer, model.parameters().size()), blocks_(model.blocks()) {}

  StepGradient run(const core::Batch& batch, int64_t step, bool observe) override {
    timing_ = {};
    losses_.clear();
    sums_.clear();
    for (int shard = owned_.begin; shard < owned_.end;) {
      const int end = fused_end(batch, shard);
      run_shards(batch, shard, end, step, observe);
      shard = end;
    }
    StepGradient out;
    const std::span<const T> sum = reducer_.finish();
    out.gradient = core::Tensor(const_cast<T*>(sum.data()), 1, int64_t(sum.size()),
                                core::dtype_of<T>());
    timing_.reduce_seconds = reducer_.wait_seconds();
    out.timing = timing_;

    const int shards = options_.reducer.shards;
    const std::vector<double> losses = dist::gather_in_shard_order(group_, shards, losses_);
    for (size_t i = 0; i < losses.size(); i += 2) {
      out.loss += losses[i] / double(batch.target_tokens);
      out.nll += losses[i + 1] / double(batch.target_tokens);
    }
    if (observe)
      out.blocks = core::add_shards(dist::gather_in_shard_order(group_, shards, sums_), shards,
                                    int64_t(blocks_.size()));
    return out;
  }

  int64_t memory_bytes() const override {
    return reducer_.memory_bytes() + device_.arena().peak_bytes();
  }

 private:
  // tree: every shard is a micro-batch of its own. fast: neighbours are fused up to micro_tokens.
  int fused_end(const core::Batch& batch, int shard) const {
    int end = shard + 1;
    if (options_.reducer.reduction == dist::Reduction::kTree) return end;
    int64_t cost = cost_of(batch, shard);
    while (end < owned_.end && cost + cost_of(batch, end) <= options_.micro_tokens)
      cost += cost_of(batch, end++);
    return end;
  }
  int64_t cost_of(const core::Batch& batch, int shard) const {
    int64_t cost = 0;
    for (const int64_t pair : batch.shards[size_t(shard)])
      cost += std::max(data_.source_length(pair), data_.target_length(pair)) + 1;
    return cost;
  }

  void run_shards(const core::Batch& batch, int first, int end, int64_t step, bool observe) {
    core::ParameterStore& store = model_.parameters();
    const std::span<T> gradient = reducer_.begin_shard(end - first);
    store.bind_gradients(
        core::Tensor(gradient.data(), 1, int64_t(gradient.size()), core::dtype_of<T>()));

    std::vector<int64_t> pairs;
    std::vector<core::SampleRange> ranges;
    for (int shard = first; shard < end; ++shard) {
      const std::vector<int64_t>& mine = batch.shards[size_t(shard)];
      core::SampleRange range;
      if (!ranges.empty()) {
        range.first_source = ranges.back().first_source + ranges.back().source_rows;
        range.first_target = ranges.back().first_target + ranges.back().target_rows;
      }
      for (const int64_t pair : mine) {
        if (!data_.decoder_only()) range.source_rows += data_.source_length(pair) + 1;
        range.target_rows += data_.target_length(pair) + 1;
      }
      ranges.push_back(range);
      pairs.insert(pairs.end(), mine.begin(), mine.end());
    }
    core::LayerProbe probe(observe ? blocks_ : std::vector<core::BlockContext>{},
                           observe ? ranges : std::vector<core::SampleRange>{});
    if (pairs.empty()) {
      losses_.resize(losses_.size() + 2 * size_t(end - first));
    } else {
      Clock::time_point start = Clock::now();
      const core::PackedBatch packed = core::pack(data_, pairs);
      core::Tape tape(device_, store.dtype(), {.dropout = {options_.seed, step}});
      const core::TokenLosses losses =
          model_.losses(tape, packed, options_.label_smoothing, 1 / double(batch.target_tokens),
                        observe ? &probe : nullptr);
      for (const core::SampleRange& range : ranges) add_losses(losses, range);
      timing_.forward_seconds += seconds_since(start);
      start = Clock::now();
      tape.backward(losses.loss, {}, [&](const core::Parameter& p) {
        reducer_.ready(p.offset, store.padded_count(p));
      });
      timing_.backward_seconds += seconds_since(start);
    }
    reducer_.end_shard();
    if (observe)
      for (size_t i = 0; i < ranges.size(); ++i)
        sums_.insert(sums_.end(), probe.sums(i).begin(), probe.sums(i).end());
  }

  void add_losses(const core::TokenLosses& losses, const core::SampleRange& range) {
    double loss = 0, nll = 0;
    for (int64_t t = range.first_target; t < range.first_target + range.target_rows; ++t) {
      loss += double(losses.smooth.data<T>()[t]);
      nll += double(losses.nll.data<T>()[t]);
    }
    losses_.push_back(loss);
    losses_.push_back(nll);
  }

  core::Transformer& model_;
  core::Device& device_;
  const core::Dataset& data_;
  dist::Communicator& group_;
  StepOptions options_;
  dist::ShardRange owned_;
  dist::GradientReducer<T> reducer_;
  std::vector<core::BlockContext> blocks_;
  StepTiming timing_;
  std::vector<double> losses_;  // two a shard: sums of loss and nll over its target tokens
  std::vector<double> sums_;    // blocks x kBlockSums a shard
};

}  // namespace

std::unique_ptr<GradientStep> make_gradient_step(core::Transformer& model, core::Device& device,
                                                 const core::Dataset& data,
                                                 dist::Communicator& group,
                                                 const StepOptions& options) {
  if (model.parameters().dtype() == core::DType::kF32)
    return std::make_unique<GradientStepOf<float>>(model, device, data, group, options);
  return std::make_unique<GradientStepOf<double>>(model, device, data, group, options);
}

}  // namespace fathom::launcher
