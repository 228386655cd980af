#include "launcher/train/sharding.h"

#include <algorithm>
#include <span>

namespace fathom::launcher {

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
                                                        store.wide())
                  : nullptr),
      slices_(gather_ ? autograd::ParameterSlices(store, ownership_.ranges(group.rank()))
                      : autograd::ParameterSlices(store)) {}

observe::ChunkGather Sharding::chunk_gather() const {
  if (!gather_) return {};
  return [gather = gather_.get()](const Tensor& own, const Tensor& all) {
    gather->gather_chunks(own, all);
  };
}

void Sharding::gather_weights() const {
  if (!gather_) return;
  gather_->gather(store_.weights());
  store_.refresh_working();
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
