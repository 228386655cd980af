#include "dist/gradient_reducer.h"

#include <optional>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "dist/bucket_exchange.h"
#include "dist/bucket_ledger.h"
#include "dist/reduction_tree.h"

namespace fathom::dist {
namespace {

using kernels::Kernels;

std::vector<int64_t> boundaries(const Ownership& ownership) {
  std::vector<int64_t> boundaries = {0};
  for (int64_t b = 0; b < ownership.bucket_count(); ++b)
    boundaries.push_back(ownership.bucket(b).end());
  return boundaries;
}

int64_t buffer_count(const ReducerOptions& options, int rank, int size) {
  if (options.reduction == Reduction::kFast) return 1;
  return buffers_needed(shard_range(rank, size, options.shards), options.shards);
}

bool stages_a_part(const ReducerOptions& options, int size) {
  return size > 1 && options.reduction == Reduction::kFast && options.outcome == Outcome::kOwned;
}

std::vector<Tensor> allocate(Device& device, int64_t buffers, int64_t count, DType dtype) {
  const double needed = double(buffers) * double(count) * double(size_of(dtype));
  const double installed = double(device.info().memory_total);
  require<DeviceError>(needed < installed, "gradient reducer: ", buffers, " buffers of ", count,
                       " gradients need ", needed / 1e9, " GB, this process may have ",
                       installed / 1e9,
                       " GB; use dist.reduction: fast, fewer batch.shards or more ranks");
  std::vector<Tensor> all;
  for (int64_t k = 0; k < buffers; ++k) all.push_back(device.compute().allocate(1, count, dtype));
  return all;
}

}  // namespace

ReducerMemory reducer_memory(const ReducerOptions& options, const Ownership& ownership, int rank) {
  const int size = ownership.ranks();
  ReducerMemory memory = {.buffers = buffer_count(options, rank, size) * ownership.count()};
  if (options.reduction == Reduction::kTree)
    memory.staging = BucketExchange::staged_count(ownership, options.shards, rank);
  else if (stages_a_part(options, size))
    memory.staging = ownership.longest_part(rank);
  return memory;
}

// Buffer k belongs to node k of `stack`. The merges that the last shard causes are put off: they
// are done bucket by bucket, when the bucket is final, on the context that reduces.
struct GradientReducer::Impl {
  Impl(Communicator& group, Device& device, const ReducerOptions& options, const Ownership& o,
       DType dtype)
      : is_tree(options.reduction == Reduction::kTree),
        is_overlapped(options.overlap == Overlap::kOn && group.size() > 1),
        is_whole(options.outcome == Outcome::kWhole),
        ownership(o),
        owned(shard_range(group.rank(), group.size(), options.shards)),
        slices(is_whole ? std::vector<Slice>{{.offset = 0, .count = o.count()}}
                        : o.ranges(group.rank())),
        compute(device.compute()),
        buffers(
            allocate(device, buffer_count(options, group.rank(), group.size()), o.count(), dtype)),
        ledger(boundaries(o)),
        stack(options.shards),
        own_communicator(is_overlapped ? group.duplicate() : nullptr),
        context(is_overlapped ? device.communication() : device.compute()),
        data(make_data_group(own_communicator ? *own_communicator : group, device)) {
    require(o.ranks() == group.size(), "gradient reducer: ownership of ", o.ranks(),
            " ranks in a group of ", group.size());
    if (is_tree) exchange.emplace(*data, context, ownership, options.shards, dtype);
    if (stages_a_part(options, group.size()))
      part = context.allocate(1, o.longest_part(group.rank()), dtype);
  }

  [[nodiscard]] bool in_last_shard() const { return begun == owned.count(); }

  [[nodiscard]] Tensor slice(int64_t buffer, Slice s) const {
    return buffers[size_t(buffer)].columns(s.offset, s.count);
  }

  void add_top_to_neighbour(Context& on, int64_t top, Slice s) const {
    const Tensor left = slice(top - 1, s);
    on.run(&Kernels::add_scaled, {.x = left, .z = slice(top, s), .y = left});
  }

  // From final gradients of this rank's last shard to the global sum, in buffer 0.
  void reduce(int64_t bucket) {
    const tensor::Event start = context.record();
    const Slice s = ownership.bucket(bucket);
    if (is_tree) {
      int64_t partial_count = depth;
      for (int merge = 0; merge < pending_merges; ++merge)
        add_top_to_neighbour(context, --partial_count, s);
      std::vector<Tensor> partials;
      for (int64_t k = 0; k < partial_count; ++k) partials.push_back(slice(k, s));
      exchange->reduce(bucket, partials, is_whole);
    } else if (data->size() > 1 && is_whole) {
      data->all_reduce_sum(context, slice(0, s));
    } else if (data->size() > 1) {
      const Slice own = ownership.part(bucket, data->rank());
      const Tensor sum = part.columns(0, own.count);
      data->reduce_scatter_sum(context, slice(0, s), ownership.counts(bucket), sum);
      context.copy(slice(0, own), sum);
    }
    reductions.emplace_back(start, context.record());
  }

