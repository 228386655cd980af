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

struct SavedName {
  std::string name;
  LabelValues labels;

  bool operator==(const SavedName&) const = default;
};

// The name of each value of a series, in their order.
std::vector<SavedName> saved_names(const MetricInfo& info, const LabelValues& labels) {
  const std::string name(info.name);
  if (info.type == MetricType::kCounter) return {{name, labels}};
  std::vector<SavedName> names;
  for (const double bound : info.buckets) names.push_back({name + "_bucket", {json(bound).dump()}});
  names.push_back({name + "_count", {}});
  names.push_back({name + "_sum", {}});
  return names;
}

// Converts an entry of the older form, where labels follow the name and a bound is a number.
json modern(const std::string& key, const json& value) {
  const size_t bracket = std::min(key.find('['), key.size());
  json labels = json::array();
  if (bracket < key.size()) labels = json::parse(key.substr(bracket), nullptr, false);
  if (labels.is_discarded()) labels = nullptr;
  for (json& label : labels)
    if (label.is_number()) label = label.dump();
  return json::array({key.substr(0, bracket), labels, value});
}

bool is_entry(const json& entry) {
  const auto is_text = [](const json& label) { return label.is_string(); };
  return entry.is_array() && entry.size() == 3 && entry[0].is_string() && entry[1].is_array() &&
         std::ranges::all_of(entry[1], is_text) && entry[2].is_number();
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

std::string Metrics::counters() const {
  json saved = json::array();
  for (size_t family = 0; family < index_.size(); ++family) {
    if (info_of(family).type == MetricType::kGauge) continue;
    for (const auto& [labels, offset] : index_[family]) {
      size_t i = offset;
      for (const SavedName& s : saved_names(info_of(family), labels))
        saved.push_back(json::array({s.name, s.labels, values_[i++]}));
    }
  }
  return saved.dump();
}

std::vector<std::string> Metrics::restore_counters(const std::string& text) {
  json saved = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (saved.is_object()) {
    json entries = json::array();
    for (const auto& [key, value] : saved.items()) entries.push_back(modern(key, value));
    saved = std::move(entries);
  }
  if (!saved.is_array()) return {text};

  std::vector<std::string> unknown;
  for (const json& entry : saved) {
    double* place = is_entry(entry) ? find_saved(entry[0], entry[1].get<LabelValues>()) : nullptr;
    if (!place) {
      unknown.push_back(entry.dump());
      continue;
    }
    const auto value = entry[2].get<double>();
    const bool may_be_negative = entry[0].get_ref<const std::string&>().ends_with("_sum");
    require<CheckpointError>(value >= 0 || may_be_negative, "metrics: ", entry.dump(),
                             " is in the checkpoint, expected a count of 0 or more");
    *place = value;
  }
  // Bounds may differ between versions; cumulative counts must rise all the same.
  for (size_t family = family_index(Histogram{}); family < kFamilies; ++family)
    for (const auto& [labels, offset] : index_[family]) {
      double* counts = &values_[offset];
      for (size_t b = 1; b <= info_of(family).buckets.size(); ++b)
        counts[b] = std::max(counts[b], counts[b - 1]);
    }
  return unknown;
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

// The address of a value of counters(); null for one of another version.
double* Metrics::find_saved(const std::string& name, const LabelValues& labels) {
  for (size_t family = 0; family < index_.size(); ++family) {
    const MetricInfo& info = info_of(family);
    if (info.type == MetricType::kCounter && info.name == name)
      return labels.size() == info.labels.size() ? find_or_add(family, labels) : nullptr;
    if (info.type != MetricType::kHistogram) continue;
    const std::vector<SavedName> names = saved_names(info, {});
    const auto found = std::ranges::find(names, SavedName{name, labels});
    if (found != names.end()) return find_or_add(family, {}) + (found - names.begin());
  }
  return nullptr;
}

}  // namespace fathom::monitoring
