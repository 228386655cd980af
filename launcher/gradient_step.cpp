#include "launcher/gradient_step.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "dist/data_group.h"
#include "dist/reduction_tree.h"

namespace fathom::launcher {

using kernels::Kernels;
using tensor::Event;

struct GradientStep::Impl {
  Impl(model::Transformer& m, Device& d, const data::Dataset& set, dist::Communicator& g,
       const dist::Ownership& ownership, const StepOptions& o)
      : model_(m),
        device_(d),
        data_(set),
        group_(g),
        options_(o),
        owned_(dist::shard_range(g.rank(), g.size(), o.reducer.shards)),
        reducer_(g, d, o.reducer, ownership, m.parameters().wide()),
        data_communicator_(g.duplicate()),
        data_group_(dist::make_host_data_group(*data_communicator_)),
        blocks_(m.blocks()) {
    Context& context = d.compute();
    const int64_t numbers = int64_t(blocks_.size()) * observe::kBlockSums;
    losses_ = context.allocate(owned_.count(), 2, DType::kF64);
    sums_ = context.allocate(owned_.count(), numbers, DType::kF64);
    if (g.size() == 1) return;
    all_losses_ = context.allocate(o.reducer.shards, 2, DType::kF64);
    all_sums_ = context.allocate(o.reducer.shards, numbers, DType::kF64);
  }

  StepGradient run(const data::Batch& batch, int64_t step, bool observe,
                   autograd::Profile* profile) {
    Context& context = device_.compute();
    profile_ = profile;
    passes_.clear();
    model_.set_update(step);
    tokens_ = tokens_of(batch);
    begin_ = context.record();
    context.run(&Kernels::fill, {.y = losses_, .value = 0});
    if (observe) context.run(&Kernels::fill, {.y = sums_, .value = 0});
    for (int shard = owned_.begin; shard < owned_.end;) {
      const int end = fused_end(batch, shard);
      run_shards(batch, shard, end, step, observe);
      shard = end;
    }
    end_ = context.record();
    if (profile_ != nullptr) profile_->begin();
    StepGradient out;
    out.gradient = reducer_.finish().gradient;
    if (profile_ != nullptr) profile_->end("reduce gradients", autograd::Phase::kUpdate);
    out.losses = in_shard_order(losses_, all_losses_);
    if (observe) out.blocks = in_shard_order(sums_, all_sums_);
    return out;
  }

  StepTiming timing() const {
    StepTiming out;
    for (const PassEvents& pass : passes_) {
      out.forward_seconds += seconds_between(pass.begin, pass.middle);
      out.backward_seconds += seconds_between(pass.middle, pass.end);
    }
    out.reduce_seconds = reducer_.wait_seconds();
    return out;
  }

  std::vector<RankWork> ranks() {
    const double numbers[] = {seconds_between(begin_, end_), tokens_};
    std::vector<double> all(2 * size_t(group_.size()));
    group_.all_gather(std::span<const double>(numbers), std::vector<int64_t>(all.size() / 2, 2),
                      std::span<double>(all));
    std::vector<RankWork> ranks;
    for (size_t i = 0; i < all.size(); i += 2) ranks.push_back({all[i], all[i + 1]});
    return ranks;
  }

  int64_t memory_bytes() const { return reducer_.memory_bytes() + device_.arena().peak_bytes(); }

 private:
  // From the rows of this rank's shards to those of all.
  Tensor in_shard_order(const Tensor& own, const Tensor& all) {
    if (group_.size() == 1) return own;
    std::vector<int64_t> counts;
    for (int r = 0; r < group_.size(); ++r)
      counts.push_back(own.cols() *
                       dist::shard_range(r, group_.size(), options_.reducer.shards).count());
    data_group_->all_gather(device_.compute(), own, counts, all);
    return all;
  }