  // In ascending order, whatever the order in which buckets become final: peers make equal calls.
  void on_final(std::span<const int64_t> buckets) {
    for (const int64_t bucket : buckets) is_final[size_t(bucket)] = true;
    const int64_t first = next;
    while (next < ledger.bucket_count() && is_final[size_t(next)]) ++next;
    if (!is_overlapped || next == first) return;
    context.wait(compute.record());
    for (int64_t bucket = first; bucket < next; ++bucket) reduce(bucket);
  }

  const bool is_tree, is_overlapped, is_whole;
  const Ownership ownership;
  const ShardRange owned;           // shards
  const std::vector<Slice> slices;  // where the sum ends
  Context& compute;
  std::vector<Tensor> buffers;
  BucketLedger ledger;
  TreeStack stack;
  std::unique_ptr<Communicator> own_communicator;
  Context& context;  // where buckets are reduced
  std::unique_ptr<DataGroup> data;
  std::optional<BucketExchange> exchange;  // tree
  Tensor part;                             // of one bucket: fast, owned

  int begun = 0;           // shards of this step
  bool is_open = false;    // between begin_shard() and end_shard()
  int64_t depth = 0;       // buffers in use, the open shard's included
  int pending_merges = 0;  // caused by the last shard begun
  std::vector<bool> is_final;
  int64_t next = 0;  // the first bucket that is not reduced
  std::vector<std::pair<tensor::Event, tensor::Event>> reductions;
  tensor::Event before_wait, after_wait;
};

GradientReducer::GradientReducer(Communicator& group, Device& device, const ReducerOptions& options,
                                 const Ownership& ownership, DType dtype)
    : impl_(std::make_unique<Impl>(group, device, options, ownership, dtype)) {}

// Buckets of an abandoned step may still be in flight.
GradientReducer::~GradientReducer() {
  try {
    if (impl_->is_overlapped) impl_->context.synchronise();
  } catch (const std::exception&) {
    // Reported where it happened.
  }
}

Tensor GradientReducer::begin_shard(int fused) {
  Impl& m = *impl_;
  require(!m.is_open, "gradient reducer: begin_shard before end_shard of the last one");
  require(fused == 1 || !m.is_tree, "gradient reducer: ", fused,
          " shards in one backward; under dist.reduction: tree each has its own");
  require(fused >= 1 && m.begun + fused <= m.owned.count(), "gradient reducer: shard ",
          m.begun + fused, " of a rank that owns ", m.owned.count(), "; finish() ends a step");
  if (m.begun == 0) {
    m.stack.clear();
    m.ledger.clear();
    m.depth = 0;
    m.next = 0;
    m.is_final.assign(size_t(m.ledger.bucket_count()), false);
    m.reductions.clear();
  }
  const bool is_new_sum = m.is_tree || m.begun == 0;
  if (is_new_sum) {
    m.compute.run(&Kernels::fill, {.y = m.buffers[size_t(m.depth)], .value = 0});
    ++m.depth;
  }
  if (m.is_tree) m.pending_merges = m.stack.push({.level = 0, .index = m.owned.begin + m.begun});
  m.begun += fused;
  m.is_open = true;
  return m.buffers[size_t(m.depth - 1)];
}

void GradientReducer::ready(int64_t offset, int64_t count) {
  Impl& m = *impl_;
  require(m.is_open, "gradient reducer: ready outside of a shard");
  if (m.in_last_shard()) m.on_final(m.ledger.mark(offset, count));
}

void GradientReducer::end_shard() {
  Impl& m = *impl_;
  require(m.is_open, "gradient reducer: end_shard without begin_shard");
  m.is_open = false;
  if (m.in_last_shard()) return;
  const Slice whole = {.offset = 0, .count = m.ownership.count()};
  for (; m.pending_merges > 0; --m.pending_merges)
    m.add_top_to_neighbour(m.compute, --m.depth, whole);
}

GradientSum GradientReducer::finish() {
  Impl& m = *impl_;
  require(!m.is_open && m.in_last_shard(), "gradient reducer: finish after ", m.begun,
          " of this rank's ", m.owned.count(), " shards",
          m.is_open ? ", the last one still open" : "");
  m.before_wait = m.compute.record();
  if (m.is_overlapped) {
    m.on_final(m.ledger.mark_rest());
    m.compute.wait(m.context.record());
  } else {
    for (int64_t bucket = 0; bucket < m.ledger.bucket_count(); ++bucket) m.reduce(bucket);
  }
  m.after_wait = m.compute.record();
  m.begun = 0;
  return {.gradient = m.buffers[0], .owned = m.slices};
}

double GradientReducer::wait_seconds() const {
  return seconds_between(impl_->before_wait, impl_->after_wait);
}

double GradientReducer::reduce_seconds() const {
  double sum = 0;
  for (const auto& [start, end] : impl_->reductions) sum += seconds_between(start, end);
  return sum;
}

int64_t GradientReducer::memory_bytes() const {
  int64_t sum = 0;
  for (const Tensor& buffer : impl_->buffers) sum += buffer.bytes();
  return sum;
}

}  // namespace fathom::dist
