// The tables of docs/metrics.md are those of the program. FATHOM_WRITE_DOCS=1 writes them.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "core/observe/layer_statistics.h"
#include "launcher/metric_catalogue.h"
#include "tests/support/temporary_directory.h"

namespace fathom::launcher {
namespace {

using observe::LayerStatistic;
using observe::Sampled;

std::string cell(std::string_view text) { return " " + std::string(text) + " |"; }
std::string code(std::string_view text) { return "`" + std::string(text) + "`"; }

std::string catalogue_table() {
  std::string text = "\n| name | type | labels | unit | meaning |\n|---|---|---|---|---|\n";
  for (const monitoring::MetricInfo& info : metric_catalogue()) {
    std::string labels;
    for (const std::string_view label : info.labels)
      labels += (labels.empty() ? "" : ", ") + std::string(label);
    text += "|" + cell(code(info.name)) + cell(to_string(info.type)) + cell(labels) +
            cell(info.unit == "none" ? "" : info.unit) + cell(info.help) + "\n";
  }
  return text + "\n";
}

std::string statistics_table(Sampled sampled) {
  std::string text = "\n| name | formula | note | source |\n|---|---|---|---|\n";
  for (const LayerStatistic& row : observe::layer_statistics())
    if (row.sampled == sampled)
      text +=
          "|" + cell(code(row.name)) + cell(row.formula) + cell(row.note) + cell(row.source) + "\n";
  return text + "\n";
}

class Document : public ::testing::TestWithParam<std::pair<const char*, std::string>> {};

TEST_P(Document, SaysWhatTheTableSays) {
  const auto& [title, table] = GetParam();
  const std::string text = support::read_text(FATHOM_METRICS_DOCUMENT);
  const std::string opening = "<!-- " + std::string(title) + " -->\n";
  const size_t begin = text.find(opening),
               end = text.find("<!-- end of " + std::string(title) + " -->\n");
  ASSERT_NE(begin, text.npos);
  ASSERT_NE(end, text.npos);
  const size_t first = begin + opening.size();

  if (std::getenv("FATHOM_WRITE_DOCS") != nullptr)
    std::ofstream(FATHOM_METRICS_DOCUMENT) << text.substr(0, first) << table << text.substr(end);
  else
    EXPECT_EQ(text.substr(first, end - first), table)
        << "run this test once with FATHOM_WRITE_DOCS=1";
}

INSTANTIATE_TEST_SUITE_P(
    OfMetrics, Document,
    ::testing::Values(std::pair{"catalogue", catalogue_table()},
                      std::pair{"parameter statistics", statistics_table(Sampled::kParameters)},
                      std::pair{"activation statistics", statistics_table(Sampled::kActivations)}),
    [](const auto& tested) {
      std::string name = tested.param.first;
      std::ranges::replace(name, ' ', '_');
      return name;
    });

}  // namespace
}  // namespace fathom::launcher
