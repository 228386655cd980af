#include "launcher/flat_history.h"

#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "launcher/commands/history.h"
#include "tests/support/expect_error.h"
#include "tests/support/temporary_directory.h"

namespace fathom::launcher {
namespace {

class History : public ::testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) {
    support::write_text(run_ / name, text);
  }
  std::string csv(HistoryTable table) { return FlatHistory(run_.path(), table).csv(); }

  support::TemporaryDirectory run_;
};

TEST_F(History, HasARowForEachStepThatCounts) {
  write("metrics.jsonl",
        "{\"step\":1,\"epoch\":0,\"loss\":2.5,\"timing\":{\"step_seconds\":0.5}}\n"
        "{\"step\":2,\"epoch\":0,\"loss\":9.0,\"timing\":{\"step_seconds\":0.25}}\n"
        "{\"marker\":\"resumed\",\"step\":1}\n"
        "{\"step\":2,\"epoch\":0,\"loss\":2.25,\"timing\":{\"step_seconds\":0.125}}\n"
        "{\"step\":3,\"ep");

  EXPECT_EQ(csv(HistoryTable::kMetrics),
            "step,epoch,loss,step_seconds\r\n1,0,2.5,0.5\r\n2,0,2.25,0.125\r\n");
}

TEST_F(History, SpellsWhatIsMissingOrNoNumberAsOthersReadIt) {
  write("metrics.jsonl",
        "{\"step\":1,\"loss\":\"NaN\"}\n"
        "{\"step\":2,\"loss\":\"Infinity\",\"extra\":\"-Infinity\"}\n"
        "{\"step\":3,\"extra\":null,\"text\":\"a,b \\\"c\\\"\\nd\"}\n"
        "{\"extra\":1e-7,\"step\":4}\n");

  EXPECT_EQ(csv(HistoryTable::kMetrics),
            "step,loss,extra,text\r\n"
            "1,NaN,,\r\n"
            "2,inf,-inf,\r\n"
            "3,,,\"a,b \"\"c\"\"\nd\"\r\n"
            "4,,1e-07,\r\n");
}

TEST_F(History, HasARowForEachBlock) {
  write("layers.jsonl",
        "{\"step\":5,\"blocks\":[{\"stack\":\"encoder\",\"layer\":1,\"omega\":0.5},"
        "{\"stack\":\"decoder\",\"layer\":2,\"omega\":0.25}]}\n"
        "{\"step\":6,\"blocks\":[]}\n{\"step\":7}\n");

  EXPECT_EQ(csv(HistoryTable::kLayers),
            "step,stack,layer,omega\r\n5,encoder,1,0.5\r\n5,decoder,2,0.25\r\n");
}

TEST_F(History, HasTheValidationsThatCount) {
  write("events.jsonl",
        "{\"event\":\"started\",\"time\":1.5,\"step\":0}\n"
        "{\"event\":\"validated\",\"time\":2.5,\"step\":10,\"validation_loss\":3.0}\n"
        "{\"event\":\"validated\",\"time\":3.5,\"step\":20,\"validation_loss\":2.0}\n"
        "{\"event\":\"saved\",\"step\":20}\n"
        "{\"event\":\"resumed\",\"time\":4.5,\"step\":10}\n"
        "{\"event\":\"validated\",\"time\":5.5,\"step\":10,\"validation_loss\":2.75}\n");

  EXPECT_EQ(csv(HistoryTable::kValidations), "time,step,validation_loss\r\n5.5,10,2.75\r\n");
}

TEST_F(History, IsFlatAsJsonToo) {
  write("metrics.jsonl", "{\"step\":1,\"loss\":0.5,\"timing\":{\"step_seconds\":\"NaN\"}}\n");

  EXPECT_EQ(FlatHistory(run_.path(), HistoryTable::kMetrics).jsonl(),
            "{\"step\":1,\"loss\":0.5,\"step_seconds\":\"NaN\"}\n");
}

TEST_F(History, OfNothingIsEmpty) {
  write("metrics.jsonl", "");

  EXPECT_EQ(csv(HistoryTable::kMetrics), "");
  EXPECT_EQ(FlatHistory(run_.path(), HistoryTable::kMetrics).jsonl(), "");
}

TEST_F(History, RefusesWhatIsNone) {
  std::ostringstream out;
  const auto refuses = [&out](const char* text, const HistoryCommand& command) {
    EXPECT_TRUE(support::throws_with<InvalidArgument>(text, [&] { (void)history(command, out); }));
  };
  refuses("history: /nowhere: no such directory; expected a run's", {.run = "/nowhere"});
  refuses("--what: got layer, expected metrics, layers or validations",
          {.run = run_.path().string(), .what = "layer"});
  refuses("--csv or --json, not both", {.run = run_.path().string(), .csv = true, .json = true});
  EXPECT_TRUE(support::throws_with<IoError>(
      "metrics.jsonl", [&] { (void)history({.run = run_.path().string()}, out); }));
  write("metrics.jsonl", "{\"step\":1}\nno json\n");
  EXPECT_TRUE(support::throws_with<DataError>(
      "metrics.jsonl:2", [&] { (void)history({.run = run_.path().string()}, out); }));
}

}  // namespace
}  // namespace fathom::launcher
