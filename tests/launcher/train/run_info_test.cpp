#include "launcher/train/run_info.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/system.h"

namespace fathom::launcher {
namespace {

using ::testing::ElementsAre;

TEST(RunInfo, DescribesAnEncoderDecoder) {
  Config config;
  config.run.name = "first";
  config.model.topology = "pre-ln";
  config.model.encoder_layers = 12;
  config.model.decoder_layers = 6;
  config.batch.shards = 8;

  config.run.seed = 7;
  RunStart start;
  start.ranks = 4;
  start.attempt = 3;
  start.run_id = "0123";
  EXPECT_THAT(run_info(config, start, 86400.75),
              ElementsAre("first", "0123", "pre-ln", "E12D6", "4", "8", "fp32", "cpu", "7",
                          host_name(), batch_job(), "3", "1970-01-02T00:00:00Z"));
}

TEST(RunInfo, DescribesADecoderOnTheReferenceDevice) {
  Config config;
  config.run.name = "second";
  config.model.kind = model::ModelKind::kDecoder;
  config.model.decoder_layers = 24;
  config.batch.shards = 2;
  config.train.device = DeviceChoice::kReference;
  config.train.precision = Precision::kFp64;

  const monitoring::LabelValues labels = run_info(config, {}, 0);
  EXPECT_EQ(labels[3], "D24");
  EXPECT_EQ(labels[6], "fp64");
  EXPECT_EQ(labels[7], "reference");
}

}  // namespace
}  // namespace fathom::launcher
