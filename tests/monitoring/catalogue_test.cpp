// docs/metrics.md says what the catalogue says. FATHOM_WRITE_DOCS=1 writes the table anew.
#include "monitoring/catalogue.h"

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>

namespace fathom::monitoring {
namespace {

constexpr const char* kBegin = "<!-- catalogue -->\n";
constexpr const char* kEnd = "<!-- end of catalogue -->\n";

std::string type_name(MetricType type) {
  return type == MetricType::kCounter ? "counter"
         : type == MetricType::kGauge ? "gauge"
                                      : "histogram";
}

std::string table() {
  std::string text = "\n| name | type | labels | meaning |\n|---|---|---|---|\n";
  for (const MetricInfo& info : catalogue()) {
    std::string labels;
    for (const std::string_view label : info.labels)
      labels += (labels.empty() ? "" : ", ") + std::string(label);
    text += "| `" + std::string(info.name) + "` | " + type_name(info.type) + " | " + labels +
            " | " + std::string(info.help) + " |\n";
  }
  return text + "\n";
}

TEST(Catalogue, IsWhatTheDocumentSays) {
  std::ifstream in(FATHOM_METRICS_DOCUMENT);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const size_t begin = text.find(kBegin), end = text.find(kEnd);
  ASSERT_NE(begin, text.npos);
  ASSERT_NE(end, text.npos);
  const size_t first = begin + std::string(kBegin).size();

  if (std::getenv("FATHOM_WRITE_DOCS") != nullptr)
    std::ofstream(FATHOM_METRICS_DOCUMENT) << text.substr(0, first) << table() << text.substr(end);
  else
    EXPECT_EQ(text.substr(first, end - first), table())
        << "run this test once with FATHOM_WRITE_DOCS=1";
}

}  // namespace
}  // namespace fathom::monitoring
