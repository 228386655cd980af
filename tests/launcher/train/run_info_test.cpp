#include "launcher/train/run_info.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

  EXPECT_THAT(run_info(config, 4),
              ElementsAre("first", "pre-ln", "E12D6", "4", "8", "fp32", "cpu"));
}

TEST(RunInfo, DescribesADecoderOnTheReferenceDevice) {
  Config config;
  config.run.name = "second";
  config.model.kind = model::ModelKind::kDecoder;
  config.model.decoder_layers = 24;
  config.batch.shards = 2;
  config.train.device = DeviceChoice::kReference;
  config.train.precision = Precision::kFp64;

  EXPECT_THAT(run_info(config, 1),
              ElementsAre("second", config.model.topology, "D24", "1", "2", "fp64", "reference"));
}

}  // namespace
}  // namespace fathom::launcher
