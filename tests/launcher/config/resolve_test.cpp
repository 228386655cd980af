#include "launcher/config/resolve.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/launcher/config/support.h"

namespace fathom::launcher {
namespace {

TEST(Depth, SetsBothLayerCounts) {
  const Config translation = parse("model: {depth: E12D3}");
  EXPECT_EQ(translation.model.encoder_layers, 12);
  EXPECT_EQ(translation.model.decoder_layers, 3);
  const Config language = parse("model: {depth: D24, kind: decoder}");
  EXPECT_EQ(language.model.encoder_layers, 0);
  EXPECT_EQ(language.model.decoder_layers, 24);
}

TEST(Depth, RefusesOtherSpellings) {
  for (const std::string word :
       {"12", "E12", "E0D1", "E1D0", "e12d12", "E12D12 ", "E12d12", "D", "ED1", "E12D+1", "E12D-1",
        "E10001D1", "D10001", "E1D1D1", "E01D1", "X1D1", "E12D12x"})
    EXPECT_EQ(refusal("model: {depth: '" + word + "'}"),
              "c.yaml:1: model.depth: got '" + word +
                  "', allowed E12D12 or, for a decoder, D24, with 1 to 10000 layers each");
}

TEST(Depth, ContradictionInOnePlaceIsRefused) {
  EXPECT_EQ(
      refusal("model:\n  depth: E12D12\n  encoder_layers: 6\n"),
      "c.yaml:3: model.encoder_layers: got 6, allowed 12 with model.depth E12D12; give one of "
      "the two");
  EXPECT_EQ(
      refusal("", {"model.decoder_layers=6", "model.depth=E12D12"}),
      "command line: model.decoder_layers: got 6, allowed 12 with model.depth E12D12; give one "
      "of the two");
  EXPECT_EQ(parse("model: {depth: E12D6, encoder_layers: 12}").model.encoder_layers, 12);
}

TEST(Depth, OnTheCommandLineReplacesTheFilesLayers) {
  const Config config =
      parse("model: {encoder_layers: 6, decoder_layers: 6}", {"model.depth=E2D3"});
  EXPECT_EQ(config.model.encoder_layers, 2);
  EXPECT_EQ(config.model.decoder_layers, 3);
  const Config mixed = parse("model: {depth: E6D6}", {"model.encoder_layers=9"});
  EXPECT_EQ(mixed.model.encoder_layers, 9);
  EXPECT_EQ(mixed.model.decoder_layers, 6);
}

TEST(Kind, DecoderHasNoEncoder) {
  EXPECT_EQ(parse("model: {kind: decoder}").model.encoder_layers, 0);
  EXPECT_EQ(parse("model: {depth: E6D4}", {"model.kind=decoder"}).model.encoder_layers, 0);
  EXPECT_EQ(refusal("model:\n  kind: decoder\n  encoder_layers: 6\n"),
            "c.yaml:3: model.encoder_layers: got 6, allowed 0 with model.kind decoder");
  EXPECT_EQ(refusal("model: {kind: decoder}", {"model.encoder_layers=6"}),
            "command line: model.encoder_layers: got 6, allowed 0 with model.kind decoder");
  const std::string no_encoder =
      "model.encoder_layers: got 0, allowed at least 1 in an encoder-decoder; for a decoder set "
      "model.kind: decoder";
  EXPECT_EQ(refusal("model:\n  depth: D24\n"), "c.yaml:2: " + no_encoder);
  EXPECT_EQ(refusal("", {"model.encoder_layers=0"}), "command line: " + no_encoder);
}

TEST(Width, IsEvenAndDivisibleByHeads) {
  EXPECT_EQ(
      refusal("model:\n  width: 9\n  heads: 3\n"),
      "c.yaml:2: model.width: got 9, allowed an even number: half of the positions are sines");
  EXPECT_EQ(refusal("model:\n  width: 256\n  heads: 5\n"),
            "c.yaml:3: model.heads: got 5, allowed a divisor of model.width (256)");
  EXPECT_EQ(refusal("model:\n  heads: 5\n"),
            "c.yaml:2: model.heads: got 5, allowed a divisor of model.width (256)");
  EXPECT_EQ(refusal("model:\n  width: 6\n"),
            "c.yaml:2: model.width: got 6, allowed a multiple of model.heads (4)");
}

TEST(TopologyOptions, AreFilledInAndNormalised) {
  const std::map<std::string, std::string> defaults = {
      {"alpha", "1"}, {"dual_start", "embedding"}, {"scale", "1"}};
  EXPECT_EQ(parse("").model.topology_options, defaults);
  EXPECT_TRUE(parse("model: {topology: pre-ln}").model.topology_options.empty());
  const auto given =
      parse("model: {topology_options: {alpha: -0.50, scale: 5.0e-2, dual_start: zero}}");
  const std::map<std::string, std::string> expected = {
      {"alpha", "-0.5"}, {"dual_start", "zero"}, {"scale", "0.05"}};
  EXPECT_EQ(given.model.topology_options, expected);
}

TEST(TopologyOptions, OfAnotherTopologyAreRefused) {
  for (const std::string topology : {"post-ln", "pre-ln"})
    EXPECT_EQ(refusal("model:\n  topology: " + topology + "\n  topology_options:\n    alpha: 2\n"),
              "c.yaml:4: model.topology_options.alpha: got 2, but topology " + topology +
                  " has no such option");
  EXPECT_EQ(refusal("model: {topology: pre-ln}", {"model.topology_options.scale=2"}),
            "command line: model.topology_options.scale: got 2, but topology pre-ln has no such "
            "option");
}

TEST(TopologyOptions, OfTheFileGoWithItsTopology) {
  const std::string file = "model: {topology: residual, topology_options: {scale: 2}}";
  EXPECT_TRUE(parse(file, {"model.topology=post-ln"}).model.topology_options.empty());
  EXPECT_EQ(parse(file, {"model.topology=residual"}).model.topology_options.at("scale"), "2");
}

TEST(TopologyOptions, AreChecked) {
  const auto said = [](const std::string& option) {
    return refusal("model: {topology_options: {" + option + "}}");
  };
  const std::string place = "c.yaml:1: model.topology_options.";
  EXPECT_EQ(said("alpha: x"), place + "alpha: got x, allowed number");
  EXPECT_EQ(said("scale: 0"), place + "scale: got 0, allowed number > 0");
  EXPECT_EQ(said("scale: inf"), place + "scale: got inf, allowed number > 0");
  EXPECT_EQ(said("dual_start: zer"),
            place + "dual_start: got zer, allowed one of embedding, zero; did you mean zero");
}

TEST(Schedule, WithoutWarmUpHasOneStepOfIt) {
  EXPECT_EQ(parse("optimizer: {schedule: inverse-sqrt-w1}").optimizer.warmup_steps, 1);
  EXPECT_EQ(parse("optimizer: {warmup_steps: 4000}", {"optimizer.schedule=inverse-sqrt-w1"})
                .optimizer.warmup_steps,
            1);
  EXPECT_EQ(refusal("optimizer:\n  schedule: inverse-sqrt-w1\n  warmup_steps: 4000\n"),
            "c.yaml:3: optimizer.warmup_steps: got 4000, allowed 1 with optimizer.schedule "
            "inverse-sqrt-w1");
}

TEST(Schedule, ThatDividesByTheWarmUpNeedsOne) {
  for (const std::string name : {"inverse-sqrt", "hold-inverse-sqrt", "tfixup", "constant-step"})
    EXPECT_EQ(
        refusal("optimizer:\n  schedule: " + name + "\n  warmup_steps: 0\n"),
        "c.yaml:3: optimizer.warmup_steps: got 0, allowed at least 1 with optimizer.schedule (" +
            name + "); without warm-up choose inverse-sqrt-w1");
  EXPECT_EQ(parse("optimizer: {schedule: cosine, warmup_steps: 0}").optimizer.warmup_steps, 0);
}

TEST(Schedule, ThatEndsAtZeroNeedsStepsAfterTheWarmUp) {
  EXPECT_EQ(refusal("train:\n  max_steps: 4000\noptimizer:\n  schedule: linear\n"),
            "c.yaml:2: optimizer.warmup_steps: got 4000 (the default), allowed fewer than "
            "train.max_steps (4000) with optimizer.schedule (linear)");
  EXPECT_EQ(parse("{train: {max_steps: 4001}, optimizer: {schedule: linear}}").train.max_steps,
            4001);
}

TEST(Schedule, StartsAtMostAtItsPeak) {
  EXPECT_EQ(refusal("optimizer:\n  learning_rate: 1e-3\n  warmup_start: 1e-2\n"),
            "c.yaml:3: optimizer.warmup_start: got 0.01, allowed at most optimizer.learning_rate "
            "(0.001)");
  EXPECT_EQ(parse("optimizer: {schedule: tfixup, warmup_start: 1}").optimizer.warmup_start, 1);
}

TEST(Shards, HoldTheBatchUnderTree) {
  EXPECT_EQ(refusal("batch:\n  tokens: 1000\n  micro_tokens: 100\n  shards: 9\n"),
            "c.yaml:4: batch.shards: got 9, allowed at least 10 with batch.tokens (1000), "
            "batch.micro_tokens (100) and dist.reduction (tree)");
  EXPECT_EQ(parse("{batch: {tokens: 1000, micro_tokens: 100, shards: 9}, dist: {reduction: fast}}")
                .batch.shards,
            9);
  EXPECT_EQ(parse("batch: {tokens: 100, micro_tokens: 1000}").batch.micro_tokens, 1000);
}

TEST(Train, DoublePrecisionIsForTheReference) {
  EXPECT_EQ(
      refusal("train:\n  precision: fp64\n"),
      "c.yaml:2: train.precision: got fp64, allowed fp32, or fp64 and bf16 with train.device: "
      "reference");
  EXPECT_EQ(parse("train: {precision: bf16, device: reference}").train.precision, Precision::kBf16);
  EXPECT_EQ(parse("train: {precision: fp64, device: reference}").train.precision, Precision::kFp64);
}

TEST(Train, PatienceNeedsValidations) {
  EXPECT_EQ(refusal("train:\n  patience: 3\n  validate_every: 0\n"),
            "c.yaml:2: train.patience: got 3, allowed 0 (off) with train.validate_every (0)");
}

TEST(Checkpoint, KeptStepsAreSavedSteps) {
  EXPECT_EQ(
      refusal("checkpoint:\n  keep_every: 1000\n"),
      "c.yaml:2: checkpoint.keep_every: got 1000, allowed 0 (off) with checkpoint.every_steps "
      "(0); set every_steps to save at such steps");
  EXPECT_EQ(
      refusal("checkpoint:\n  every_steps: 300\n  keep_every: 1000\n"),
      "c.yaml:3: checkpoint.keep_every: got 1000, allowed a multiple of checkpoint.every_steps "
      "(300)");
  EXPECT_EQ(parse("checkpoint: {every_steps: 300, keep_every: 900}").checkpoint.keep_every, 900);
}

}  // namespace
}  // namespace fathom::launcher
