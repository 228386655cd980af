#include "checkpoint/retention.h"

#include <algorithm>

namespace fathom::checkpoint {
namespace {

bool is_better(const Metric& a, const Metric& b) {
  return a.better == Better::kLower ? a.value < b.value : a.value > b.value;
}

}  // namespace

std::vector<const Manifest*> rank_by_metric(std::span<const Manifest> manifests) {
  std::vector<const Manifest*> ranked;
  for (const Manifest& m : manifests)
    if (m.metric && (ranked.empty() || m.metric->name == ranked.front()->metric->name))
      ranked.push_back(&m);
  std::stable_sort(ranked.begin(), ranked.end(), [](const Manifest* a, const Manifest* b) {
    return is_better(*a->metric, *b->metric);
  });
  return ranked;
}

std::set<int64_t> steps_to_keep(std::span<const Manifest> manifests, const Retention& retention) {
  std::set<int64_t> kept;
  for (size_t i = 0; i < manifests.size() && int64_t(i) < retention.keep_last; ++i)
    kept.insert(manifests[i].step);
  const std::vector<const Manifest*> ranked = rank_by_metric(manifests);
  for (size_t i = 0; i < ranked.size() && int64_t(i) < retention.keep_best; ++i)
    kept.insert(ranked[i]->step);
  for (const Manifest& m : manifests)
    if (retention.keep_every > 0 && m.step > 0 && m.step % retention.keep_every == 0)
      kept.insert(m.step);
  return kept;
}

}  // namespace fathom::checkpoint
