// The numbers of a run, by catalogue. One thread, the step loop, writes them and calls publish()
// once a step; scrapes read the snapshot of the last publish() and never make the step loop wait.
// Counters and histograms begin at 0 in each process.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "monitoring/catalogue.h"
#include "monitoring/mailbox.h"

namespace fathom::monitoring {

using LabelValues = std::vector<std::string>;  // in the order of MetricInfo::labels

// A consistent, immutable copy of all series.
struct Snapshot {
  struct Series {
    LabelValues labels;
    size_t offset;  // of its first value; a histogram has buckets + 2 of them: the cumulative
                    // count per bucket, the count of all, the sum
  };
  using Families = std::vector<MetricInfo>;
  using Layout = std::vector<std::vector<Series>>;  // by family_index

  std::shared_ptr<const Families> families;
  std::shared_ptr<const Layout> layout;
  std::vector<double> values;
};

class Metrics {
 public:
  // max_series: most lines of an exposition (a histogram counts buckets + 3). Counters without
  // labels or with known label values, histograms and fathom_state exist from the start, at 0.
  // `families` are from catalogue().
  explicit Metrics(int64_t max_series = 5000, std::vector<MetricInfo> families = catalogue());

  // All five: InvalidArgument for a wrong number of labels, or a new series beyond max_series.
  // Label values are any text; bytes that are not UTF-8 become U+FFFD.
  void set(Gauge gauge, double value) { set(gauge, {}, value); }
  void set(Gauge gauge, const LabelValues& labels, double value);
  void set(BlockGauge gauge, const LabelValues& block, double value);
  // amount 0 makes the series exist. Negative or non-finite: InvalidArgument.
  void increment(Counter counter, double amount = 1) { increment(counter, {}, amount); }
  void increment(Counter counter, const LabelValues& labels, double amount);
  // NaN: InvalidArgument, since the sum would stay NaN.
  void observe(Histogram histogram, double value);

  // Makes everything written so far visible to snapshot().
  void publish();
  // The state at the last publish(); never null. From any thread.
  [[nodiscard]] std::shared_ptr<const Snapshot> snapshot() const { return published_.get(); }

  [[nodiscard]] int64_t series() const { return series_; }  // counted as for max_series

 private:
  [[nodiscard]] const MetricInfo& info_of(size_t family) const { return (*families_)[family]; }
  double* find_or_add(size_t family, const LabelValues& labels);
  size_t add(size_t family, LabelValues labels);

  std::shared_ptr<const Snapshot::Families> families_;
  int64_t max_series_;
  int64_t series_ = 0;
  std::vector<std::map<LabelValues, size_t>> index_;  // by family: labels to offset in values_
  std::vector<double> values_;
  std::shared_ptr<const Snapshot::Layout> layout_;  // null when a series was added since
  Mailbox<std::shared_ptr<const Snapshot>> published_;
};

}  // namespace fathom::monitoring
