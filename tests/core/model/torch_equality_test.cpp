// Writes models, batches, losses and gradients; torch_model.py computes the same from the formulas,
// with padding and masks where we pack, and compares.
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/core/model/model_support.h"
#include "tests/support/temporary_directory.h"

namespace fathom::model {
namespace {

namespace fs = std::filesystem;

void write_doubles(const fs::path& file, const Tensor& t) {
  std::ofstream out(file, std::ios::binary);
  out.write(t.data<char>(), std::streamsize(t.numel() * 8));
  ASSERT_TRUE(out.good()) << file;
}

void write_case(const fs::path& directory, const ModelConfig& config, double smoothing) {
  fs::create_directories(directory);
  const bool decoder_only = config.kind == ModelKind::kDecoder;
  const std::vector<data::TokenPair> pairs = random_pairs(
      5, 2, int32_t(config.vocabulary_size), 1, 9, hash_name(directory.filename().string()));
  const data::PackedBatch batch = pack_all(pairs, decoder_only);
  Model model(config, DType::kF64, 3);
  // Gains, biases and all else away from their special first values.
  const Tensor& weights = model.transformer.parameters().weights();
  const PhiloxStream noise(5, "noise");
  for (int64_t i = 0; i < weights.numel(); ++i)
    weights.data<double>()[i] += 0.1 * noise.normal(uint64_t(i));
  const auto device = tensor::make_reference_device();

  const double loss = model.loss(*device, batch, {}, smoothing);

  nlohmann::json index;
  index["topology"] = config.topology;
  index["options"] = config.topology_options;
  index["encoder_layers"] = config.encoder_layers;
  index["decoder_layers"] = config.decoder_layers;
  index["width"] = config.width;
  index["heads"] = config.heads;
  index["activation"] = config.activation == Activation::kRelu ? "relu" : "gelu";
  index["smoothing"] = smoothing;
  index["update"] = model.transformer.update();
  index["loss"] = loss;
  for (const data::TokenPair& p : pairs) {
    index["source"].push_back(decoder_only ? std::vector<int32_t>{} : p.source);
    index["target"].push_back(p.target);
  }
  int number = 0;
  for (const auto& p : model.transformer.parameters().all()) {
    const std::string file = std::to_string(number++);
    index["parameters"].push_back({{"name", p->name}, {"shape", p->shape}, {"file", file}});
    write_doubles(directory / (file + ".value"), p->value);
    write_doubles(directory / (file + ".grad"), p->grad);
  }
  std::ofstream(directory / "index.json") << index.dump(1);
}

TEST(Transformer, EqualsAnIndependentPyTorchModelInLossAndEveryGradient) {
  if (std::system(FATHOM_PYTHON " -c 'import torch' 2> /dev/null") != 0)
    GTEST_SKIP() << FATHOM_PYTHON " has no torch; install python3-torch to run this test";
  const support::TemporaryDirectory root;
  std::string directories;
  const auto add = [&](const std::string& name, const ModelConfig& config, double smoothing = 0.1) {
    write_case(root.path() / name, config, smoothing);
    directories += " '" + (root.path() / name).string() + "'";
  };
  for (const std::string& topology : topology::topology_names()) {
    add("encoder-decoder-" + topology, small_config(topology, 2, 3));
    add("decoder-" + topology, small_config(topology, 0, 3));
  }
  ModelConfig config = small_config("post-ln", 2, 3);
  config.activation = Activation::kGelu;
  add("gelu", config, 0);
  config = small_config("residual", 2, 2);
  config.share_embeddings = ShareEmbeddings::kDecoder;
  add("share-decoder", config);
  config.share_embeddings = ShareEmbeddings::kNone;
  add("share-none", config);
  config = small_config("pre-ln", 0, 2);
  config.share_embeddings = ShareEmbeddings::kNone;
  config.init = InitRule::kXavier;
  add("decoder-share-none", config);
  config = small_config("residual", 2, 2);
  config.topology_options = {{"alpha", "0.7"}, {"scale", "0.05"}};
  add("residual-alpha-scale", config);
  config.topology_options = {{"dual_start", "zero"}, {"scale", "0.5"}};
  add("residual-dual-start-zero", config);
  for (const int encoder_layers : {0, 2}) {
    config = small_config("hyper-connections", encoder_layers, 2);
    config.topology_options = {{"streams", "3"}};
    add(encoder_layers > 0 ? "three-streams" : "decoder-three-streams", config);
  }
  config = small_config("branchnorm", 2, 2);
  config.topology_options = {{"updates", "700.5"}};
  add("branchnorm-in-full", config);
  config = small_config("sub-ln", 2, 2);
  config.activation = Activation::kGelu;
  add("sub-ln-gelu", config);

  const int status =
      std::system((FATHOM_PYTHON " " FATHOM_TORCH_MODEL + directories + " 2>&1").c_str());

  EXPECT_EQ(status, 0) << "torch_model.py names the tensors above";
}

}  // namespace
}  // namespace fathom::model
