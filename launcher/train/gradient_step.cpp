#include "launcher/train/gradient_step.h"

#include <optional>
#include <utility>

namespace fathom::launcher {

using kernels::Kernels;

GradientStep::GradientStep(model::Transformer& model, Device& device, const data::Dataset& data,
                           dist::Communicator& group, const dist::Ownership& ownership,
                           const StepOptions& options)
    : model_(model),
      device_(device),
      data_(data),
      lengths_(data.lengths()),
      group_(group),
      options_(options),
      owned_(dist::shard_range(group.rank(), group.size(), options.reducer.shards)),
      reducer_(group, device, options.reducer, ownership, model.parameters().wide()),
      data_communicator_(group.duplicate()),
      data_group_(dist::make_data_group(*data_communicator_, device)),
      blocks_(model.blocks()) {
  Context& context = device.compute();
  const int64_t numbers = int64_t(blocks_.size()) * observe::kBlockSums;
  losses_ = context.allocate(owned_.count(), 2, DType::kF64);
  sums_ = context.allocate(owned_.count(), numbers, DType::kF64);
  if (group.size() == 1) return;
  all_losses_ = context.allocate(options.reducer.shards, 2, DType::kF64);
  all_sums_ = context.allocate(options.reducer.shards, numbers, DType::kF64);
}

StepGradient GradientStep::run(const data::Batch& batch, int64_t step, bool observe,
                               autograd::Profile* profile) {
  Context& context = device_.compute();
  begin(batch, step, observe);
  for (const data::MicroBatch& micro : micro_batches(batch)) {
    if (micro.is_first)
      model_.parameters().bind_gradients(reducer_.begin_shard(int(micro.shards.size())));
    if (!micro.pairs.empty()) {
      MicroBatchEvents& events = events_.emplace_back();
      events.begin = context.record();
      Tape tape(
          device_, model_.parameters().dtype(),
          {.update = step, .dropout = {.seed = options_.seed, .step = step}, .profile = profile});
      const model::DeviceBatch rows =
          model::upload(tape, data::pack(data_, micro.pairs), model_.config().vocabulary_size);
      std::optional<observe::LayerProbe> probe;
      if (observe) probe.emplace(context, blocks_, micro.shards, rows_of(micro, sums_));
      const ops::TokenLosses losses =
          model_.losses(tape, rows, options_.label_smoothing, 1 / double(batch.target_tokens),
                        probe ? &*probe : nullptr);
      sum_losses(losses, micro);
      events.middle = context.record();
      tape.backward(losses.loss, {}, [&](const Parameter& p) {
        if (micro.is_last) reducer_.ready(p.offset, ParameterStore::padded_count(p));
      });
      events.end = context.record();
    }
    if (micro.is_last) reducer_.end_shard();
    if (options_.on_micro_batch) options_.on_micro_batch();
  }
  end_ = context.record();
  return reduce(observe, profile);
}

void GradientStep::begin(const data::Batch& batch, int64_t step, bool observe) {
  Context& context = device_.compute();
  events_.clear();
  tokens_ = double(data::tokens_of(batch, lengths_, owned_.begin, owned_.end));
  model_.set_update(step);
  begin_ = context.record();
  context.run(&Kernels::fill, {.y = losses_, .value = 0});
  if (observe) context.run(&Kernels::fill, {.y = sums_, .value = 0});
}

// tree: the gradient of every shard is a sum of its own. fast: a rank's shards share one.
std::vector<data::MicroBatch> GradientStep::micro_batches(const data::Batch& batch) const {
  return data::micro_batches(
      batch, lengths_, owned_.begin, owned_.end,
      {.micro_tokens = options_.micro_tokens,
       .fuses_shards = options_.reducer.reduction == dist::Reduction::kFast});
}

StepGradient GradientStep::reduce(bool observe, autograd::Profile* profile) {
  if (profile != nullptr) profile->begin();
  StepGradient out;
  out.gradient = reducer_.finish().gradient;
  if (profile != nullptr) profile->end("reduce gradients", autograd::Phase::kUpdate);
  out.losses = in_shard_order(losses_, all_losses_);
  if (observe) out.blocks = in_shard_order(sums_, all_sums_);
  return out;
}

// The rows of the micro-batch's shards in a tensor with one for each shard of this rank.
Tensor GradientStep::rows_of(const data::MicroBatch& micro, const Tensor& own) const {
  return own.row_range(micro.first_shard - owned_.begin, int64_t(micro.shards.size()));
}

void GradientStep::sum_losses(const ops::TokenLosses& losses, const data::MicroBatch& micro) {
  const Tensor sums = rows_of(micro, losses_);
  int64_t row = 0;
  for (const data::ShardRows& shard : micro.shards)
    device_.compute().run(&Kernels::sum_losses, {.first = losses.smooth,
                                                 .second = losses.nll,
                                                 .sums = sums.row_range(row++, 1),
                                                 .begin = shard.first_target,
                                                 .count = shard.target_rows});
}

// From the rows of this rank's shards to those of all.
Tensor GradientStep::in_shard_order(const Tensor& own, const Tensor& all) {
  if (group_.size() == 1) return own;
  std::vector<int64_t> counts;
  for (int r = 0; r < group_.size(); ++r)
    counts.push_back(own.cols() *
                     dist::shard_range(r, group_.size(), options_.reducer.shards).count());
  data_group_->all_gather(device_.compute(), own, counts, all);
  return all;
}

StepTiming GradientStep::timing() const {
  StepTiming out;
  for (const MicroBatchEvents& micro : events_) {
    out.forward_seconds += seconds_between(micro.begin, micro.middle);
    out.backward_seconds += seconds_between(micro.middle, micro.end);
  }
  out.reduce_seconds = reducer_.wait_seconds();
  return out;
}

std::vector<RankWork> GradientStep::ranks() {
  const double numbers[] = {seconds_between(begin_, end_), tokens_};
  std::vector<double> all(2 * size_t(group_.size()));
  group_.all_gather(std::span<const double>(numbers), std::vector<int64_t>(all.size() / 2, 2),
                    std::span<double>(all));
  std::vector<RankWork> ranks;
  for (size_t i = 0; i < all.size(); i += 2) ranks.push_back({all[i], all[i + 1]});
  return ranks;
}

int64_t GradientStep::memory_bytes() const {
  return reducer_.memory_bytes() + device_.arena().peak_bytes();
}

}  // namespace fathom::launcher
