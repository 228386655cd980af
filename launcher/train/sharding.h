// Which rank owns which slices of the flat buffers. With dist.shard_optimizer a rank sums and updates
// its slices alone, and has moments and, where they are apart from the working weights, master
// weights for those; without it for everything.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "core/observe/parameter_probe.h"
#include "dist/gradient_reducer.h"
#include "dist/slice_gather.h"
#include "launcher/config/config.h"

namespace fathom::launcher {

// Buckets of dist.bucket_mb.
[[nodiscard]] dist::Ownership ownership_of(const DistConfig& config, const ParameterStore& store,
                                           int ranks);

class Sharding {
 public:
  // Collective. The store and the group outlive it. With one rank nothing is sharded.
  Sharding(const DistConfig& config, ParameterStore& store, dist::Communicator& group);
  Sharding(const Sharding&) = delete;
  Sharding& operator=(const Sharding&) = delete;

  [[nodiscard]] const dist::Ownership& ownership() const { return ownership_; }
  [[nodiscard]] bool is_sharded() const { return gather_ != nullptr; }
  // Whether the gradient reducer leaves the whole sum on every rank, or its slices.
  [[nodiscard]] dist::Outcome outcome() const {
    return is_sharded() ? dist::Outcome::kOwned : dist::Outcome::kWhole;
  }
  // What this rank updates.
  [[nodiscard]] const autograd::ParameterSlices& slices() const { return slices_; }
  // For a ParameterProbe of the slices; lives as long as this.
  [[nodiscard]] observe::ChunkGather chunk_gather() const;

  // Frees the masters that other ranks own, where those are apart from the working weights: once
  // the model is filled, before the first update. Collective.
  void keep_own_masters();

  // Once the weights of the slices are updated: queues the all-gather of the working weights.
  // Collective.
  void gather_weights() const;

  // A gather of its own for another context, null where nothing is sharded. Collective.
  [[nodiscard]] std::unique_ptr<dist::SliceGather> make_gather(Context& context) const;
  // Moments as the optimizer has them from the host's, laid out as the flat buffers.
  void upload(const Tensor& moments, const std::vector<std::byte>& flat) const;

 private:
  [[nodiscard]] std::vector<int32_t> vector_rows() const;

  ParameterStore& store_;
  dist::Communicator& group_;
  dist::Ownership ownership_;
  std::unique_ptr<dist::SliceGather> gather_;  // null: every rank has everything
  autograd::ParameterSlices slices_;

  // Of the vectors, which are in the wide type among the working weights, after keep_own_masters().
  std::optional<dist::Ownership> vector_ownership_;
  std::unique_ptr<dist::SliceGather> vector_gather_;
  Tensor own_vectors_;  // compact
  Tensor vector_rows_;  // where they are among the own masters, in rows of kChunkUnit elements
};

}  // namespace fathom::launcher
