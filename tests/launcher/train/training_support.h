// A small model and what trains it on one rank, on the reference device: for the tests of
// launcher/train. Ranks are threads (tests/dist/rank_threads.h).
#pragma once

#include <algorithm>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "core/data/batch_sequence.h"
#include "core/data/prepare.h"
#include "launcher/config/config.h"
#include "launcher/train/layer_report.h"
#include "launcher/train/updater.h"
#include "tests/core/model/model_support.h"
#include "tests/dist/rank_threads.h"

namespace fathom::launcher {

// Six shards, so that two and three ranks have equal shares; several buckets; dropout.
inline Config small_config() {
  Config c;
  c.run.name = "small";
  c.model.encoder_layers = 1;
  c.model.decoder_layers = 1;
  c.model.width = 8;
  c.model.ffn_width = 12;
  c.model.heads = 2;
  c.model.vocabulary_size = 20;
  c.batch = {.tokens = 64, .micro_tokens = 32, .shards = 6};
  c.optimizer.learning_rate = 0.01;
  c.optimizer.warmup_steps = 2;
  c.train.max_steps = 4;
  c.train.validate_every = 0;
  c.train.device = DeviceChoice::kReference;
  c.dist.bucket_mb = 0.001;
  c.checkpoint.every_minutes = 0;
  c.checkpoint.keep_best = 0;
  c.monitoring.layer_statistics_every = 0;
  return c;
}

inline data::Dataset small_dataset(int64_t pairs, uint64_t seed) {
  return data::Dataset::from_pairs(model::random_pairs(pairs, 2, 20, 2, 7, seed), false);
}

// A training set of about five batches and a validation set; no text behind them.
inline data::PreparedData small_data() {
  return {.directory = {},
          .fingerprint = "texts",
          .content_hash = "tokens",
          .tokenizer = {},
          .train = small_dataset(48, 1),
          .valid = small_dataset(12, 2),
          .test = {},
          .reports = {},
          .unigram_entropy = 2.9,
          .notes = {}};
}

inline StepOptions step_options(const Config& c, const Sharding& sharding) {
  return {.reducer = {.reduction = c.dist.reduction,
                      .overlap = c.dist.overlap.value_or(dist::Overlap::kOff),
                      .outcome = sharding.outcome(),
                      .shards = int(c.batch.shards)},
          .micro_tokens = c.batch.micro_tokens,
          .label_smoothing = c.optimizer.label_smoothing,
          .seed = c.run.seed};
}

// One rank's. The config, the data and the group outlive it.
struct SmallTraining {
  const Config& config;
  std::unique_ptr<Device> device;
  model::Transformer model;
  Sharding sharding;
  optim::Adam adam;
  GradientStep gradients;
  observe::ParameterProbe probe;
  Updater updater;
  LayerReport layers;
  data::PairLengths lengths;
  data::BatchSequence batches;

  SmallTraining(const Config& c, const data::Dataset& data, dist::Communicator& group,
                std::unique_ptr<Device> runs_on = tensor::make_reference_device())
      : config(c),
        device(std::move(runs_on)),
        model(c.model, *device, DType::kF32),
        sharding(c.dist, model.parameters(), group),
        adam(c.optimizer, sharding.slices()),
        gradients(model, *device, data, group, sharding.ownership(), step_options(c, sharding)),
        probe(sharding.slices(), sharding.chunk_gather()),
        updater(*device, adam, sharding, probe, c.optimizer.clip_norm),
        layers(model, adam, probe, c.batch.shards),
        lengths(data.lengths()),
        batches(lengths, c.batch, c.run.seed) {
    model.initialise(c.run.seed);
  }

  // The batch of a step of the first epoch; steps count from 1.
  data::Batch batch(int64_t step) { return batches.at({.epoch = 0, .batch = step - 1}); }
  StepGradient gradient(int64_t step, bool observe = false) {
    return gradients.run(batch(step), step, observe);
  }
  Update update(const StepGradient& gradient, int64_t step) {
    return updater.apply(gradient, batch(step).target_tokens, config.optimizer.learning_rate);
  }
  Update train(int64_t step) { return update(gradient(step), step); }

  const ParameterStore& store() const { return model.parameters(); }
};

template <class T>
std::vector<T> values_of(const Tensor& t) {
  std::vector<T> out(size_t(t.numel()));
  std::copy_n(t.data<T>(), out.size(), out.begin());
  return out;
}

inline std::vector<float> floats(const Tensor& t) { return values_of<float>(t); }
inline std::vector<double> doubles(const Tensor& t) { return values_of<double>(t); }

// What f(group) gives on every one of `ranks` ranks; it must give the same on all of them.
template <class F>
auto on_ranks(int ranks, const F& f) {
  using Result = std::invoke_result_t<const F&, dist::Communicator&>;
  std::vector<Result> results{size_t(ranks)};
  dist::run_ranks(ranks,
                  [&](dist::Communicator& group) { results[size_t(group.rank())] = f(group); });
  for (const Result& result : results) EXPECT_EQ(result, results[0]) << "the ranks differ";
  return results[0];
}

// The same for one rank.
template <class F>
void on_one_rank(const F& f) {
  dist::run_ranks(1, f);
}

}  // namespace fathom::launcher
