#include "core/decode/greedy.h"

#include <algorithm>

#include "core/data/tokenizer.h"

namespace fathom::decode {
namespace {

// One sentence being decoded; `slot` is its place in the memory and the cache.
struct Active {
  size_t slot;
  int32_t last_token;
  int32_t room;  // tokens it may still receive
};

int32_t largest(const Tensor& logits, int64_t row) {
  return visit_float(logits.dtype(), [&]<class T>() {
    const T* z = logits.row<T>(row);
    return int32_t(std::max_element(z, z + logits.cols()) - z);  // the first of equals
  });
}

class GreedyBatch {
 public:
  GreedyBatch(model::Transformer& model, Device& device,
              const std::vector<std::vector<int32_t>>& sources, const GreedyOptions& options)
      : model_(model),
        tape_(device, model.parameters().dtype(),
              {.recording = false, .fixed_tiles = true, .dropping = false}) {
    std::vector<int32_t> lengths;
    for (size_t i = 0; i < sources.size(); ++i) {
      const int32_t length = int32_t(sources[i].size()) + 1;
      lengths.push_back(length);
      const int32_t room = int32_t(options.max_length_a * length) + int32_t(options.max_length_b);
      if (room > 0) active_.push_back({i, data::kEndOfSentence, room});
      longest_ = std::max(longest_, room);
      for (int32_t p = 0; p < length; ++p) {
        tokens_.push_back(p + 1 < length ? sources[i][size_t(p)] : data::kEndOfSentence);
        positions_.push_back(p);
      }
    }
    source_segments_ = kernels::Segments::from_lengths(lengths);
  }

  std::vector<std::vector<int32_t>> run() {
    const size_t sentences = size_t(source_segments_.count());
    std::vector<std::vector<int32_t>> targets(sentences);
    const Var memory = model_.encode(tape_, tokens_, positions_, {}, source_segments_);
    model::DecoderCache cache;
    const int64_t C = model_.config().width;
    for (int layer = 0; layer < model_.config().decoder_layers; ++layer)
      cache.layers.push_back(
          {.self = tape_.keep(int64_t(sentences) * longest_, 2 * C), .cross = {}});

    for (int32_t position = 0; !active_.empty(); ++position) {
      if (position == 0) {
        step(memory, cache, position, targets);  // also makes the cross-attention keys: keep them
      } else {
        const tensor::ArenaScope scope(tape_.device().arena());
        step(memory, cache, position, targets);
      }
    }
    return targets;
  }

 private:
  void step(const Var& memory, model::DecoderCache& cache, int32_t position,
            std::vector<std::vector<int32_t>>& targets) {
    std::vector<int32_t> inputs, ones(active_.size(), 1), positions(active_.size(), position);
    cache.write_row.clear();
    cache.self_keys = cache.memory_keys = {};
    for (const Active& a : active_) {
      inputs.push_back(a.last_token);
      const int32_t first = int32_t(a.slot) * longest_;
      cache.write_row.push_back(first + position);
      cache.self_keys.begin.push_back(first);
      cache.self_keys.length.push_back(position + 1);
      cache.memory_keys.begin.push_back(source_segments_.begin[a.slot]);
      cache.memory_keys.length.push_back(source_segments_.length[a.slot]);
    }
    cache.memory_keys.total = source_segments_.total;
    const kernels::Segments queries = kernels::Segments::from_lengths(ones);
    const Var decoded = model_.decode(tape_, inputs, positions,
                                      {.segments = &queries, .memory = memory, .cache = &cache});
    const Tensor logits = model_.logits(decoded).value();

    std::vector<Active> still;
    for (size_t i = 0; i < active_.size(); ++i) {
      Active a = active_[i];
      a.last_token = largest(logits, int64_t(i));
      if (a.last_token == data::kEndOfSentence) continue;
      targets[a.slot].push_back(a.last_token);
      if (--a.room > 0) still.push_back(a);
    }
    active_ = std::move(still);
  }

  model::Transformer& model_;
  Tape tape_;
  std::vector<int32_t> tokens_, positions_;
  kernels::Segments source_segments_;
  std::vector<Active> active_;
  int32_t longest_ = 0;
};

}  // namespace

std::vector<std::vector<int32_t>> greedy_decode(model::Transformer& model, Device& device,
                                                const std::vector<std::vector<int32_t>>& sources,
                                                const GreedyOptions& options) {
  require(model.config().kind == model::ModelKind::kEncoderDecoder,
          "greedy_decode: a decoder-only model has no source to translate");
  std::vector<std::vector<int32_t>> filled, targets(sources.size());
  std::vector<size_t> place;
  for (size_t i = 0; i < sources.size(); ++i) {
    if (sources[i].empty()) continue;
    filled.push_back(sources[i]);
    place.push_back(i);
  }
  if (filled.empty()) return targets;
  std::vector<std::vector<int32_t>> out = GreedyBatch(model, device, filled, options).run();
  for (size_t i = 0; i < out.size(); ++i) targets[place[i]] = std::move(out[i]);
  return targets;
}

}  // namespace fathom::decode
