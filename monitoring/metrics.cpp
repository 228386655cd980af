#include "monitoring/metrics.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "monitoring/json.h"

namespace fathom::monitoring {
namespace {

using nlohmann::json;

size_t values_per_series(const MetricInfo& info) {
  return info.type == MetricType::kHistogram ? info.buckets.size() + 2 : 1;
}

// Lines of exposition: a histogram adds its +Inf bucket.
int64_t lines_per_series(const MetricInfo& info) {
  return info.type == MetricType::kHistogram ? int64_t(info.buckets.size()) + 3 : 1;
}

}  // namespace

Metrics::Metrics(int64_t max_series, std::vector<MetricInfo> families)
    : families_(std::make_shared<const Snapshot::Families>(std::move(families))),
      max_series_(max_series),
      index_(families_->size()) {
  for (size_t family = 0; family < index_.size(); ++family) {
    const MetricInfo& info = info_of(family);
    if (info.type != MetricType::kGauge && info.labels.empty()) find_or_add(family, {});
    for (const std::string_view value : info.known) find_or_add(family, {std::string(value)});
  }
  find_or_add(family_index(Gauge::kState), {});
  publish();
}

void Metrics::set(Gauge gauge, const LabelValues& labels, double value) {
  *find_or_add(family_index(gauge), labels) = value;
}

void Metrics::set(BlockGauge gauge, const LabelValues& block, double value) {
  require(family_index(gauge) < index_.size(), "metrics: got gauge ", size_t(gauge),
          " of the blocks, there are ", index_.size() - kFamilies);
  *find_or_add(family_index(gauge), block) = value;
}

void Metrics::increment(Counter counter, const LabelValues& labels, double amount) {
  require(std::isfinite(amount) && amount >= 0, "metrics: ", info_of(family_index(counter)).name,
          " incremented by ", amount, ", a counter only grows by finite amounts");
  *find_or_add(family_index(counter), labels) += amount;
}

void Metrics::observe(Histogram histogram, double value) {
  const size_t family = family_index(histogram);
  const MetricInfo& info = info_of(family);
  require(std::isfinite(value), "metrics: ", info.name, " observed ", value,
          ", expected a finite number");
  double* cumulative = find_or_add(family, {});
  const size_t buckets = info.buckets.size();
  for (size_t b = buckets; b > 0 && value <= info.buckets[b - 1]; --b) cumulative[b - 1] += 1;
  cumulative[buckets] += 1;
  cumulative[buckets + 1] += value;
}

void Metrics::publish() {
  if (!layout_) {
    auto layout = std::make_shared<Snapshot::Layout>(index_.size());
    for (size_t family = 0; family < index_.size(); ++family)
      for (const auto& [labels, offset] : index_[family])
        (*layout)[family].push_back({labels, offset});
    layout_ = std::move(layout);
  }
  published_.put(std::make_shared<const Snapshot>(Snapshot{families_, layout_, values_}));
}

double* Metrics::find_or_add(size_t family, const LabelValues& labels) {
  const auto& known = index_[family];
  const auto found = known.find(labels);
  if (found != known.end()) return &values_[found->second];

  const MetricInfo& info = info_of(family);
  require(labels.size() == info.labels.size(), "metrics: ", info.name, " got ", labels.size(),
          " label values, expected ", info.labels.size());
  LabelValues clean;
  for (const std::string& label : labels) clean.push_back(valid_utf8(label));
  const auto same = known.find(clean);
  return &values_[same != known.end() ? same->second : add(family, std::move(clean))];
}

size_t Metrics::add(size_t family, LabelValues labels) {
  const int64_t lines = lines_per_series(info_of(family));
  require(series_ + lines <= max_series_, "metrics: ", info_of(family).name,
          labels.empty() ? "" : json(labels).dump(), " would be series ", series_ + lines,
          ", but monitoring.max_series is ", max_series_,
          "; raise it, or set monitoring.detail: run");
  const size_t offset = values_.size();
  values_.resize(offset + values_per_series(info_of(family)));
  index_[family].emplace(std::move(labels), offset);
  series_ += lines;
  layout_.reset();
  return offset;
}

}  // namespace fathom::monitoring