  double tokens_of(const data::Batch& batch) const {
    int64_t tokens = 0;
    for (int shard = owned_.begin; shard < owned_.end; ++shard)
      for (const int64_t pair : batch.shards[size_t(shard)])
        tokens += data_.target_length(pair) + 1 +
                  (data_.decoder_only() ? 0 : data_.source_length(pair) + 1);
    return double(tokens);
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
    model_.parameters().bind_gradients(reducer_.begin_shard(end - first));
    std::vector<Pass> passes = passes_of(batch, first, end);
    for (Pass& pass : passes) {
      pass.first_row = first - owned_.begin;
      pass.weight = 1 / double(batch.target_tokens);
      pass.step = step;
      pass.observe = observe && &pass == &passes.front();
      pass.is_last = &pass == &passes.back();
      run_pass(pass);
    }
    reducer_.end_shard();
  }

  // One forward and backward: the pairs of some shards and which rows belong to which shard.
  struct Pass {
    std::vector<int64_t> pairs;
    std::vector<observe::SampleRange> ranges;
    int64_t first_row = 0;  // of the first of the shards, among this rank's
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

  void run_pass(const Pass& pass) {
    Context& context = device_.compute();
    const int64_t shards = int64_t(pass.ranges.size());
    PassEvents events;
    events.begin = context.record();
    Tape tape(device_, model_.parameters().dtype(),
              {.update = model_.update(),
               .dropout = {.seed = options_.seed, .step = pass.step},
               .profile = profile_});
    const model::DeviceBatch batch =
        model::upload(tape, data::pack(data_, pass.pairs), model_.config().vocabulary_size);
    std::optional<observe::LayerProbe> probe;
    if (pass.observe)
      probe.emplace(context, blocks_, pass.ranges, sums_.row_range(pass.first_row, shards));
    const ops::TokenLosses losses = model_.losses(tape, batch, options_.label_smoothing,
                                                  pass.weight, probe ? &*probe : nullptr);
    for (int64_t i = 0; i < shards; ++i)
      context.run(&Kernels::sum_losses, {.first = losses.smooth,
                                         .second = losses.nll,
                                         .sums = losses_.row_range(pass.first_row + i, 1),
                                         .begin = pass.ranges[size_t(i)].first_target,
                                         .count = pass.ranges[size_t(i)].target_rows});
    events.middle = context.record();
    tape.backward(losses.loss, {}, [&](const Parameter& p) {
      if (pass.is_last) reducer_.ready(p.offset, ParameterStore::padded_count(p));
    });
    events.end = context.record();
    passes_.push_back(std::move(events));
  }

  struct PassEvents {
    Event begin, middle, end;  // of forward, between, of backward
  };

  model::Transformer& model_;
  Device& device_;
  const data::Dataset& data_;
  dist::Communicator& group_;
  StepOptions options_;
  dist::ShardRange owned_;
  dist::GradientReducer reducer_;
  std::unique_ptr<dist::Communicator> data_communicator_;
  std::unique_ptr<dist::DataGroup> data_group_;
  std::vector<topology::BlockContext> blocks_;
  Tensor losses_, sums_;          // a row for each shard of this rank, see StepGradient
  Tensor all_losses_, all_sums_;  // of all ranks; empty with one
  Event begin_, end_;             // of this rank's work
  std::vector<PassEvents> passes_;
  double tokens_ = 0;
  autograd::Profile* profile_ = nullptr;  // of this step, or none
};

GradientStep::GradientStep(model::Transformer& model, Device& device, const data::Dataset& data,
                           dist::Communicator& group, const dist::Ownership& ownership,
                           const StepOptions& options)
    : impl_(std::make_unique<Impl>(model, device, data, group, ownership, options)) {}
GradientStep::~GradientStep() = default;

StepGradient GradientStep::run(const data::Batch& batch, int64_t step, bool observe,
                               autograd::Profile* profile) {
  return impl_->run(batch, step, observe, profile);
}
StepTiming GradientStep::timing() const { return impl_->timing(); }
std::vector<RankWork> GradientStep::ranks() { return impl_->ranks(); }
int64_t GradientStep::memory_bytes() const { return impl_->memory_bytes(); }

}  // namespace fathom::launcher
