#include "launcher/memory_plan.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "checkpoint/writer.h"
#include "core/data/batch_plan.h"
#include "core/data/tokenizer.h"
#include "core/model/transformer.h"
#include "launcher/devices.h"
#include "launcher/train/sharding.h"

namespace fathom::launcher {
namespace {

// Of one rank; `whole_weights`: with all masters.
RankMemory memory_of(const Config& config, const ParameterStore& store,
                     const dist::Ownership& ownership, int rank, int64_t whole_weights) {
  const int64_t wide = size_of(store.wide());
  const bool is_sharded = config.dist.shard_optimizer && ownership.ranks() > 1;
  const dist::ReducerOptions reducer = {
      .reduction = config.dist.reduction,
      .outcome = is_sharded ? dist::Outcome::kOwned : dist::Outcome::kWhole,
      .shards = int(config.batch.shards)};
  const dist::ReducerMemory gradients = dist::reducer_memory(reducer, ownership, rank);
  const int64_t moment = is_sharded ? ownership.owned_count(rank) : ownership.count();
  RankMemory memory = {.ranks = ownership.ranks(),
                       .weights = whole_weights,
                       .gradients = gradients.buffers * wide,
                       .moments = 2 * moment * wide,
                       .staging = gradients.staging * wide};
  if (!is_sharded) return memory;
  // Two gathers: of weights after an update, and of moments for a save.
  memory.staging +=
      ownership.longest_part(rank) * size_of(store.dtype()) + ownership.longest_bucket() * wide;
  if (store.dtype() == store.wide()) return memory;
  const auto position = [&store](int64_t element) { return store.vectors_before(element); };
  memory.weights += (moment - store.size() + store.vectors_before(store.size())) * wide;
  memory.staging += ownership.of_elements(position).owned_count(rank) * wide;
  return memory;
}

// Tokens of the largest micro-batch, with EOS.
int64_t most_micro_tokens(const Config& config) {
  const data::BatchConfig& batch = config.batch;
  if (config.dist.reduction == dist::Reduction::kFast)
    return std::min(batch.micro_tokens, batch.tokens);
  // A shard has at most the mean and the longest pair.
  const int64_t mean = (batch.tokens + batch.shards - 1) / batch.shards;
  return std::min(batch.micro_tokens, mean + config.data.max_length + 1);
}

// As many of the longest pairs as a micro-batch can hold.
data::Dataset longest_pairs(const Config& config) {
  const int64_t tokens = std::max<int64_t>(1, most_micro_tokens(config));
  const int64_t length = std::min(config.data.max_length + 1, tokens);  // with EOS
  const std::vector<int32_t> line(size_t(length) - 1, data::kUnknownToken);
  const bool is_decoder = config.model.kind == model::ModelKind::kDecoder;
  const data::TokenPair pair = {.source = is_decoder ? std::vector<int32_t>() : line,
                                .target = line};
  return data::Dataset::from_pairs(std::vector(size_t(tokens / length), pair), is_decoder);
}

int64_t activations_of(const Config& config, model::Transformer& model, Device& device) {
  ParameterStore& store = model.parameters();
  store.bind_gradients(device.compute().allocate(1, store.size(), store.wide()));
  const data::Dataset pairs = longest_pairs(config);
  std::vector<int64_t> all(size_t(pairs.size()));
  std::iota(all.begin(), all.end(), 0);
  const data::PackedBatch batch = data::pack(pairs, all);
  Tape tape(device, store.dtype(), {.update = 1, .dropout = {.seed = config.run.seed, .step = 1}});
  const ops::TokenLosses losses =
      model.losses(tape, model::upload(tape, batch, config.model.vocabulary_size),
                   config.optimizer.label_smoothing, 1);
  tape.backward(losses.loss);
  return device.arena().peak_bytes();
}

}  // namespace

MemoryPlan plan_memory(const Config& config, const std::vector<int>& ranks) {
  const std::unique_ptr<Device> device = tensor::make_planning_device();
  model::Transformer model(config.model, *device, compute_type(config));
  const int64_t weights = device->allocated_bytes();
  const ParameterStore& store = model.parameters();
  MemoryPlan plan;
  for (const auto& p : store.all()) plan.parameters += p->numel();
  plan.save =
      3 * store.flat_bytes() + checkpoint::save_overhead_bytes(3 * int64_t(store.all().size()));
  for (const int size : ranks) {
    const dist::Ownership ownership = ownership_of(config.dist, store, size);
    RankMemory most;
    for (int rank = 0; rank < size; ++rank) {
      const RankMemory memory = memory_of(config, store, ownership, rank, weights);
      if (memory.total() > most.total()) most = memory;
    }
    plan.by_ranks.push_back(most);
  }
  plan.activations = activations_of(config, model, *device);
  return plan;
}

std::string describe_memory(Config config) {
  if (config.model.vocabulary_size == 0) config.model.vocabulary_size = config.data.vocabulary_size;
  config.batch.shards = data::resolved_shards(config.batch);
  std::vector<int> ranks;
  for (int size = 1; size <= config.batch.shards; size *= 2) ranks.push_back(size);
  const MemoryPlan plan = plan_memory(config, ranks);
  std::string text = fmt::format(
      "parameters  {} with {} pieces\n"
      "memory      of a rank in MiB at most, dist.shard_optimizer {}\n"
      "{:>11} {:>10} {:>10} {:>10} {:>10} {:>12} {:>10}\n",
      plan.parameters, config.model.vocabulary_size, config.dist.shard_optimizer, "ranks",
      "weights", "gradients", "moments", "staging", "activations", "total");
  const auto mebibytes = [](int64_t bytes) { return double(bytes) / double(1 << 20); };
  for (const RankMemory& m : plan.by_ranks)
    text += fmt::format("{:>11} {:>10.1f} {:>10.1f} {:>10.1f} {:>10.1f} {:>12.1f} {:>10.1f}\n",
                        m.ranks, mebibytes(m.weights), mebibytes(m.gradients), mebibytes(m.moments),
                        mebibytes(m.staging), mebibytes(plan.activations),
                        mebibytes(m.total() + plan.activations));
  text += fmt::format("{:<11} rank 0 needs {:.1f} MiB of host memory more for a save\n", "",
                      mebibytes(plan.save));
  return text;
}

}  // namespace fathom::launcher
