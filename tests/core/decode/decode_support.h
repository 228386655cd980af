// What decoding is compared with, and models to decode with.
#pragma once

#include <cmath>
#include <memory>
#include <vector>

#include "core/data/tokenizer.h"
#include "core/decode/translate.h"
#include "tests/core/model/model_support.h"

namespace fathom::decode {

// The definition of a step: the logits after `target`, from the whole prefix, without a cache, of
// one sentence alone.
[[nodiscard]] inline std::vector<double> uncached_logits(model::Transformer& model, Device& device,
                                                         const Tokens& source,
                                                         const Tokens& target) {
  const data::PackedBatch batch = model::pack_all({{source, target}}, false);
  Tape tape(
      device, model.parameters().dtype(),
      {.recording = false, .batch_invariant = true, .training = false, .update = model.update()});
  const model::DeviceBatch rows = model::upload(tape, batch, model.config().vocabulary_size);
  const Var decoded =
      model.decode(tape, rows.target.tokens, rows.target.position, rows.target.longest,
                   {.segments = rows.target.segments(),
                    .causal = true,
                    .memory = model.encode(tape, rows.source),
                    .memory_segments = rows.source.segments()});
  const Tensor logits = model.logits(decoded).value();
  std::vector<double> last;
  for (int64_t v = 0; v < logits.cols(); ++v)
    last.push_back(kernels::load(logits, logits.rows() - 1, v));
  return last;
}

[[nodiscard]] inline std::vector<double> log_softmax(std::vector<double> logits) {
  double sum = 0;
  for (const double z : logits) sum += std::exp(z);
  for (double& z : logits) z -= std::log(sum);
  return logits;
}

// Random weights, so large that the next token depends on the source and on the prefix.
[[nodiscard]] inline std::unique_ptr<model::Model> random_model(DType dtype,
                                                                int64_t vocabulary_size = 23) {
  model::ModelConfig config = model::small_config("pre-ln", 2, 2);
  config.vocabulary_size = vocabulary_size;
  auto model = std::make_unique<model::Model>(config, dtype, 3);
  for (const auto& p : model->transformer.parameters().all())
    if (p->shape.size() == 2)
      for (int64_t r = 0; r < p->value.rows(); ++r)
        for (int64_t c = 0; c < p->value.cols(); ++c)
          kernels::store(p->value, r, c, 3 * kernels::load(p->value, r, c));
  return model;
}

[[nodiscard]] inline std::vector<Tokens> random_sources(int64_t count, int32_t vocabulary_size,
                                                        int32_t longest, uint64_t seed) {
  std::vector<Tokens> sources;
  for (data::TokenPair& p : model::random_pairs(count, 2, vocabulary_size, 1, longest, seed))
    sources.push_back(std::move(p.source));
  return sources;
}

}  // namespace fathom::decode
