#include "core/data/micro_batches.h"

namespace fathom::data {
namespace {

int64_t cost_of(const std::vector<int64_t>& shard, const PairLengths& lengths) {
  int64_t cost = 0;
  for (const int64_t pair : shard) cost += lengths.cost(pair);
  return cost;
}

// One past the last shard that shares a micro-batch with `first`.
int end_of_group(const Batch& batch, const PairLengths& lengths, int first, int end,
                 const MicroBatchOptions& options) {
  int last = first + 1;
  if (!options.fuses_shards) return last;
  int64_t cost = cost_of(batch.shards[size_t(first)], lengths);
  while (last < end) {
    cost += cost_of(batch.shards[size_t(last)], lengths);
    if (cost > options.micro_tokens) break;
    ++last;
  }
  return last;
}

// Appends a shard, without rows so far.
void open_shard(MicroBatch& micro) {
  const ShardRows before = micro.shards.empty() ? ShardRows{} : micro.shards.back();
  micro.shards.push_back({.first_source = before.first_source + before.source_rows,
                          .first_target = before.first_target + before.target_rows});
}

void add_pair(MicroBatch& micro, const PairLengths& lengths, int64_t pair) {
  micro.pairs.push_back(pair);
  micro.shards.back().source_rows += lengths.source[size_t(pair)];
  micro.shards.back().target_rows += lengths.target[size_t(pair)];
}

MicroBatch fused(const Batch& batch, const PairLengths& lengths, int first, int end) {
  MicroBatch micro = {.first_shard = first};
  for (int shard = first; shard < end; ++shard) {
    open_shard(micro);
    for (const int64_t pair : batch.shards[size_t(shard)]) add_pair(micro, lengths, pair);
  }
  return micro;
}

// A single shard that is too large for one micro-batch.
void append_split(const Batch& batch, const PairLengths& lengths, int shard, int64_t micro_tokens,
                  std::vector<MicroBatch>& out) {
  int64_t cost = 0;
  bool is_first = true;
  for (const int64_t pair : batch.shards[size_t(shard)]) {
    if (is_first || cost + lengths.cost(pair) > micro_tokens) {
      const ShardRows before = is_first ? ShardRows{} : out.back().shards.back();
      out.push_back({.first_shard = shard, .is_first = is_first, .is_last = false});
      open_shard(out.back());
      out.back().shards.back().source_before = before.source_before + before.source_rows;
      out.back().shards.back().target_before = before.target_before + before.target_rows;
      cost = 0;
      is_first = false;
    }
    add_pair(out.back(), lengths, pair);
    cost += lengths.cost(pair);
  }
  out.back().is_last = true;
}

}  // namespace

std::vector<MicroBatch> micro_batches(const Batch& batch, const PairLengths& lengths, int begin,
                                      int end, const MicroBatchOptions& options) {
  std::vector<MicroBatch> out;
  for (int first = begin; first < end;) {
    const int last = end_of_group(batch, lengths, first, end, options);
    if (options.fuses_shards &&
        cost_of(batch.shards[size_t(first)], lengths) > options.micro_tokens)
      append_split(batch, lengths, first, options.micro_tokens, out);
    else
      out.push_back(fused(batch, lengths, first, last));
    first = last;
  }
  return out;
}

int64_t tokens_of(const Batch& batch, const PairLengths& lengths, int begin, int end) {
  int64_t tokens = 0;
  for (int shard = begin; shard < end; ++shard)
    for (const int64_t pair : batch.shards[size_t(shard)])
      tokens += lengths.source[size_t(pair)] + lengths.target[size_t(pair)];
  return tokens;
}

}  // namespace fathom::data
