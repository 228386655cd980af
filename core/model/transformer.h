// The model: embeddings, an encoder and a decoder (or a decoder alone), and the loss.
#pragma once

#include <functional>
#include <optional>

#include "core/model/device_batch.h"
#include "core/model/stack.h"
#include "core/ops/cross_entropy.h"

namespace fathom::model {

class Transformer {
 public:
  // Declares and lays out all parameters (zero until initialise or a checkpoint fills them).
  // Throws InvalidArgument for a config that no model can have.
  // `device` outlives the model and runs it.
  Transformer(const ModelConfig& config, Device& device, DType dtype);

  // Fills the weights by `config.init`: each number is a function of (seed, parameter name, index).
  void initialise(uint64_t seed);

  [[nodiscard]] const ModelConfig& config() const { return config_; }
  [[nodiscard]] ParameterStore& parameters() { return store_; }
  [[nodiscard]] const ParameterStore& parameters() const { return store_; }
  // Encoder blocks, then decoder blocks.
  [[nodiscard]] std::vector<topology::BlockContext> blocks() const;

  // For a topology that sets initial values from measurements: runs the blocks one by one over
  // these shards, without dropout, and writes what the rule returns. `gather` sends the rows of
  // this rank's shards to all ranks and returns those of all, in shard order (collective).
  using GatherShards = std::function<std::vector<double>(const Tensor& rows)>;
  [[nodiscard]] bool wants_profile() const;
  void profile(std::span<const data::PackedBatch> shards, const GatherShards& gather);

  // The current training step, or the one the weights are from; for schedules in topologies.
  void set_update(int64_t update) { update_ = update; }
  [[nodiscard]] int64_t update() const { return update_; }

  // Losses of every target token, in the order of the batch; see linear_cross_entropy. The batch
  // must outlive the tape.
  [[nodiscard]] ops::TokenLosses losses(Tape& tape, const DeviceBatch& batch, double smoothing,
                                        double weight, BlockObserver* observer = nullptr);

  // Encoder output (S, C) for a packed source.
  [[nodiscard]] Var encode(Tape& tape, const PackedRows& source, BlockObserver* observer = nullptr);
  // Decoder output (T, C). Positions are below `position_limit`.
  [[nodiscard]] Var decode(Tape& tape, const Tensor& tokens, const Tensor& positions,
                           int64_t position_limit, const BlockInput& input,
                           BlockObserver* observer = nullptr);
  // Keys and values of cross-attention in decoder layer `layer`, from 1, for an encoder output.
  // (S, C) -> (S, 2 C)
  [[nodiscard]] Var source_keys(int layer, const Var& memory) const;
  // (T, C) -> logits (T, V).
  [[nodiscard]] Var logits(const Var& decoded) const;

 private:
  [[nodiscard]] Var embed(Tape& tape, const Parameter& table, uint64_t site, const Tensor& tokens,
                          const Tensor& positions, int64_t position_limit, kernels::RowIds rows);
  void make_sinusoids(int64_t count);

  ModelConfig config_;
  ParameterStore store_;
  const Parameter* source_table_ = nullptr;  // null in a decoder-only model
  const Parameter* target_table_ = nullptr;
  const Parameter* output_ = nullptr;
  std::optional<Stack> encoder_, decoder_;
  int64_t update_ = 0;
  Tensor sinusoids_;  // (P, C) wide, grown for longer sentences
};

}  // namespace fathom::model
