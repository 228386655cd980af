// Small tasks that a model learns within seconds: random sequences, and a rule that turns each into
// its target.
#pragma once

#include <algorithm>
#include <memory>
#include <set>
#include <vector>

#include "tests/core/model/model_support.h"

namespace fathom::model {

using Sequences = std::vector<std::vector<int32_t>>;

inline constexpr int32_t kFirst = 2, kVocabulary = 12;

[[nodiscard]] inline ModelConfig task_config() {
  ModelConfig c = small_config("residual", 1, 1);
  c.width = 32;
  c.heads = 4;
  c.ffn_width = 64;
  c.vocabulary_size = kVocabulary;
  return c;
}

// A model trained on `target_of` random sequences of 1 to 6 tokens, none of them in `held_out`.
template <class F>
[[nodiscard]] std::unique_ptr<Model> trained(const std::set<std::vector<int32_t>>& held_out,
                                             int steps, const F& target_of) {
  auto model = std::make_unique<Model>(task_config(), DType::kF32);
  const auto device = tensor::make_cpu_device(1);
  for (int step = 1; step <= steps; ++step) {
    std::vector<data::TokenPair> pairs;
    for (data::TokenPair& p : random_pairs(64, kFirst, kVocabulary, 1, 6, uint64_t(step) + 100)) {
      if (held_out.contains(p.source)) continue;
      p.target = target_of(p.source);
      pairs.push_back(std::move(p));
    }
    model->loss(*device, pack_all(pairs, false), {}, 0);
    const double rate = 4e-3 * std::min({1.0, step / 40.0, 2.0 * (steps + 1 - step) / steps});
    model->update(rate);
  }
  return model;
}

[[nodiscard]] inline std::vector<int32_t> reversed(std::vector<int32_t> tokens) {
  std::reverse(tokens.begin(), tokens.end());
  return tokens;
}

}  // namespace fathom::model
