#include "core/model/stack.h"

namespace fathom::model {
namespace {

topology::ModelShape shape_of(const ModelConfig& config) {
  return {.encoder_layers = config.encoder_layers,
          .decoder_layers = config.decoder_layers,
          .width = config.width,
          .ffn_width = config.ffn_width};
}

std::vector<topology::BlockContext> blocks_of(topology::StackKind stack,
                                              const topology::ModelShape& shape) {
  std::vector<topology::BlockKind> kinds = {topology::BlockKind::kSelfAttention,
                                            topology::BlockKind::kFeedForward};
  if (shape.blocks_per_layer(stack) == 3)
    kinds.insert(kinds.begin() + 1, topology::BlockKind::kCrossAttention);
  std::vector<topology::BlockContext> blocks;
  for (int layer = 1; layer <= shape.layers(stack); ++layer)
    for (size_t i = 0; i < kinds.size(); ++i)
      blocks.push_back({.stack = stack,
                        .layer = layer,
                        .kind = kinds[i],
                        .index_in_layer = int(i) + 1,
                        .block = int(blocks.size()) + 1,
                        .block_count = shape.layers(stack) * int(kinds.size()),
                        .blocks_in_layer = int(kinds.size())});
  return blocks;
}

}  // namespace

Stack::Stack(ParameterStore& store, const ModelConfig& config, topology::StackKind kind)
    : topology_(topology::make_topology(config.topology, config.topology_options, shape_of(config),
                                        kind)),
      blocks_(blocks_of(kind, shape_of(config))),
      recomputes_(config.recompute_activations) {
  for (const topology::BlockContext& block : blocks_) {
    topology_->declare_block(store, block);
    sublayers_.push_back(make_sublayer(store, config, block, *topology_));
  }
  topology_->declare_final(store);
}

topology::Streams Stack::run(topology::Streams streams, Segment segment, const BlockInput& input,
                             BlockObserver* observer) const {
  const bool is_recording = streams[0].tape().is_recording();
  // What lies within a layer need not be kept; a decoder's cache must outlive its layer.
  const bool keeps_all = is_recording ? !recomputes_ : input.cache != nullptr;
  const bool is_one_layer =
      segment.last - segment.first <= size_t(blocks_[segment.first].blocks_in_layer);
  for (size_t i = segment.first; i < segment.last;) {
    const Segment layer = {.first = i, .last = i + size_t(blocks_[i].blocks_in_layer)};
    if (!keeps_all && !is_one_layer) {
      streams = recomputed(streams, layer, input, observer);
      i = layer.last;
      continue;
    }
    const Var u = topology_->in(streams, blocks_[i]);
    const Var o = sublayers_[i]->forward(u, input);
    topology::Streams next = topology_->out(streams, o, blocks_[i]);
    if (observer)
      observer->on_block(blocks_[i], topology_->watched(streams).value(), o.value(),
                         topology_->watched(next).value());
    streams = std::move(next);
    ++i;
  }
  return streams;
}

topology::Streams Stack::recomputed(const topology::Streams& streams, Segment layer,
                                    const BlockInput& input, BlockObserver* observer) const {
  // Streams that are not set yet keep their indices; the memory is an input like the streams.
  std::vector<Var> inputs;
  std::vector<size_t> places;
  for (size_t i = 0; i < streams.size(); ++i) {
    if (!streams[i].is_set()) continue;
    places.push_back(i);
    inputs.push_back(streams[i]);
  }
  const bool has_memory = input.memory.is_set();
  if (has_memory) inputs.push_back(input.memory);
  return streams[0].tape().recomputed(
      "layer", inputs,
      [this, layer, input, observer, has_memory, places, count = streams.size()](
          std::span<const Var> given, Tape::Run which) {
        topology::Streams own(count);
        for (size_t i = 0; i < places.size(); ++i) own[places[i]] = given[i];
        BlockInput seen = input;
        if (has_memory) seen.memory = given.back();
        return run(std::move(own), layer, seen, which == Tape::Run::kFirst ? observer : nullptr);
      });
}

}  // namespace fathom::model
