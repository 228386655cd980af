#include "launcher/commands/metrics.h"

#include <map>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/observe/layer_statistics.h"
#include "launcher/metric_catalogue.h"

namespace fathom::launcher {
namespace {

using ::testing::HasSubstr;

std::string printed(const std::string& format) {
  std::ostringstream out;
  EXPECT_EQ(metrics({.format = format}, out), 0);
  return out.str();
}

std::map<std::string, nlohmann::json> by_name() {
  std::map<std::string, nlohmann::json> all;
  for (const nlohmann::json& entry : nlohmann::json::parse(printed("json")))
    all.emplace(entry.at("name"), entry);
  return all;
}

TEST(MetricsCommand, PrintsEveryFamilyAsJson) {
  auto all = by_name();

  EXPECT_EQ(all.size(), metric_catalogue().size());
  EXPECT_EQ(
      all["fathom_step_duration_seconds"],
      nlohmann::json::parse(
          R"({"name": "fathom_step_duration_seconds", "type": "histogram",)"
          R"( "help": "Wall time of a training step in seconds, without validation and saving.",)"
          R"( "unit": "seconds", "labels": [], "panel": "histogram", "group": "Speed"})"));
  EXPECT_EQ(all["fathom_tokens_total"]["labels"], nlohmann::json({"side"}));
}

TEST(MetricsCommand, HasEveryLayerStatistic) {
  auto all = by_name();

  for (const observe::LayerStatistic& row : observe::layer_statistics()) {
    const nlohmann::json& entry = all["fathom_layer_" + std::string(row.name)];
    EXPECT_THAT(entry.at("help").get<std::string>(), HasSubstr(std::string(row.help)));
    EXPECT_THAT(entry.at("help").get<std::string>(), HasSubstr(std::string(row.source)));
    EXPECT_EQ(entry.at("labels"), nlohmann::json({"stack", "layer", "block"}));
    EXPECT_EQ(entry.at("unit"), row.unit);
  }
}

TEST(MetricsCommand, PrintsTextForReaders) {
  EXPECT_THAT(printed("text"),
              HasSubstr("fathom_tokens_total{side}\n"
                        "    counter, tokens: Tokens trained on, with EOS, all ranks together.\n"));
}

TEST(MetricsCommand, RefusesAnotherFormat) {
  std::ostringstream out;
  try {
    (void)metrics({.format = "yaml"}, out);
    FAIL() << "no error";
  } catch (const InvalidArgument& error) {
    EXPECT_STREQ(error.what(), "--format: got yaml, expected text or json");
  }
}

}  // namespace
}  // namespace fathom::launcher
