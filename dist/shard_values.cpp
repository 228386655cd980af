#include "dist/shard_values.h"

#include "core/base/error.h"
#include "dist/reduction_tree.h"

namespace fathom::dist {

std::vector<double> gather_in_shard_order(Communicator& group, int shards,
                                          std::span<const double> values) {
  const int64_t owned = shard_range(group.rank(), group.size(), shards).count();
  require(int64_t(values.size()) % owned == 0, "shard values: got ", values.size(), " numbers for ",
          owned, " shards, expected the same number for each");
  const int64_t per_shard = int64_t(values.size()) / owned;

  std::vector<int64_t> counts;
  for (int r = 0; r < group.size(); ++r)
    counts.push_back(per_shard * shard_range(r, group.size(), shards).count());
  std::vector<double> all(size_t(per_shard * shards), 0.0);
  group.all_gather(values, counts, all);
  return all;
}

}  // namespace fathom::dist
