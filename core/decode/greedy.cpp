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

class GreedyBatch {
 public:
  GreedyBatch(model::Transformer& model, Device& device,
              const std::vector<std::vector<int32_t>>& sources, const GreedyOptions& options)
      : model_(model),
        tape_(device, model.parameters().dtype(),
              {.recording = false,
               .batch_invariant = true,
               .training = false,
               .update = model.update()}) {
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
    source_segments_ = data::Segments::from_lengths(lengths);
  }

  std::vector<std::vector<int32_t>> run() {
    const size_t sentences = size_t(source_segments_.count());
    std::vector<std::vector<int32_t>> targets(sentences);
    const model::PackedRows rows = model::upload_rows(tape_, tokens_, positions_, source_segments_,
                                                      model_.config().vocabulary_size);
    const Var memory = model_.encode(tape_, rows);
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
    // One row for each active sentence: what it reads, its position, where its keys and values go,
    // and where the keys lie that it sees, its own and the source's.
    std::vector<int32_t> inputs, rows, places, own_begin, source_begin, source_length;
    for (const Active& a : active_) {
      inputs.push_back(a.last_token);
      const int32_t first = int32_t(a.slot) * longest_;
      rows.push_back(int32_t(rows.size()));
      places.push_back(first + position);
      own_begin.push_back(first);
      source_begin.push_back(source_segments_.begin[a.slot]);
      source_length.push_back(source_segments_.length[a.slot]);
    }
    const int64_t n = int64_t(active_.size());
    const std::vector<int32_t> ones(active_.size(), 1), positions(active_.size(), position),
        own_length(active_.size(), position + 1);
    std::vector<int32_t> all;
    const std::vector<int32_t>* const parts[] = {&inputs,     &positions,    &rows,
                                                 &ones,       &places,       &own_begin,
                                                 &own_length, &source_begin, &source_length};
    for (const auto* values : parts) all.insert(all.end(), values->begin(), values->end());
    const Tensor numbers = tape_.upload(all);
    const auto part = [&](int64_t i) { return numbers.columns(i * n, n); };
    cache.write_row = part(4);
    cache.self_keys =
        model::segments_of(part(5), part(6), cache.layers[0].self.rows(), position + 1);
    cache.memory_keys =
        model::segments_of(part(7), part(8), source_segments_.total, source_segments_.longest());
    const Var decoded = model_.decode(tape_, part(0), part(1), position + 1,
                                      {.segments = model::segments_of(part(2), part(3), n, 1),
                                       .memory = memory,
                                       .cache = &cache});
    const Tensor best = tape_.keep(n, 1, DType::kI32);
    tape_.run(&kernels::Kernels::top_k,
              {.logits = model_.logits(decoded).value(), .values = {}, .indices = best});
    std::vector<int32_t> chosen(active_.size());
    tape_.context().download(std::span(chosen), best);

    std::vector<Active> still;
    for (size_t i = 0; i < active_.size(); ++i) {
      Active a = active_[i];
      a.last_token = chosen[i];
      if (a.last_token == data::kEndOfSentence) continue;
      targets[a.slot].push_back(a.last_token);
      if (--a.room > 0) still.push_back(a);
    }
    active_ = std::move(still);
  }

  model::Transformer& model_;
  Tape tape_;
  std::vector<int32_t> tokens_, positions_;
  data::Segments source_segments_;
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
