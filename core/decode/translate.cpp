#include "core/decode/translate.h"

#include <algorithm>

namespace fathom::decode {
namespace {

// Indices of sources by batch, shortest first (ties in order), so that the sentences of a batch end
// at about the same time.
std::vector<std::vector<size_t>> batches_by_length(std::span<const Tokens> sources,
                                                   int64_t batch_tokens) {
  std::vector<size_t> order(sources.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return sources[a].size() < sources[b].size(); });
  std::vector<std::vector<size_t>> batches;
  int64_t tokens = 0;
  for (const size_t i : order) {
    const int64_t cost = int64_t(sources[i].size()) + 1;
    if (batches.empty() || tokens + cost > batch_tokens) {
      batches.emplace_back();
      tokens = 0;
    }
    batches.back().push_back(i);
    tokens += cost;
  }
  return batches;
}

}  // namespace

int32_t LengthLimit::of(const Tokens& source) const {
  return int32_t(a * double(source.size() + 1)) + int32_t(b);
}

std::vector<Tokens> translate(model::Transformer& model, Device& device, const Strategy& strategy,
                              std::span<const Tokens> sources, const TranslateOptions& options,
                              const BatchShare& share) {
  require(model.config().kind == model::ModelKind::kEncoderDecoder,
          "translate: a decoder-only model has no source to translate");
  const std::vector<std::vector<size_t>> batches = batches_by_length(sources, options.batch_tokens);
  std::vector<Tokens> targets(sources.size());
  for (size_t round = 0; round < batches.size(); round += size_t(share.every)) {
    if (share.before_batch) share.before_batch();
    const size_t b = round + size_t(share.first);
    if (b >= batches.size()) continue;
    std::vector<size_t> places;
    std::vector<Tokens> batch;
    std::vector<int32_t> limits;
    for (const size_t i : batches[b]) {
      const int32_t limit = options.limit.of(sources[i]);
      if (sources[i].empty() || limit <= 0) continue;
      places.push_back(i);
      batch.push_back(sources[i]);
      limits.push_back(limit);
    }
    if (batch.empty()) continue;
    DecodingSession session(model, device, batch,
                            {.rows = int64_t(batch.size()) * strategy.rows_per_sentence(),
                             .tokens = *std::max_element(limits.begin(), limits.end())});
    std::vector<Tokens> found = strategy.search(session, limits);
    for (size_t i = 0; i < places.size(); ++i) targets[places[i]] = std::move(found[i]);
  }
  return targets;
}

}  // namespace fathom::decode
