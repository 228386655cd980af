#include "monitoring/exposition.h"

#include <limits>

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include "monitoring/json.h"

namespace fathom::monitoring {
namespace {

prometheus::MetricType type_of(MetricType type) {
  switch (type) {
    case MetricType::kCounter:
      return prometheus::MetricType::Counter;
    case MetricType::kGauge:
      return prometheus::MetricType::Gauge;
    case MetricType::kHistogram:
      return prometheus::MetricType::Histogram;
  }
  return prometheus::MetricType::Untyped;
}

prometheus::ClientMetric::Histogram histogram_of(const MetricInfo& info, const double* values) {
  const size_t buckets = info.buckets.size();
  prometheus::ClientMetric::Histogram histogram;
  for (size_t b = 0; b < buckets; ++b)
    histogram.bucket.push_back({uint64_t(values[b]), info.buckets[b]});
  histogram.sample_count = uint64_t(values[buckets]);
  histogram.sample_sum = values[buckets + 1];
  histogram.bucket.push_back({histogram.sample_count, std::numeric_limits<double>::infinity()});
  return histogram;
}

prometheus::ClientMetric metric_of(const MetricInfo& info, const LabelValues& labels,
                                   const double* values) {
  prometheus::ClientMetric metric;
  for (size_t i = 0; i < labels.size(); ++i)
    metric.label.push_back({std::string(info.labels[i]), labels[i]});
  if (info.type == MetricType::kCounter) metric.counter.value = values[0];
  if (info.type == MetricType::kGauge) metric.gauge.value = values[0];
  if (info.type == MetricType::kHistogram) metric.histogram = histogram_of(info, values);
  return metric;
}

}  // namespace

std::vector<prometheus::MetricFamily> families_of(const Snapshot& snapshot) {
  std::vector<prometheus::MetricFamily> families;
  for (size_t f = 0; f < snapshot.families->size(); ++f) {
    const auto& all_series = (*snapshot.layout)[f];
    if (all_series.empty()) continue;
    const MetricInfo& info = (*snapshot.families)[f];
    prometheus::MetricFamily& family = families.emplace_back();
    family.name = info.name;
    family.help = info.help;
    family.type = type_of(info.type);
    for (const Snapshot::Series& series : all_series)
      family.metric.push_back(metric_of(info, series.labels, &snapshot.values[series.offset]));
  }
  return families;
}

std::string exposition(const Snapshot& snapshot, const std::map<std::string, std::string>& labels) {
  std::vector<prometheus::MetricFamily> families = families_of(snapshot);
  for (prometheus::MetricFamily& family : families)
    for (prometheus::ClientMetric& metric : family.metric)
      for (const auto& [name, value] : labels) metric.label.push_back({name, valid_utf8(value)});
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace fathom::monitoring
