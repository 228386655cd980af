#include "core/data/batch_plan.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <span>
#include <string_view>
#include <utility>

#include "core/base/error.h"
#include "core/base/philox.h"

namespace fathom::data {
namespace {

constexpr int64_t kMostShards = 65536;

void check_keys(const BatchConfig& config) {
  const auto positive = [](std::string_view key, int64_t value, int64_t least) {
    require(value >= least, "batch plan: ", key, " is ", value, ", it must be at least ", least);
  };
  positive("batch.tokens", config.tokens, 1);
  positive("batch.micro_tokens", config.micro_tokens, 1);
  positive("batch.shards", config.shards, 0);
}

int64_t longest_pair(const PairLengths& lengths) {
  int64_t longest = 0;
  for (int64_t i = 1; i < lengths.size(); ++i)
    if (lengths.cost(i) > lengths.cost(longest)) longest = i;
  return longest;
}

void check_fits(const PairLengths& lengths, int64_t pair, std::string_view key, int64_t limit) {
  const int64_t cost = lengths.cost(pair);
  require(cost <= limit, "batch plan: pair ", pair, " has ", cost, " tokens with EOS, but ", key,
          " is ", limit, "; raise ", key, " to ", cost,
          limit > 1 ? join(", or lower data.max_length to ", limit - 1) : "");
}

// Pair i's key is a pure function of (seed, epoch, i); sorting by it gives a permutation.
std::vector<int64_t> permutation(int64_t n, uint64_t seed, int64_t epoch) {
  const PhiloxStream stream(seed, join("data/order/epoch ", epoch));
  std::vector<std::pair<uint64_t, int64_t>> keys;
  keys.reserve(size_t(n));
  for (int64_t i = 0; i < n; ++i) keys.emplace_back(stream.bits(uint64_t(i)), i);
  std::sort(keys.begin(), keys.end());
  std::vector<int64_t> order;
  order.reserve(size_t(n));
  for (const auto& [key, i] : keys) order.push_back(i);
  return order;
}

struct Partition {
  std::vector<int64_t> shard_of;  // by position in the batch
  std::vector<int64_t> load;      // by shard
};

// Longest processing time first: the longest pair (ties by position) goes into the lightest shard
// (ties to the lower one).
Partition balance(const PairLengths& lengths, std::span<const int64_t> pairs, int64_t shards) {
  std::vector<int64_t> by_cost(pairs.size());
  std::iota(by_cost.begin(), by_cost.end(), 0);
  const auto cost = [&](int64_t position) { return lengths.cost(pairs[size_t(position)]); };
  std::stable_sort(by_cost.begin(), by_cost.end(),
                   [&](int64_t a, int64_t b) { return cost(a) > cost(b); });

  Partition out{std::vector<int64_t>(pairs.size()), std::vector<int64_t>(size_t(shards))};
  for (const int64_t position : by_cost) {
    const auto lightest = std::min_element(out.load.begin(), out.load.end());
    *lightest += cost(position);
    out.shard_of[size_t(position)] = lightest - out.load.begin();
  }
  return out;
}

}  // namespace

int64_t resolved_shards(const BatchConfig& config) {
  check_keys(config);
  const int64_t by_default =
      std::max<int64_t>(8, int64_t(std::bit_ceil(uint64_t(fewest_shards(config)))));
  const int64_t shards = config.shards > 0 ? config.shards : by_default;
  require(shards <= kMostShards, "batch plan: batch.shards is ", shards, ", the most is ",
          kMostShards, "; lower it, or raise batch.micro_tokens");
  return shards;
}

int64_t fewest_shards(const BatchConfig& config) {
  return (config.tokens + config.micro_tokens - 1) / config.micro_tokens;
}

EpochPlan::EpochPlan(const PairLengths& lengths, const BatchConfig& config, uint64_t seed,
                     int64_t epoch)
    : lengths_(&lengths), shards_(resolved_shards(config)) {
  require(lengths.size() > 0, "batch plan: no pairs to train on");
  const int64_t longest = longest_pair(lengths);
  check_fits(lengths, longest, "batch.micro_tokens", config.micro_tokens);
  check_fits(lengths, longest, "batch.tokens", config.tokens);
  order_ = permutation(lengths.size(), seed, epoch);
  divide(config);
}

// A batch ends before the pair that would exceed batch.tokens. Where a full batch leaves its shards
// little room (tokens near shards * micro_tokens), balancing cannot always keep every shard within
// micro_tokens; such a batch leaves its last pairs, usually one or two, to the next one.
void EpochPlan::divide(const BatchConfig& config) {
  const bool must_fit = config.tokens <= shards_ * config.micro_tokens;
  const int64_t longest = lengths_->cost(longest_pair(*lengths_));
  const auto fits = [&](int64_t begin, int64_t end, int64_t cost) {
    // The heaviest shard is at most the mean plus (shards - 1) / shards of the longest pair.
    if (cost + (shards_ - 1) * longest <= shards_ * config.micro_tokens) return true;
    const std::span<const int64_t> pairs =
        std::span(order_).subspan(size_t(begin), size_t(end - begin));
    const std::vector<int64_t> load = balance(*lengths_, pairs, shards_).load;
    return *std::max_element(load.begin(), load.end()) <= config.micro_tokens;
  };

  const int64_t pairs = lengths_->size();
  begin_.push_back(0);
  while (begin_.back() < pairs) {
    int64_t end = begin_.back(), cost = 0;
    for (; end < pairs; ++end) {
      const int64_t next = lengths_->cost(order_[size_t(end)]);
      if (cost + next > config.tokens) break;
      cost += next;
    }
    // Ends at the latest with one pair, which fits by itself.
    while (must_fit && !fits(begin_.back(), end, cost))
      cost -= lengths_->cost(order_[size_t(--end)]);
    begin_.push_back(end);
  }
}

Batch EpochPlan::batch(int64_t b) const {
  require(b >= 0 && b < batch_count(), "batch plan: batch ", b, " of ", batch_count());
  const int64_t begin = begin_[size_t(b)], end = begin_[size_t(b) + 1];
  Batch batch;
  batch.pairs.assign(order_.begin() + begin, order_.begin() + end);
  batch.shards.resize(size_t(shards_));
  const std::vector<int64_t> shard_of = balance(*lengths_, batch.pairs, shards_).shard_of;
  for (size_t i = 0; i < batch.pairs.size(); ++i) {
    const int64_t pair = batch.pairs[i];
    batch.shards[size_t(shard_of[i])].push_back(pair);
    batch.source_tokens += lengths_->source[size_t(pair)];
    batch.target_tokens += lengths_->target[size_t(pair)];
    batch.cost += lengths_->cost(pair);
  }
  return batch;
}

std::vector<std::vector<int64_t>> evaluation_plan(const PairLengths& lengths,
                                                  int64_t micro_tokens) {
  std::vector<std::vector<int64_t>> plan;
  if (lengths.size() == 0) return plan;
  std::vector<int64_t> order(size_t(lengths.size()));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return lengths.cost(a) < lengths.cost(b); });
  int64_t cost = micro_tokens;
  for (const int64_t pair : order) {
    if (cost + lengths.cost(pair) > micro_tokens) {
      plan.emplace_back();
      cost = 0;
    }
    cost += lengths.cost(pair);
    plan.back().push_back(pair);
  }
  return plan;
}

}  // namespace fathom::data
