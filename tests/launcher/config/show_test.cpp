#include "launcher/config/show.h"

#include <algorithm>
#include <clocale>
#include <locale>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/topology/registry.h"
#include "launcher/config/schema.h"
#include "tests/launcher/config/support.h"

namespace fathom::launcher {
namespace {

// One that has this key.
std::string topology_with(const std::string& key) {
  for (const topology::TopologyInfo& t : topology::topologies())
    for (const topology::TopologyOption& option : t.options)
      if (key == "model.topology_options." + option.name) return t.name;
  return "residual";
}

// No value is a default, and text needs every kind of quoting.
const char* const kUnusual = R"(run:
  name: unusual.1
  directory: 'it''s: a #path'
  seed: 9223372036854775807
model:
  kind: encoder-decoder
  encoder_layers: 12
  decoder_layers: 3
  topology: residual
  topology_options:
    alpha: -0.25
    scale: 0.05
    dual_start: zero
  width: 510
  ffn_width: 2000
  heads: 5
  activation: gelu
  dropout: 0.3333333333333333
  attention_dropout: 0.2
  activation_dropout: 1.0e-07
  share_embeddings: none
  init: xavier
  recompute_activations: true
data:
  train: /data/train
  valid: 'no'
  test: '~'
  source: en
  target: 'no'
  vocabulary_size: 1000
  tokenizer: unigram
  character_coverage: 0.98
  tokenizer_model: own.model
  max_length: 100
  on_bad_line: skip
  directory: data/x
batch:
  tokens: 1000
  micro_tokens: 500
  shards: 16
optimizer:
  learning_rate: 0.1
  betas: [0.8, 0.999]
  epsilon: 1.0e-06
  epsilon_mode: corrected
  weight_decay: 0.01
  clip_norm: 1.5
  label_smoothing: 0
  schedule: cosine
  warmup_steps: 10
  warmup_start: 0.0001
train:
  max_steps: 500
  max_epochs: 7
  validate_every: 11
  patience: 3
  best_metric: bleu
  precision: fp64
  device: reference
  threads: 2
dist:
  backend: mpi
  reduction: fast
  overlap: 'off'
  bucket_mb: 0.5
  shard_optimizer: true
  timeout_seconds: 2.5
checkpoint:
  every_steps: 20
  every_minutes: 0.5
  keep_last: 4
  keep_best: 2
  keep_every: 40
monitoring:
  listen: 'off'
  required: true
  layer_statistics_every: 5
  detail: run
  max_series: 10
  linger_seconds: 20
verdict:
  after: 9
  action: report
)";

TEST(Show, PrintsEveryKeyAndReadsBackToTheSameBytes) {
  EXPECT_EQ(to_yaml(parse(kUnusual)), kUnusual);
}

TEST(Show, PrintsNoDefaultInTheUnusualConfig) {
  // Guards the test above: a key whose set does nothing would pass it with its default.
  const std::set<std::string> with_one_value = {"model.kind", "model.topology", "model.depth"};
  std::set<std::string> changed;
  for (const Difference& d : differences(parse(""), parse(kUnusual))) changed.insert(d.key);
  for (const Key& key : schema()) {
    if (topology_with(key.name) != "residual") continue;
    EXPECT_EQ(changed.contains(key.name), !with_one_value.contains(key.name)) << key.name;
  }
}

TEST(Show, FieldsAreTheOnesThatTheKeysName) {
  const Config c = parse(kUnusual);
  EXPECT_EQ(c.run.name, "unusual.1");
  EXPECT_EQ(c.run.directory, "it's: a #path");
  EXPECT_EQ(c.run.seed, 9223372036854775807u);
  EXPECT_EQ(c.model.encoder_layers, 12);
  EXPECT_EQ(c.model.decoder_layers, 3);
  EXPECT_EQ(c.model.width, 510);
  EXPECT_EQ(c.model.ffn_width, 2000);
  EXPECT_EQ(c.model.heads, 5);
  EXPECT_EQ(c.model.activation, model::Activation::kGelu);
  EXPECT_EQ(c.model.dropout, 0.3333333333333333);
  EXPECT_EQ(c.model.attention_dropout, 0.2);
  EXPECT_EQ(c.model.activation_dropout, 1e-7);
  EXPECT_EQ(c.model.share_embeddings, model::ShareEmbeddings::kNone);
  EXPECT_EQ(c.model.init, model::InitRule::kXavier);
  EXPECT_EQ(c.data.train, "/data/train");
  EXPECT_EQ(c.data.valid, "no");
  EXPECT_EQ(c.data.test, "~");
  EXPECT_EQ(c.data.source, "en");
  EXPECT_EQ(c.data.target, "no");
  EXPECT_EQ(c.data.vocabulary_size, 1000);
  EXPECT_EQ(c.data.tokenizer, data::TokenizerKind::kUnigram);
  EXPECT_EQ(c.data.character_coverage, 0.98);
  EXPECT_EQ(c.data.tokenizer_model, "own.model");
  EXPECT_EQ(c.data.max_length, 100);
  EXPECT_EQ(c.data.on_bad_line, data::OnBadLine::kSkip);
  EXPECT_EQ(c.data.directory, "data/x");
  EXPECT_EQ(c.batch.tokens, 1000);
  EXPECT_EQ(c.batch.micro_tokens, 500);
  EXPECT_EQ(c.batch.shards, 16);
  EXPECT_EQ(c.optimizer.learning_rate, 0.1);
  EXPECT_EQ(c.optimizer.betas, (std::array<double, 2>{0.8, 0.999}));
  EXPECT_EQ(c.optimizer.epsilon, 1e-6);
  EXPECT_EQ(c.optimizer.epsilon_mode, optim::EpsilonMode::kCorrected);
  EXPECT_EQ(c.optimizer.weight_decay, 0.01);
  EXPECT_EQ(c.optimizer.clip_norm, 1.5);
  EXPECT_EQ(c.optimizer.label_smoothing, 0);
  EXPECT_EQ(c.optimizer.schedule, optim::Schedule::kCosine);
  EXPECT_EQ(c.optimizer.warmup_steps, 10);
  EXPECT_EQ(c.optimizer.warmup_start, 1e-4);
  EXPECT_EQ(c.train.max_steps, 500);
  EXPECT_EQ(c.train.max_epochs, 7);
  EXPECT_EQ(c.train.validate_every, 11);
  EXPECT_EQ(c.train.patience, 3);
  EXPECT_EQ(c.train.best_metric, BestMetric::kBleu);
  EXPECT_EQ(c.train.precision, Precision::kFp64);
  EXPECT_EQ(c.train.device, DeviceChoice::kReference);
  EXPECT_EQ(c.train.threads, 2);
  EXPECT_EQ(c.dist.backend, Backend::kMpi);
  EXPECT_EQ(c.dist.reduction, dist::Reduction::kFast);
  EXPECT_EQ(c.dist.overlap, dist::Overlap::kOff);
  EXPECT_EQ(c.dist.bucket_mb, 0.5);
  EXPECT_EQ(c.dist.timeout_seconds, 2.5);
  EXPECT_EQ(c.checkpoint.every_steps, 20);
  EXPECT_EQ(c.checkpoint.every_minutes, 0.5);
  EXPECT_EQ(c.checkpoint.keep_last, 4);
  EXPECT_EQ(c.checkpoint.keep_best, 2);
  EXPECT_EQ(c.checkpoint.keep_every, 40);
  EXPECT_EQ(c.monitoring.listen, "off");
  EXPECT_TRUE(c.monitoring.required);
  EXPECT_EQ(c.monitoring.layer_statistics_every, 5);
  EXPECT_EQ(c.monitoring.detail, Detail::kRun);
  EXPECT_EQ(c.monitoring.max_series, 10);
  EXPECT_EQ(c.monitoring.linger_seconds, 20);
  EXPECT_EQ(c.verdict.after, 9);
  EXPECT_EQ(c.verdict.action, VerdictAction::kReport);
}

// Every value of every choice, in a config of its own.
TEST(Show, EveryChoiceReadsBack) {
  int tried = 0;
  for (const Key& key : schema()) {
    for (const std::string& word : key.choices) {
      const bool missing = std::any_of(key.not_available.begin(), key.not_available.end(),
                                       [&](const NotAvailable& n) { return n.value == word; });
      if (missing) continue;
      const Config config =
          parse("{train: {device: reference}, model: {topology: " + topology_with(key.name) + "}}",
                {key.name + "=" + word});
      // Options are text or numbers, and shown as they were given.
      const bool is_option = key.name.starts_with("model.topology_options.");
      EXPECT_EQ(value_of(parse(to_yaml(config)), key.name), is_option ? word : quote_yaml(word))
          << key.name;
      EXPECT_TRUE(differences(config, parse(to_yaml(config))).empty()) << key.name << " " << word;
      ++tried;
    }
  }
  EXPECT_GT(tried, 30);
}

TEST(Show, ResolvedDecodersAndPlainTopologiesReadBack) {
  for (const std::string text :
       {"model: {kind: decoder, depth: D24, topology: pre-ln}", "model: {topology: post-ln}",
        "optimizer: {schedule: inverse-sqrt-w1}"}) {
    const Config config = parse(text);
    EXPECT_EQ(to_yaml(parse(to_yaml(config))), to_yaml(config)) << text;
  }
}

TEST(MarkedYaml, SaysTheDefaultOfWhatDiffersAndReadsBackToTheSameConfig) {
  for (const std::string& text : std::vector<std::string>{
           kUnusual, "", std::string("run: {name: plain}"),
           std::string("model: {topology: hyper-connections, topology_options: {streams: 4}}"),
           std::string("data: {train: 'a # b', valid: \"it's # \"}")}) {
    const Config config = parse(text);
    const std::string marked = to_marked_yaml(config);
    EXPECT_EQ(to_yaml(parse(marked)), to_yaml(config)) << marked;
  }
  const auto marks = [](const std::string& text) {
    const std::string marked = to_marked_yaml(parse(text));
    return std::ranges::count(marked, '#');
  };
  EXPECT_EQ(marks(""), 0);
  EXPECT_EQ(marks("{run: {directory: elsewhere}, model: {dropout: 0.3, width: 512}}"), 3);
  EXPECT_EQ(marks("model: {topology: hyper-connections}"), 1);
  EXPECT_EQ(marks("model: {topology: hyper-connections, topology_options: {streams: 4}}"), 2);
  const std::string marked = to_marked_yaml(parse("{model: {dropout: 0.3}, data: {train: t}}"));
  EXPECT_NE(marked.find("\n  dropout: 0.3  # default 0.1\n"), marked.npos);
  EXPECT_NE(marked.find("\n  train: t  # default ''\n"), marked.npos);
}

TEST(Show, DefaultsOfTheTableAreThoseOfAnEmptyFile) {
  for (const Difference& d : differences(Config{}, parse(""))) {
    EXPECT_TRUE(d.key == "run.name" || d.key == "run.directory") << d.key;
  }
}

TEST(Hash, ChangesWithAnyKeyAndWithNothingElse) {
  EXPECT_EQ(config_hash(parse("model: {width: 512}")), config_hash(parse("", {"model.width=512"})));
  EXPECT_EQ(config_hash(parse("")).size(), 16u);
  EXPECT_NE(config_hash(parse("")), config_hash(parse("", {"run.seed=2"})));
  EXPECT_NE(config_hash(parse("")), config_hash(parse("", {"train.threads=1"})));
}

TEST(Differences, NameKeyAndBothValuesInTheOrderOfTheTable) {
  const auto found = differences(parse("{model: {topology: pre-ln}, run: {seed: 3}}"), parse(""));
  ASSERT_EQ(found.size(), 5u);
  EXPECT_EQ(found[0].key, "run.seed");
  EXPECT_EQ(found[0].old_value, "3");
  EXPECT_EQ(found[0].new_value, "1");
  EXPECT_EQ(found[1].key, "model.topology");
  EXPECT_EQ(found[2].key, "model.topology_options.alpha");
  EXPECT_EQ(found[2].old_value, "unset");
  EXPECT_EQ(found[2].new_value, "1");
}

class CommaDecimals : public std::numpunct<char> {
 protected:
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

class RestoreLocale {
 public:
  ~RestoreLocale() {
    std::locale::global(before_);
    std::setlocale(LC_ALL, "C");
  }

 private:
  std::locale before_;
};

TEST(Locale, ChangesNothing) {
  const std::string plain = to_yaml(parse(kUnusual));
  const std::string message = refusal("model: {width: 99999}");
  const RestoreLocale restore;
  std::locale::global(std::locale(std::locale::classic(), new CommaDecimals));
  EXPECT_EQ(to_yaml(parse(kUnusual)), plain);
  EXPECT_EQ(refusal("model: {width: 99999}"), message);
  EXPECT_EQ(refusal(std::string(1500, '\n') + "model: {width: x}").substr(0, 12), "c.yaml:1501:");
  for (const char* name : {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8"}) {
    if (!std::setlocale(LC_ALL, name)) continue;
    EXPECT_EQ(to_yaml(parse(kUnusual)), plain) << name;
    EXPECT_EQ(refusal("model: {dropout: '0,1'}").substr(0, 34),
              "c.yaml:1: model.dropout: got '0,1'");
  }
}

}  // namespace
}  // namespace fathom::launcher
