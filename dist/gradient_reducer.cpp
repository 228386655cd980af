#include "dist/gradient_reducer.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <vector>

#include <unistd.h>

#include "core/base/error.h"
#include "dist/bucket_exchange.h"
#include "dist/bucket_ledger.h"
#include "dist/bucket_thread.h"
#include "dist/reduction_tree.h"

namespace fathom::dist {
namespace {

struct Free {
  void operator()(void* p) const { std::free(p); }
};
template <class T>
using Buffer = std::unique_ptr<T[], Free>;

// The kernel promises memory that it does not have and kills the process that uses it: so ask
// first.
template <class T>
std::vector<Buffer<T>> allocate(int buffers, int64_t count) {
  constexpr size_t kAlignment = 64;
  const double needed = double(buffers) * double(count) * sizeof(T);
  const double installed = double(sysconf(_SC_PHYS_PAGES)) * double(sysconf(_SC_PAGESIZE));
  const auto require_memory = [&](bool ok) {
    require<DeviceError>(ok, "gradient reducer: ", buffers, " buffers of ", count,
                         " gradients need ", needed / 1e9, " GB, this machine has ",
                         installed / 1e9,
                         " GB; use dist.reduction: fast, fewer batch.shards or more ranks");
  };
  require_memory(needed < installed);
  const size_t bytes = (size_t(count) * sizeof(T) + kAlignment - 1) / kAlignment * kAlignment;
  std::vector<Buffer<T>> all;
  for (int k = 0; k < buffers; ++k) {
    all.emplace_back(static_cast<T*>(std::aligned_alloc(kAlignment, bytes)));
    require_memory(all.back() != nullptr);
  }
  return all;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

int64_t bucket_length(int64_t bucket_bytes, size_t element_bytes) {
  require(bucket_bytes >= int64_t(element_bytes), "gradient reducer: bucket_bytes is ",
          bucket_bytes, ", expected at least one element (", element_bytes, ")");
  return bucket_bytes / int64_t(element_bytes);
}

}  // namespace

// Buffer k belongs to node k of `stack`. The merges that the last shard causes are put off: they
// are done bucket by bucket, when the bucket is final, and may run on the communication thread.
// That thread reads the members marked (c), which do not change between announcement and finish().
template <class T>
struct GradientReducer<T>::Impl {
  Impl(Communicator& group, const ReducerOptions& options, int64_t count)
      : is_tree(options.reduction == Reduction::kTree),
        parameter_count(count),
        owned(shard_range(group.rank(), group.size(), options.shards)),
        communicator(group),
        ledger(count, bucket_length(options.bucket_bytes, sizeof(T))),
        stack(options.shards),
        exchange(group.rank(), group.size(), options.shards) {
    buffers = allocate<T>(is_tree ? buffers_needed(owned, options.shards) : 1, count);
    if (options.overlap == Overlap::kOn && group.size() > 1) {
      own_communicator = group.duplicate();
      thread = std::make_unique<BucketThread>(ledger.bucket_count(),
                                              [this](int64_t bucket) { reduce(bucket); });
    }
  }

  [[nodiscard]] bool in_last_shard() const { return begun == owned.count(); }

  void add_top_to_neighbour(int64_t top, Slice s) {
    const T* right = buffers[size_t(top)].get() + s.offset;
    T* left = buffers[size_t(top - 1)].get() + s.offset;
    for (int64_t i = 0; i < s.count; ++i) left[i] += right[i];
  }

  // From final gradients of this rank's last shard to the global sum, in buffer 0.
  void reduce(int64_t bucket) {
    const auto start = std::chrono::steady_clock::now();
    const Slice s = ledger.slice(bucket);
    Communicator& group = own_communicator ? *own_communicator : communicator;
    if (is_tree) {
      int64_t partial_count = depth;
      for (int merge = 0; merge < pending_merges; ++merge) add_top_to_neighbour(--partial_count, s);
      std::vector<std::span<T>> partials;
      for (int64_t k = 0; k < partial_count; ++k)
        partials.emplace_back(buffers[size_t(k)].get() + s.offset, size_t(s.count));
      exchange.reduce(group, partials);
    } else if (group.size() > 1) {
      group.all_reduce_sum(std::span<T>(buffers[0].get() + s.offset, size_t(s.count)));
    }
    reduce_seconds += seconds_since(start);
  }

