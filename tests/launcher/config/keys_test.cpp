// Every row of the table, one by one.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/topology/registry.h"
#include "launcher/config/document.h"
#include "launcher/config/resume_rules.h"
#include "launcher/config/schema.h"
#include "launcher/config/show.h"
#include "tests/launcher/config/support.h"

namespace fathom::launcher {
namespace {

// A good value that is not the default, one out of range, and the values that the good one needs.
struct Row {
  std::string good;  // as `config show` prints it
  std::string out_of_range;
  std::vector<std::string> needed = {};
};

const std::map<std::string, Row> kRows = {
    {"run.name", {"other", ".hidden"}},
    {"run.directory", {"/runs/x", "''"}},
    {"run.seed", {"9223372036854775807", "-1"}},
    {"model.kind", {"decoder", "encoder"}},
    {"model.depth", {"E2D3", "E2D0"}},
    {"model.encoder_layers", {"10000", "10001"}},
    {"model.decoder_layers", {"10000", "0"}},
    {"model.topology", {"pre-ln", "mid-ln"}},
    {"model.topology_options.alpha", {"-0.25", "inf", {"model.topology=residual"}}},
    {"model.topology_options.scale", {"0.5", "0", {"model.topology=residual"}}},
    {"model.topology_options.dual_start", {"zero", "one", {"model.topology=residual"}}},
    {"model.topology_options.streams", {"4", "0", {"model.topology=hyper-connections"}}},
    {"model.topology_options.updates", {"7", "0", {"model.topology=branchnorm"}}},
    {"model.width", {"65536", "65537"}},
    {"model.ffn_width", {"1", "0"}},
    {"model.heads", {"1", "4097"}},
    {"model.activation", {"gelu", "tanh"}},
    {"model.dropout", {"0", "1"}},
    {"model.attention_dropout", {"0.5", "1"}},
    {"model.activation_dropout", {"0.5", "-0.1"}},
    {"model.share_embeddings", {"decoder", "source"}},
    {"model.init", {"xavier", "zero"}},
    {"model.recompute_activations", {"true", "yes"}},
    {"data.train", {"a/b", "\"a\\nb\""}},
    {"data.valid", {"a/b", "\"a\\nb\""}},
    {"data.test", {"a/b", "\"a\\nb\""}},
    {"data.source", {"fr", "../fr"}},
    {"data.target", {"fr", "a/b"}},
    {"data.vocabulary_size", {"8", "7"}},
    {"data.tokenizer", {"unigram", "word"}},
    {"data.character_coverage", {"0.9995", "1.5"}},
    {"data.tokenizer_model", {"own.model", "[1]"}},
    {"data.max_length", {"1", "0"}},
    {"data.on_bad_line", {"skip", "warn"}},
    {"data.directory", {"a/b", "\"a\\nb\""}},
    {"batch.tokens", {"1", "0"}},
    {"batch.micro_tokens", {"100000000", "100000001"}},
    {"batch.shards", {"65536", "65537"}},
    {"optimizer.learning_rate", {"100", "0"}},
    {"optimizer.betas", {"[0, 0.5]", "[0.5, 1]"}},
    {"optimizer.epsilon", {"1", "0"}},
    {"optimizer.epsilon_mode", {"corrected", "adam"}},
    {"optimizer.weight_decay", {"1000", "1001"}},
    {"optimizer.clip_norm", {"1.5", "-1"}},
    {"optimizer.label_smoothing", {"0", "1"}},
    {"optimizer.schedule", {"tfixup", "step"}},
    {"optimizer.warmup_steps", {"1000000000", "-1"}},
    {"optimizer.warmup_start", {"0", "-1"}},
    {"train.max_steps", {"1", "0"}},
    {"train.max_epochs", {"3", "-1"}},
    {"train.validate_every", {"0", "-1"}},
    {"train.patience", {"5", "-1"}},
    {"train.best_metric", {"bleu", "chrf"}},
    {"train.precision", {"bf16", "fp16", {"train.device=reference"}}},
    {"train.device", {"reference", "tpu"}},
    {"train.threads", {"1024", "1025"}},
    {"dist.backend", {"mpi", "gloo"}},
    {"dist.reduction", {"fast", "ring"}},
    {"dist.overlap", {"'off'", "maybe"}},
    {"dist.bucket_mb", {"1024", "0"}},
    {"dist.shard_optimizer", {"true", "1"}},
    {"dist.timeout_seconds", {"0.5", "0"}},
    {"checkpoint.every_steps", {"20", "-1"}},
    {"checkpoint.every_minutes", {"0", "1000001"}},
    {"checkpoint.keep_last", {"1", "0"}},
    {"checkpoint.keep_best", {"0", "-1"}},
    {"checkpoint.keep_every", {"40", "-1", {"checkpoint.every_steps=20"}}},
    {"monitoring.listen", {"'off'", "host:65536"}},
    {"monitoring.required", {"true", "on"}},
    {"monitoring.layer_statistics_every", {"0", "-1"}},
    {"monitoring.detail", {"run", "layer"}},
    {"monitoring.max_series", {"1", "0"}},
    {"monitoring.linger_seconds", {"20", "-1"}},
    {"verdict.after", {"9", "-1"}},
    {"verdict.action", {"report", "warn"}},
};

std::vector<std::string> with(std::vector<std::string> words, const std::string& word) {
  words.push_back(word);
  return words;
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const Key& key : schema()) all.push_back(key.name);
  return all;
}

class EveryKey : public ::testing::TestWithParam<std::string> {
 protected:
  const Key& key_ = *find_key(GetParam());
  const Row& row_ = kRows.at(key_.name);

