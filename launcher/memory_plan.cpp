#include "launcher/memory_plan.h"

#include <fmt/format.h>

#include "checkpoint/writer.h"
#include "core/data/batch_plan.h"
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

}  // namespace

MemoryPlan plan_memory(const Config& config, const std::vector<int>& ranks) {
  const std::unique_ptr<Device> device = tensor::make_planning_device();
  const model::Transformer model(config.model, *device, compute_type(config));
  const ParameterStore& store = model.parameters();
  MemoryPlan plan;
  for (const auto& p : store.all()) plan.parameters += p->numel();
  plan.save =
      3 * store.flat_bytes() + checkpoint::save_overhead_bytes(3 * int64_t(store.all().size()));
  for (const int size : ranks) {
    const dist::Ownership ownership = ownership_of(config.dist, store, size);
    RankMemory most;
    for (int rank = 0; rank < size; ++rank) {
      const RankMemory memory =
          memory_of(config, store, ownership, rank, device->allocated_bytes());
      if (memory.total() > most.total()) most = memory;
    }
    plan.by_ranks.push_back(most);
  }
  return plan;
}

std::string describe_memory(Config config) {
  config.model.vocabulary_size = config.data.vocabulary_size;
  config.batch.shards = data::resolved_shards(config.batch);
  std::vector<int> ranks;
  for (int size = 1; size <= config.batch.shards; size *= 2) ranks.push_back(size);
  const MemoryPlan plan = plan_memory(config, ranks);
  std::string text = fmt::format(
      "memory of a rank in MiB, without activations: {} parameters with {} pieces, "
      "dist.shard_optimizer {}\n{:>6} {:>10} {:>10} {:>10} {:>10} {:>10}\n",
      plan.parameters, config.data.vocabulary_size, config.dist.shard_optimizer, "ranks", "weights",
      "gradients", "moments", "staging", "total");
  const auto mebibytes = [](int64_t bytes) { return double(bytes) / double(1 << 20); };
  for (const RankMemory& m : plan.by_ranks)
    text += fmt::format("{:>6} {:>10.1f} {:>10.1f} {:>10.1f} {:>10.1f} {:>10.1f}\n", m.ranks,
                        mebibytes(m.weights), mebibytes(m.gradients), mebibytes(m.moments),
                        mebibytes(m.staging), mebibytes(m.total()));
  text +=
      fmt::format("rank 0 needs {:.1f} MiB of host memory more for a save\n", mebibytes(plan.save));
  return text;
}

}  // namespace fathom::launcher
