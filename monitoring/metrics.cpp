#include "monitoring/metrics.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/error.h"
#include "monitoring/json.h"

namespace fathom::monitoring {
namespace {

constexpr size_t kFirstHistogram = family_index(Histogram{});

const MetricInfo& info_of(size_t family) { return catalogue()[family]; }

size_t values_per_series(size_t family) {
  return family < kFirstHistogram ? 1 : info_of(family).buckets.size() + 2;
}

// Lines of exposition: a histogram adds its +Inf bucket.
int64_t lines_per_series(size_t family) {
  return family < kFirstHistogram ? 1 : int64_t(info_of(family).buckets.size()) + 3;
}

std::string saved_key(std::string_view name, const LabelValues& labels) {
  std::string key(name);
  if (!labels.empty()) key += to_json(Value(Array(labels.begin(), labels.end())));
  return key;
}

// Calls use(key, value) for each value of one series.
template <class Use>
void for_each_saved(size_t family, const LabelValues& labels, const double* values, Use use) {
  const MetricInfo& info = info_of(family);
  if (info.type == MetricType::kCounter) {
    use(saved_key(info.name, labels), values[0]);
    return;
  }
  const size_t buckets = info.buckets.size();
  for (size_t b = 0; b < buckets; ++b)
    use(join(info.name, "_bucket[", to_json(Value(info.buckets[b])), "]"), values[b]);
  use(join(info.name, "_count"), values[buckets]);
  use(join(info.name, "_sum"), values[buckets + 1]);
}

}  // namespace

Metrics::Metrics(int64_t max_series) : max_series_(max_series) {
  for (size_t family = 0; family < kFamilies; ++family) {
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
    auto layout = std::make_shared<Snapshot::Layout>();
    for (size_t family = 0; family < kFamilies; ++family)
      for (const auto& [labels, offset] : index_[family])
        (*layout)[family].push_back({labels, offset});
    layout_ = std::move(layout);
  }
  published_.put(std::make_shared<const Snapshot>(Snapshot{layout_, values_}));
}

std::map<std::string, double> Metrics::counters() const {
  std::map<std::string, double> saved;
  for (size_t family = 0; family < kFamilies; ++family) {
    if (info_of(family).type == MetricType::kGauge) continue;
    for (const auto& [labels, offset] : index_[family])
      for_each_saved(family, labels, &values_[offset],
                     [&saved](std::string key, double value) { saved[std::move(key)] = value; });
  }
  return saved;
}

std::vector<std::string> Metrics::restore_counters(const std::map<std::string, double>& values) {
  std::vector<std::string> unknown;
  for (const auto& [key, value] : values) {
    double* place = find_saved(key);
    if (!place) {
      unknown.push_back(key);
      continue;
    }
    const bool may_be_negative = key.ends_with("_sum");
    require<CheckpointError>(std::isfinite(value) && (value >= 0 || may_be_negative),
                             "metrics: ", key, " is ", value,
                             " in the checkpoint, expected a finite count");
    *place = value;
  }
  // Bounds may differ between versions; cumulative counts must rise all the same.
  for (size_t family = kFirstHistogram; family < kFamilies; ++family)
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
  const int64_t lines = lines_per_series(family);
  require(series_ + lines <= max_series_, "metrics: ", saved_key(info_of(family).name, labels),
          " would be series ", series_ + lines, ", but monitoring.max_series is ", max_series_,
          "; raise it, or set monitoring.detail: run");
  const size_t offset = values_.size();
  values_.resize(offset + values_per_series(family));
  index_[family].emplace(std::move(labels), offset);
  series_ += lines;
  layout_.reset();
  return offset;
}

// Where the value of a key of counters() lives; null for a key of another version.
double* Metrics::find_saved(const std::string& key) {
  const std::string name = key.substr(0, key.find('['));
  for (size_t family = 0; family < kFamilies; ++family) {
    const MetricInfo& info = info_of(family);
    if (info.type == MetricType::kCounter && info.name == name) {
      const auto labels = parse_strings(std::string_view(key).substr(name.size()));
      if (!labels || labels->size() != info.labels.size()) return nullptr;
      return find_or_add(family, *labels);
    }
    if (info.type != MetricType::kHistogram || !name.starts_with(info.name)) continue;
    double* found = nullptr;
    double* values = find_or_add(family, {});
    size_t i = 0;
    for_each_saved(family, {}, values, [&](const std::string& candidate, double) {
      if (candidate == key) found = values + i;
      ++i;
    });
    return found;
  }
  return nullptr;
}

}  // namespace fathom::monitoring