  // What a new value is changed from.
  [[nodiscard]] Config before() const { return parse("", row_.needed); }
  [[nodiscard]] Config after() const {
    return parse("", with(row_.needed, key_.name + "=" + row_.good));
  }
};

TEST_P(EveryKey, TakesAGoodValueAndShowsIt) {
  const Config config = after();
  const bool is_shown = key_.name != "model.depth";
  EXPECT_EQ(value_of(config, key_.name), is_shown ? row_.good : "unset");
  EXPECT_NE(to_yaml(config), to_yaml(before()));
  EXPECT_EQ(to_yaml(parse(to_yaml(config))), to_yaml(config));
  EXPECT_TRUE(differences(config, parse(to_yaml(config))).empty());
}

TEST_P(EveryKey, RefusesAValueOutOfRangeInItsPlace) {
  std::string file = row_.out_of_range, section = key_.name;
  for (size_t point = section.rfind('.'); point != section.npos; point = section.rfind('.')) {
    file = "{" + section.substr(point + 1) + ": " + file + "}";
    section.resize(point);
  }
  file = section + ": " + file;
  const std::string message = refusal("\n" + file);
  EXPECT_TRUE(message.starts_with("c.yaml:2: " + key_.name + ": got ")) << message;
  EXPECT_NE(message.find(", allowed " + key_.allowed), message.npos) << message;
}

TEST_P(EveryKey, RefusesAnotherType) {
  for (const auto& [value, got] :
       {std::pair("{a: 1}", "a map"), std::pair("[[1]]", "a list of 1")}) {
    const std::string message = refusal("", with(row_.needed, key_.name + "=" + value));
    EXPECT_TRUE(message.starts_with("command line: " + key_.name + ": got " + got + ", allowed " +
                                    key_.allowed))
        << message;
  }
}

TEST_P(EveryKey, DocumentsItsDefaultAndWhetherItMayChange) {
  const std::string start = "\n| `" + key_.name + "` | " + key_.type + " | `";
  const std::string page = keys_as_markdown();
  const size_t at = page.find(start);
  ASSERT_NE(at, page.npos);
  const std::string line =
      page.substr(at + start.size(), page.find('\n', at + 1) - at - start.size());
  std::string default_value = value_of(Config{}, key_.name);
  if (default_value == "unset") default_value = "-";
  if (key_.name == "run.name") default_value = "name of the file";
  if (key_.name == "run.directory") default_value = "runs/NAME";
  if (key_.is_required) default_value = "none: required";
  EXPECT_TRUE(line.starts_with(default_value + "` | ")) << line;
  const std::map<MayChange, std::string> resume = {{MayChange::kFreely, "| may change |"},
                                                   {MayChange::kOnRequest, "| on request |"},
                                                   {MayChange::kNever, "| fixed |"}};
  EXPECT_TRUE(line.ends_with(resume.at(key_.may_change))) << line;
}

// And what a refusal advises is accepted.
TEST_P(EveryKey, IsRefusedOnAResumeUnlessItMayChange) {
  const auto resume = [&](const std::string& allowed) -> std::string {
    try {
      (void)check_resume(before(), after(), parse_allowed_changes(allowed));
      return "accepted";
    } catch (const InvalidArgument& e) {
      return e.what();
    }
  };
  const bool is_left_to_the_text = key_.name == "data.train" || key_.name == "data.valid";
  if (key_.may_change == MayChange::kFreely || is_left_to_the_text) {
    EXPECT_EQ(resume(""), "accepted");
    return;
  }
  const std::string changed = key_.name == "model.depth" ? "model." : key_.name;
  const std::string refusal = resume(""), option = "--allow-change ";
  EXPECT_TRUE(refusal.starts_with("resume: " + changed)) << refusal;
  const size_t advice = refusal.find(option);
  ASSERT_EQ(advice != refusal.npos, key_.may_change == MayChange::kOnRequest) << refusal;
  if (advice != refusal.npos)
    EXPECT_EQ(resume(refusal.substr(advice + option.size())), "accepted");
  else
    EXPECT_THROW((void)parse_allowed_changes(key_.name), InvalidArgument);
}

INSTANTIATE_TEST_SUITE_P(Table, EveryKey, ::testing::ValuesIn(names()), [](const auto& test) {
  std::string name = test.param;
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
});

TEST(Keys, HaveARowEachInThisTest) { EXPECT_EQ(kRows.size(), schema().size()); }

TEST(MayChange, IsAsTheContractSays) {
  const std::set<std::string> freely = {"run.name",
                                        "run.directory",
                                        "train.max_steps",
                                        "train.max_epochs",
                                        "train.validate_every",
                                        "train.patience",
                                        "train.best_metric",
                                        "batch.micro_tokens",
                                        "data.test",
                                        "data.directory",
                                        "data.tokenizer_model",
                                        "train.device",
                                        "train.threads",
                                        "model.recompute_activations"};
  const std::set<std::string> on_request = {
      "model.activation",         "model.dropout", "model.attention_dropout",
      "model.activation_dropout", "model.init",    "data.valid"};
  for (const Key& key : schema()) {
    const std::string section = section_of(key.name);
    const bool is_operation = section == "checkpoint" || section == "monitoring" ||
                              section == "dist" || section == "verdict";
    const bool is_shape_or_text = section == "model" || section == "data";
    const bool is_free =
        freely.contains(key.name) || (is_operation && key.name != "dist.reduction");
    const bool is_never = is_shape_or_text && !is_free && !on_request.contains(key.name);
    const MayChange expected = is_free    ? MayChange::kFreely
                               : is_never ? MayChange::kNever
                                          : MayChange::kOnRequest;
    EXPECT_EQ(int(key.may_change), int(expected)) << key.name;
  }
}

}  // namespace
}  // namespace fathom::launcher
