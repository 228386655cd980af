#include "launcher/train/sharding.h"

#include <algorithm>
#include <span>

namespace fathom::launcher {
namespace {

Tensor in_rows(const Tensor& flat) {
  return flat.reshaped(flat.numel() / kernels::kChunkUnit, kernels::kChunkUnit);
}

}  // namespace

dist::Ownership ownership_of(const DistConfig& config, const ParameterStore& store, int ranks) {
  std::vector<int64_t> chunks;
  for (const kernels::Chunk& chunk : store.chunk_table()) chunks.push_back(chunk.first);
  const double length = config.bucket_mb * 1024 * 1024 / double(size_of(store.wide()));
  return {chunks, store.size(), std::max<int64_t>(1, int64_t(length)), ranks};
}

Sharding::Sharding(const DistConfig& config, ParameterStore& store, dist::Communicator& group)
    : store_(store),
      group_(group),
      ownership_(ownership_of(config, store, group.size())),
      gather_(config.shard_optimizer && group.size() > 1
                  ? std::make_unique<dist::SliceGather>(group, store.device().compute(), ownership_,
                                                        store.dtype())
                  : nullptr),
      slices_(gather_ ? autograd::ParameterSlices(store, ownership_.ranges(group.rank()))
                      : autograd::ParameterSlices(store)) {}

observe::ChunkGather Sharding::chunk_gather() const {
  if (!gather_) return {};
  return [gather = gather_.get()](const Tensor& own, const Tensor& all) {
    gather->gather_chunks(own, all);
  };
}

void Sharding::keep_own_masters() {
  if (!is_sharded() || store_.working().is_empty()) return;
  store_.keep_masters(slices_.ranges());
  const auto position = [this](int64_t element) { return store_.vectors_before(element); };
  vector_ownership_ = ownership_.of_elements(position);
  Context& context = store_.device().compute();
  vector_gather_ =
      std::make_unique<dist::SliceGather>(group_, context, *vector_ownership_, store_.wide());
  const std::vector<int32_t> rows = vector_rows();
  own_vectors_ = context.allocate(1, vector_ownership_->owned_count(group_.rank()), store_.wide());
  vector_rows_ = context.allocate(1, int64_t(rows.size()), DType::kI32);
  context.upload(vector_rows_, std::span<const int32_t>(rows));
}

// Parameters and ranges begin and end on whole rows.
std::vector<int32_t> Sharding::vector_rows() const {
  std::vector<int32_t> rows;
  int64_t begin = 0;  // of the range in the own masters
  for (const Slice& range : slices_.ranges()) {
    for (auto p = store_.all().rbegin(); p != store_.all().rend(); ++p) {
      if ((*p)->is_matrix()) continue;
      const int64_t first = std::max(range.offset, (*p)->offset);
      const int64_t end = std::min(range.end(), (*p)->offset + ParameterStore::padded_count(**p));
      for (int64_t at = first; at < end; at += kernels::kChunkUnit)
        rows.push_back(int32_t((begin + at - range.offset) / kernels::kChunkUnit));
    }
    begin += range.count;
  }
  return rows;
}

void Sharding::gather_weights() const {
  if (!gather_) return;
  if (store_.working().is_empty()) return gather_->gather(store_.weights());
  require(vector_gather_ != nullptr, "sharding: an update before keep_own_masters()");
  gather_->gather(store_.working());
  if (own_vectors_.numel() > 0)
    store_.device().compute().run(
        &kernels::Kernels::gather_rows,
        {.from = in_rows(store_.weights()), .to = in_rows(own_vectors_), .index = vector_rows_});
  vector_gather_->gather(own_vectors_, store_.vectors());
}

std::unique_ptr<dist::SliceGather> Sharding::make_gather(Context& context) const {
  if (!is_sharded()) return nullptr;
  return std::make_unique<dist::SliceGather>(group_, context, ownership_, store_.wide());
}

void Sharding::upload(const Tensor& moments, const std::vector<std::byte>& flat) const {
  int64_t at = 0;
  for (const Slice& range : slices_.ranges()) {
    const Tensor to = moments.columns(at, range.count);
    const int64_t begin = range.offset * size_of(moments.dtype());
    store_.device().compute().upload(to,
                                     std::span(flat).subspan(size_t(begin), size_t(to.bytes())));
    at += range.count;
  }
}

}  // namespace fathom::launcher
