// Parameters, initial values, and the claims about bits: threads, packing, dropout.
#include "core/model/transformer.h"

#include <cmath>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "tests/core/model/model_support.h"
#include "tests/support/expect_error.h"
#include "tests/support/tolerance.h"

namespace fathom::model {
namespace {

using Shape = std::vector<int64_t>;

std::vector<std::pair<std::string, Shape>> described(const ModelConfig& config) {
  const auto device = tensor::make_reference_device();
  const Transformer model(config, *device, DType::kF32);
  std::vector<std::pair<std::string, Shape>> out;
  for (const auto& p : model.parameters().all()) out.emplace_back(p->name, p->shape);
  return out;
}

void add_norm(std::vector<std::pair<std::string, Shape>>& out, const std::string& name) {
  out.emplace_back(name + ".gain", Shape{12});
  out.emplace_back(name + ".bias", Shape{12});
}
void add_affine(std::vector<std::pair<std::string, Shape>>& out, const std::string& name,
                int64_t rows, int64_t cols) {
  out.emplace_back(name + ".weight", Shape{rows, cols});
  out.emplace_back(name + ".bias", Shape{rows});
}
void add_self_attention(std::vector<std::pair<std::string, Shape>>& out, const std::string& name) {
  add_norm(out, name + ".norm");
  add_affine(out, name + ".qkv", 36, 12);
  add_affine(out, name + ".out", 12, 12);
}
void add_feed_forward(std::vector<std::pair<std::string, Shape>>& out, const std::string& name) {
  add_norm(out, name + ".norm");
  add_affine(out, name + ".fc1", 20, 12);
  add_affine(out, name + ".fc2", 12, 20);
}

TEST(Transformer, NamesAndShapesItsParametersAsDocumented) {
  std::vector<std::pair<std::string, Shape>> want = {{"embedding.weight", {23, 12}}};
  add_self_attention(want, "encoder.1.self_attention");
  add_feed_forward(want, "encoder.1.feed_forward");
  add_norm(want, "encoder.final_norm");
  add_self_attention(want, "decoder.1.self_attention");
  add_norm(want, "decoder.1.cross_attention.norm");
  add_affine(want, "decoder.1.cross_attention.q", 12, 12);
  add_affine(want, "decoder.1.cross_attention.kv", 24, 12);
  add_affine(want, "decoder.1.cross_attention.out", 12, 12);
  add_feed_forward(want, "decoder.1.feed_forward");
  add_norm(want, "decoder.final_norm");

  EXPECT_EQ(described(small_config("residual", 1, 1)), want);
  EXPECT_EQ(described(small_config("pre-ln", 1, 1)), want);
}

// A norm that nobody uses gets no gradient, and the reducer would wait for it indefinitely.
TEST(Transformer, OfPostLnHasNoFinalNorm) {
  for (const auto& [name, shape] : described(small_config("post-ln", 1, 1)))
    EXPECT_EQ(name.find("final_norm"), std::string::npos) << name;
}

TEST(Transformer, SharesTheTablesOfTheConfig) {
  const auto tables = [](int encoder_layers, ShareEmbeddings share) {
    ModelConfig config = small_config("post-ln", encoder_layers, 1);
    config.share_embeddings = share;
    std::vector<std::string> names;
    for (const auto& [name, shape] : described(config))
      if (shape == Shape{23, 12}) names.push_back(name);
    return names;
  };
  using Names = std::vector<std::string>;

  EXPECT_EQ(tables(1, ShareEmbeddings::kAll), (Names{"embedding.weight"}));
  EXPECT_EQ(tables(1, ShareEmbeddings::kDecoder),
            (Names{"encoder.embedding.weight", "decoder.embedding.weight"}));
  EXPECT_EQ(
      tables(1, ShareEmbeddings::kNone),
      (Names{"encoder.embedding.weight", "decoder.embedding.weight", "decoder.output.weight"}));
  EXPECT_EQ(tables(0, ShareEmbeddings::kAll), (Names{"embedding.weight"}));
  EXPECT_EQ(tables(0, ShareEmbeddings::kNone),
            (Names{"decoder.embedding.weight", "decoder.output.weight"}));
}

TEST(Transformer, LaysItsParametersOutInReverseWithoutOverlap) {
  const auto device = tensor::make_reference_device();
  const Transformer model(small_config("residual", 2, 2), *device, DType::kF64);
  const ParameterStore& store = model.parameters();

  int64_t end = 0;
  for (auto p = store.all().rbegin(); p != store.all().rend(); ++p) {
    EXPECT_GE((*p)->offset, end) << (*p)->name;
    EXPECT_LT((*p)->offset, end + 16) << (*p)->name;
    EXPECT_EQ((*p)->value.address(), store.weights().data<double>() + (*p)->offset);
    end = (*p)->offset + (*p)->numel();
  }
  EXPECT_LE(end, store.size());
  EXPECT_LT(store.size(), end + 16);
}

TEST(Transformer, RefusesAnImpossibleConfig) {
  const auto device = tensor::make_reference_device();
  const auto refuses = [&](const std::string& part, const auto& change) {
    ModelConfig config = small_config("pre-ln", 1, 1);
    change(config);
    return support::throws_with<InvalidArgument>(
        part, [&] { Transformer(config, *device, DType::kF32); });
  };

  EXPECT_TRUE(refuses("a vocabulary of 1", [](auto& c) { c.vocabulary_size = 1; }));
  EXPECT_TRUE(refuses("model.width: got 15", [](auto& c) { c.width = 15; }));
  EXPECT_TRUE(refuses("model.heads: got 5, allowed a divisor of model.width (12)",
                      [](auto& c) { c.heads = 5; }));
  EXPECT_TRUE(refuses("decoder_layers", [](auto& c) { c.decoder_layers = 0; }));
  EXPECT_TRUE(refuses("model.encoder_layers: got 0", [](auto& c) { c.encoder_layers = 0; }));
  EXPECT_TRUE(
      refuses("model.encoder_layers: got 1", [](auto& c) { c.kind = ModelKind::kDecoder; }));
  EXPECT_TRUE(refuses("model.topology: got mid-ln, expected one of: post-ln, pre-ln",
                      [](auto& c) { c.topology = "mid-ln"; }));
}

struct Moments {
  double mean = 0, variance = 0, largest = 0;
};

Moments moments(const double* x, int64_t count) {
  Moments m;
  for (int64_t i = 0; i < count; ++i) {
    m.mean += x[i] / double(count);
    m.largest = std::max(m.largest, std::abs(x[i]));
  }
  for (int64_t i = 0; i < count; ++i)
    m.variance += (x[i] - m.mean) * (x[i] - m.mean) / double(count);
  return m;
}

// Variance of U(-b, b) is b^2 / 3; Xavier's is gain^2 2 / (fan in + fan out).
TEST(Init, HasTheVarianceOfEveryRole) {
  const auto device = tensor::make_reference_device();
  for (const InitRule rule : {InitRule::kFairseq, InitRule::kXavier}) {
    ModelConfig config = small_config("residual", 1, 1);
    config.width = 128;
    config.heads = 4;
    config.ffn_width = 512;
    config.vocabulary_size = 300;
    config.init = rule;
    config.share_embeddings = ShareEmbeddings::kNone;
    Transformer model(config, *device, DType::kF64);
    model.initialise(5);
    const bool is_fairseq = rule == InitRule::kFairseq;
    const double C = 128, F = 512, qkv = (is_fairseq ? 0.5 : 1) * 2 / (C + C);
    const double fc1 = is_fairseq ? 1 / (3 * C) : 2 / (C + F);
    const double fc2 = is_fairseq ? 1 / (3 * F) : 2 / (C + F);
    const std::map<std::string, double> want = {
        {"encoder.embedding.weight", 1 / C},
        {"decoder.output.weight", 1 / C},
        {"encoder.1.self_attention.qkv.weight", qkv},
        {"decoder.1.cross_attention.q.weight", qkv},
        {"decoder.1.cross_attention.kv.weight", qkv},
        {"decoder.1.cross_attention.out.weight", 2 / (C + C)},
        {"encoder.1.feed_forward.fc1.weight", fc1},
        {"encoder.1.feed_forward.fc2.weight", fc2},
    };
    for (const auto& [name, variance] : want) {
      const Parameter& p = model.parameters().find(name);

      const Moments m = moments(p.value.data<double>(), p.numel());

      const double n = double(p.numel());
      EXPECT_NEAR(m.variance, variance, 6 * variance * std::sqrt(2 / n)) << name;
      EXPECT_NEAR(m.mean, 0, 5 * std::sqrt(variance / n)) << name;
      if (p.role != Role::kEmbedding && p.role != Role::kOutput) {
        EXPECT_LE(m.largest, std::sqrt(3 * variance) * (1 + 1e-12)) << name;
      }
    }
    for (const auto& p : model.parameters().all()) {
      const Moments m = moments(p->value.data<double>(), p->numel());
      if (p->role == Role::kNormGain) {
        EXPECT_EQ(m.mean, 1) << p->name;
      }
      if (p->role == Role::kNormBias || p->role == Role::kAttentionOutBias ||
          (p->role == Role::kBias && !is_fairseq)) {
        EXPECT_EQ(m.largest, 0) << p->name;
      }
      if (p->role == Role::kBias && is_fairseq) {
        const double bound = 1 / std::sqrt(p->name.find("fc2") == std::string::npos ? C : F);
        EXPECT_LE(m.largest, bound) << p->name;
        EXPECT_GT(m.largest, 0.8 * bound) << p->name;
      }
    }
  }
}

TEST(Init, IsAFunctionOfSeedAndNameAlone) {
  const auto device = tensor::make_reference_device();
  Transformer shallow(small_config("residual", 1, 1), *device, DType::kF32);
  Transformer deep(small_config("residual", 3, 2), *device, DType::kF32);
  shallow.initialise(5);
  deep.initialise(5);
  for (const auto& p : shallow.parameters().all())
    EXPECT_TRUE(support::has_same_bits(p->value, deep.parameters().find(p->name).value)) << p->name;

  deep.initialise(6);
  const char* name = "encoder.1.feed_forward.fc1.weight";
  EXPECT_FALSE(support::has_same_bits(shallow.parameters().find(name).value,
                                      deep.parameters().find(name).value));
  EXPECT_FALSE(
      support::has_same_bits(deep.parameters().find(name).value,
                             deep.parameters().find("encoder.2.feed_forward.fc1.weight").value));
}

class EveryTopology : public ::testing::TestWithParam<std::string> {
 protected:
  // All three dropouts on; widths and vocabulary with tails.
  static ModelConfig config() {
    ModelConfig c = small_config(GetParam(), 2, 2);
    c.width = 48;
    c.heads = 4;
    c.ffn_width = 130;
    c.vocabulary_size = 600;
    c.dropout = 0.2;
    c.attention_dropout = 0.1;
    c.activation_dropout = 0.15;
    return c;
  }
};

TEST_P(EveryTopology, GivesTheSameBitsOnAnyNumberOfThreads) {
  const data::PackedBatch batch = pack_all(random_pairs(40, 2, 600, 1, 20, 3), false);
  Model model(config(), DType::kF32);
  const auto one = tensor::make_cpu_device(1);
  const double want_loss = model.loss(*one, batch, {.seed = 1, .step = 2});
  const Tensor want = support::copy_of(model.gradient);
  ASSERT_GT(support::norm_of(want), 0);
  for (const int threads : {1, 2, 3}) {
    const auto many = tensor::make_cpu_device(threads);

    const double loss = model.loss(*many, batch, {.seed = 1, .step = 2});

    EXPECT_EQ(loss, want_loss) << threads << " threads";
    EXPECT_TRUE(support::has_same_bits(model.gradient, want)) << threads << " threads";
  }
}

// Masks depend on sentence and position, so this holds with dropout on.
TEST_P(EveryTopology, SumsTheSameGradientOverOneBatchOrTwo) {
  const std::vector<data::TokenPair> pairs = random_pairs(9, 2, 600, 1, 20, 4);
  const data::Dataset data = data::Dataset::from_pairs(pairs, false);
  const std::vector<int64_t> all = {0, 1, 2, 3, 4, 5, 6, 7, 8}, odd = {7, 3, 5, 1},
                             even = {0, 2, 4, 6, 8};
  const data::PackedBatch whole = data::pack(data, all), first = data::pack(data, odd),
                          second = data::pack(data, even);
  const double tokens = double(whole.target.size());
  const kernels::DropoutStep step = {.seed = 1, .step = 2};
  Model model(config(), DType::kF32);
  const auto device = tensor::make_cpu_device(1);
  const double want_loss = model.loss(*device, whole, step);
  const Tensor want = support::copy_of(model.gradient);

  double loss = model.loss(*device, first, step, 0.1, false, tokens);
  loss += model.loss(*device, second, step, 0.1, true, tokens);

  EXPECT_NEAR(loss, want_loss, 1e-5 * want_loss);
  const double norm = support::norm_of(want);
  for (const auto& p : model.transformer.parameters().all()) {
    const Tensor got_slice = model.gradient.columns(p->offset, p->numel());
    EXPECT_TRUE(support::is_gradient_near(got_slice, want.columns(p->offset, p->numel()), norm))
        << p->name;
  }
}

TEST_P(EveryTopology, OnTheCpuEqualsTheReference) {
  const data::PackedBatch batch = pack_all(random_pairs(6, 2, 600, 1, 12, 5), false);
  for (const Activation activation : {Activation::kRelu, Activation::kGelu}) {
    ModelConfig c = config();
    c.activation = activation;
    Model model(c, DType::kF32);
    const kernels::DropoutStep step = {.seed = 3, .step = 4};
    const double want_loss = model.loss(*tensor::make_reference_device(), batch, step);
    const Tensor want = support::copy_of(model.gradient);

    const double loss = model.loss(*tensor::make_cpu_device(1), batch, step);

    EXPECT_NEAR(loss, want_loss, 1e-5 * want_loss);
    const double norm = support::norm_of(want);
    for (const auto& p : model.transformer.parameters().all()) {
      const Tensor got_slice = model.gradient.columns(p->offset, p->numel());
      EXPECT_TRUE(support::is_gradient_near(got_slice, want.columns(p->offset, p->numel()), norm))
          << p->name;
    }
  }
}

TEST_P(EveryTopology, CallsReadyOncePerParameterAfterItsLastGradient) {
  for (const ShareEmbeddings share : {ShareEmbeddings::kAll, ShareEmbeddings::kNone}) {
    ModelConfig c = config();
    c.share_embeddings = share;
    Model model(c, DType::kF32);
    const auto device = tensor::make_cpu_device(1);
    const data::PackedBatch batch = pack_all(random_pairs(3, 2, 600, 1, 12, 5), false);
    Tape tape(*device, DType::kF32, {.update = model.transformer.update()});
    const ops::TokenLosses losses =
        model.transformer.losses(tape, upload(tape, batch, 600), 0.1, 0.1);
    std::map<std::string, Tensor> ready;

    tape.backward(losses.loss, {}, [&](const Parameter& p) {
      EXPECT_TRUE(ready.emplace(p.name, support::copy_of(p.grad)).second) << p.name;
    });

    for (const auto& p : model.transformer.parameters().all()) {
      ASSERT_TRUE(ready.contains(p->name)) << p->name;
      EXPECT_TRUE(support::has_same_bits(ready[p->name], p->grad)) << p->name;
      EXPECT_GT(support::norm_of(p->grad), 0) << p->name;
    }
  }
}

// Which elements of every block's output were dropped.
class MaskObserver final : public BlockObserver {
 public:
  void on_block(const topology::BlockContext& block, const Tensor&, const Tensor& o,
                const Tensor&) override {
    if (block.stack == topology::StackKind::kEncoder) return;
    std::vector<bool>& mask = masks[topology::name_of(block)];
    for (int64_t i = 0; i < o.numel(); ++i) mask.push_back(o.data<float>()[i] == 0);
  }
  std::map<std::string, std::vector<bool>> masks;
};

// Two independent masks of p = 1/2 agree on half of the elements.
TEST_P(EveryTopology, DropsOtherElementsInEveryBlock) {
  ModelConfig c = config();
  c.dropout = 0.5;
  Model model(c, DType::kF32);
  const auto device = tensor::make_cpu_device(1);
  const data::PackedBatch batch = pack_all(random_pairs(12, 2, 600, 10, 20, 5), false);
  Tape tape(*device, DType::kF32, {.dropout = {.seed = 1, .step = 2}});
  MaskObserver observer;

  (void)model.transformer.losses(tape, upload(tape, batch, 600), 0.1, 1, &observer);

  ASSERT_EQ(observer.masks.size(), 6u);
  for (auto a = observer.masks.begin(); a != observer.masks.end(); ++a) {
    for (auto b = std::next(a); b != observer.masks.end(); ++b) {
      double agreeing = 0;
      for (size_t i = 0; i < a->second.size(); ++i) agreeing += a->second[i] == b->second[i];
      const double n = double(a->second.size());
      EXPECT_NEAR(agreeing / n, 0.5, 6 * 0.5 / std::sqrt(n)) << a->first << " and " << b->first;
    }
  }
}

TEST_P(EveryTopology, ReturnsItsMemoryToTheMarkAfterBackward) {
  Model model(config(), DType::kF32);
  const auto device = tensor::make_cpu_device(1);
  const data::PackedBatch batch = pack_all(random_pairs(5, 2, 600, 1, 12, 5), false);

  model.loss(*device, batch);
  const int64_t peak = device->arena().peak_bytes();
  EXPECT_EQ(device->arena().used_bytes(), 0);
  for (int step = 0; step < 3; ++step) model.loss(*device, batch);

  EXPECT_EQ(device->arena().used_bytes(), 0);
  EXPECT_EQ(device->arena().peak_bytes(), peak) << "memory grows from step to step";
}

INSTANTIATE_TEST_SUITE_P(Topologies, EveryTopology, ::testing::ValuesIn(topology::topology_names()),
                         [](const auto& topology) {
                           std::string name = topology.param;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace fathom::model
