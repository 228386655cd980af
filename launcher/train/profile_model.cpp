#include "launcher/train/profile_model.h"

#include <vector>

#include "core/data/batch_plan.h"
#include "core/data/packed_batch.h"
#include "dist/reduction_tree.h"

namespace fathom::launcher {

void profile_model(const Config& config, const data::Dataset& data, model::Transformer& model,
                   dist::Communicator& group) {
  if (!model.wants_profile()) return;
  const int shards = int(config.batch.shards);
  const data::PairLengths lengths = data.lengths();
  const data::Batch batch = data::EpochPlan(lengths, config.batch, config.run.seed, 0).batch(0);
  const dist::ShardRange owned = dist::shard_range(group.rank(), group.size(), shards);
  std::vector<data::PackedBatch> packed;
  for (int shard = owned.begin; shard < owned.end; ++shard)
    packed.push_back(data::pack(data, batch.shards[size_t(shard)]));

  const auto gather = [&](const Tensor& own) {
    std::vector<double> mine(size_t(own.numel()));
    model.parameters().device().compute().download(std::span(mine), own);
    std::vector<int64_t> counts;
    for (int r = 0; r < group.size(); ++r)
      counts.push_back(own.cols() * dist::shard_range(r, group.size(), shards).count());
    std::vector<double> all(size_t(own.cols() * shards));
    group.all_gather(std::span<const double>(mine), counts, std::span<double>(all));
    return all;
  };
  model.profile(packed, gather);
}

}  // namespace fathom::launcher