  const bool is_tree;             // (c)
  const int64_t parameter_count;  // (c)
  const ShardRange owned;
  Communicator& communicator;
  std::unique_ptr<Communicator> own_communicator = {};  // (c), the thread's
  std::vector<Buffer<T>> buffers = {};                  // (c), slices that are final

  BucketLedger ledger;  // (c), slice() only
  TreeStack stack;
  BucketExchange<T> exchange;  // (c)
  int begun = 0;               // shards of this step
  bool is_open = false;        // between begin_shard() and end_shard()
  int64_t depth = 0;           // (c), buffers in use, the open shard's included
  int pending_merges = 0;      // (c), caused by the last shard begun
  double wait_seconds = 0;
  double reduce_seconds = 0;  // (c)

  std::unique_ptr<BucketThread> thread = {};  // last: stops before anything it uses goes
};

template <class T>
GradientReducer<T>::GradientReducer(Communicator& group, const ReducerOptions& options,
                                    int64_t parameter_count)
    : impl_(std::make_unique<Impl>(group, options, parameter_count)) {}

template <class T>
GradientReducer<T>::~GradientReducer() = default;

template <class T>
std::span<T> GradientReducer<T>::begin_shard(int fused) {
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
    m.reduce_seconds = 0;
  }
  const bool is_new_sum = m.is_tree || m.begun == 0;
  if (is_new_sum) {
    std::fill_n(m.buffers[size_t(m.depth)].get(), m.parameter_count, T{0});
    ++m.depth;
  }
  if (m.is_tree) m.pending_merges = m.stack.push({.level = 0, .index = m.owned.begin + m.begun});
  m.begun += fused;
  m.is_open = true;
  return {m.buffers[size_t(m.depth - 1)].get(), size_t(m.parameter_count)};
}

template <class T>
void GradientReducer<T>::ready(int64_t offset, int64_t count) {
  Impl& m = *impl_;
  require(m.is_open, "gradient reducer: ready outside of a shard");
  if (!m.in_last_shard()) return;
  const std::vector<int64_t> completed = m.ledger.mark(offset, count);
  if (m.thread) m.thread->announce(completed);
}

template <class T>
void GradientReducer<T>::end_shard() {
  Impl& m = *impl_;
  require(m.is_open, "gradient reducer: end_shard without begin_shard");
  m.is_open = false;
  if (m.in_last_shard()) return;
  const Slice whole = {.offset = 0, .count = m.parameter_count};
  for (; m.pending_merges > 0; --m.pending_merges) m.add_top_to_neighbour(--m.depth, whole);
}

template <class T>
std::span<const T> GradientReducer<T>::finish() {
  Impl& m = *impl_;
  require(!m.is_open && m.in_last_shard(), "gradient reducer: finish after ", m.begun,
          " of this rank's ", m.owned.count(), " shards",
          m.is_open ? ", the last one still open" : "");
  const auto start = std::chrono::steady_clock::now();
  if (m.thread) {
    m.thread->announce(m.ledger.mark_rest());
    m.thread->finish();
  } else {
    for (int64_t bucket = 0; bucket < m.ledger.bucket_count(); ++bucket) m.reduce(bucket);
  }
  m.wait_seconds = seconds_since(start);
  m.begun = 0;
  return {m.buffers[0].get(), size_t(m.parameter_count)};
}

template <class T>
double GradientReducer<T>::wait_seconds() const {
  return impl_->wait_seconds;
}

template <class T>
double GradientReducer<T>::reduce_seconds() const {
  return impl_->reduce_seconds;
}

template <class T>
int64_t GradientReducer<T>::memory_bytes() const {
  return int64_t(impl_->buffers.size()) * impl_->parameter_count * int64_t(sizeof(T));
}

template class GradientReducer<float>;
template class GradientReducer<double>;

}  // namespace fathom::dist
