#include "launcher/config/load.h"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/topology/registry.h"
#include "launcher/config/schema.h"
#include "tests/launcher/config/support.h"
#include "tests/support/listen_forms.h"
#include "tests/support/temporary_directory.h"

namespace fathom::launcher {
namespace {

std::string topologies() {
  std::string list;
  for (const std::string& name : topology::topology_names())
    list += (list.empty() ? "" : ", ") + name;
  return list;
}

// Every one with a comma behind it.
std::string topology_options() {
  std::string list;
  for (const topology::TopologyInfo& t : topology::topologies())
    for (const topology::TopologyOption& option : t.options)
      list += "topology_options." + option.name + ", ";
  return list;
}

struct Refused {
  std::string text;
  std::string message;
};

TEST(Load, RefusesUnknownKeysAndNamesTheOneMeant) {
  const std::vector<Refused> cases = {
      {"model:\n  widht: 8\n", "c.yaml:2: model.widht: unknown key; did you mean model.width"},
      {"optimizer:\n  learning-rate: 1\n",
       "c.yaml:2: optimizer.learning-rate: unknown key; did you mean optimizer.learning_rate"},
      {"train:\n  dropout: 0.1\n",
       "c.yaml:2: train.dropout: unknown key; did you mean model.dropout"},
      {"run: {seed: 1}\nheads: 4\n", "c.yaml:2: heads: unknown key; did you mean model.heads"},
      {"modle:\n  width: 8\n", "c.yaml:1: modle: unknown key; did you mean model"},
      {"batch:\n  zebra: 8\n",
       "c.yaml:2: batch.zebra: unknown key, allowed in batch: tokens, micro_tokens, shards"},
      {"zzzzzz: 1\n",
       "c.yaml:1: zzzzzz: unknown key, allowed sections: run, model, data, batch, optimizer, "
       "train, dist, checkpoint, monitoring, verdict"},
      {"model:\n  topology_options:\n    alhpa: 1\n",
       "c.yaml:3: model.topology_options.alhpa: unknown key; did you mean "
       "model.topology_options.alpha"},
      {"model:\n  <<: {width: 8}\n",
       "c.yaml:2: model.<<: unknown key, allowed in model: kind, depth, encoder_layers, "
       "decoder_layers, topology, " +
           topology_options() +
           "width, ffn_width, heads, activation, dropout, "
           "attention_dropout, activation_dropout, share_embeddings, init, recompute_activations"},
      {"\"\":\n  model: {width: 8}\n", "c.yaml:1: an empty key"},
      {"model.width: 8\n",
       "c.yaml:1: model.width: a point in a key, allowed are nested maps: model: {width: ...}"},
      {"model:\n  topology_options.alpha: 1\n",
       "c.yaml:2: model.topology_options.alpha: a point in a key, allowed are nested maps: "
       "model.topology_options: {alpha: ...}"},
  };
  for (const Refused& c : cases) EXPECT_EQ(refusal(c.text), c.message) << c.text;
}

TEST(Load, RefusesDuplicateKeys) {
  EXPECT_EQ(refusal("model:\n  width: 8\n  heads: 2\n  width: 8\n"),
            "c.yaml:4: model.width: duplicate key, first given in line 2");
  EXPECT_EQ(refusal("model: {}\ntrain: {}\nmodel: {}\n"),
            "c.yaml:3: model: duplicate key, first given in line 1");
}

TEST(Load, RefusesWrongShapes) {
  EXPECT_EQ(
      refusal("just words\n"),
      "c.yaml:1: got just words, allowed a map of sections: run, model, data, batch, optimizer, "
      "train, dist, checkpoint, monitoring, verdict");
  EXPECT_EQ(refusal("verdict: 5\n"),
            "c.yaml:1: verdict: got 5, allowed a map of keys: after, action");
  EXPECT_EQ(refusal("verdict: [1, 2]\n"),
            "c.yaml:1: verdict: got a list of 2, allowed a map of keys: after, action");
  EXPECT_EQ(refusal("verdict:\n  after: {x: 1}\n"),
            "c.yaml:2: verdict.after: got a map, allowed integer in [0, 1000000000]");
  EXPECT_EQ(refusal("verdict:\n  after:\n"),
            "c.yaml:2: verdict.after: got nothing, allowed integer in [0, 1000000000]");
}

// One line `section: {key: value}` each; the message is checked in full.
struct BadValue {
  std::string section, key, value, got, allowed;
};

TEST(Load, RefusesWrongTypesAndValuesOutOfRange) {
  const std::vector<BadValue> cases = {
      {"model", "width", "wide", "wide", "integer in [4, 65536]"},
      {"model", "width", "'256'", "'256'", "integer in [4, 65536]"},
      {"model", "width", "256.0", "256.0", "integer in [4, 65536]"},
      {"model", "width", "2", "2", "integer in [4, 65536]"},
      {"model", "width", "-256", "-256", "integer in [4, 65536]"},
      {"model", "width", "99999999999999999999", "99999999999999999999", "integer in [4, 65536]"},
      {"model", "width", "[256]", "a list of 1", "integer in [4, 65536]"},
      {"model", "width", "0400", "0400", "integer in [4, 65536]"},
      {"model", "heads", "0", "0", "integer in [1, 4096]"},
      {"model", "decoder_layers", "0", "0", "integer in [1, 10000]"},
      {"model", "dropout", "1", "1", "number in [0, 1)"},
      {"model", "dropout", "1.0", "1.0", "number in [0, 1)"},
      {"model", "dropout", "-0.1", "-0.1", "number in [0, 1)"},
      {"model", "dropout", ".nan", ".nan", "number in [0, 1)"},
      {"model", "dropout", "'0,1'", "'0,1'", "number in [0, 1)"},
      {"optimizer", "learning_rate", "0", "0", "number in (0, 100]"},
      {"optimizer", "learning_rate", "nan", "nan", "number in (0, 100]"},
      {"optimizer", "learning_rate", "inf", "inf", "number in (0, 100]"},
      {"optimizer", "learning_rate", ".inf", ".inf", "number in (0, 100]"},
      {"optimizer", "learning_rate", "1e400", "1e400", "number in (0, 100]"},
      {"optimizer", "clip_norm", "1e400", "1e400", "number >= 0"},
      {"optimizer", "clip_norm", "-1", "-1", "number >= 0"},
      {"optimizer", "betas", "0.9", "0.9", "two numbers in [0, 1)"},
      {"optimizer", "betas", "[0.9]", "a list of 1", "two numbers in [0, 1)"},
      {"optimizer", "betas", "[0.9, 1]", "a list of 2", "two numbers in [0, 1)"},
      {"optimizer", "betas", "[0.9, [0.98]]", "a list of 2", "two numbers in [0, 1)"},
      {"batch", "tokens", "0", "0", "integer in [1, 1000000000]"},
      {"batch", "micro_tokens", "0", "0", "integer in [1, 100000000]"},
      {"checkpoint", "keep_last", "0", "0", "integer in [1, 1000000]"},
      {"monitoring", "required", "yes", "yes", "true or false"},
      {"monitoring", "required", "1", "1", "true or false"},
      {"run", "seed", "-1", "-1", "integer in [0, 9223372036854775807]"},
      {"run", "directory", "''", "''", "a path"},
      {"run", "directory", "\"a\\nb\"", "'a?b'",
       "a path; it is not UTF-8, or holds control characters: rename what it names, or give it a "
       "link with another name"},
      {"train", "precision", "half", "half", "one of fp32, bf16, fp64"},
      {"train", "precision", "fp46", "fp46", "one of fp32, bf16, fp64; did you mean fp64"},
      {"train", "max_steps", "0", "0", "integer in [1, 1000000000]"},
      {"model", "topology", "residaul", "residaul",
       "one of " + topologies() + "; did you mean residual"},
      {"model", "topology", "x", "x", "one of " + topologies()},
      {"optimizer", "schedule", "inverse_sqrt", "inverse_sqrt",
       "one of inverse-sqrt, inverse-sqrt-w1, hold-inverse-sqrt, tfixup, constant-step, cosine, "
       "linear; did you mean inverse-sqrt"},
  };
  for (const BadValue& c : cases)
    EXPECT_EQ(refusal("\n" + c.section + ":\n  " + c.key + ": " + c.value + "\n"),
              "c.yaml:3: " + c.section + "." + c.key + ": got " + c.got + ", allowed " + c.allowed)
        << c.value;
}

TEST(Load, RefusesNamesThatCouldLeaveTheirDirectory) {
  for (const std::string name :
       {"../x", "a/b", ".hidden", "a b", "''", "$(id)", "a;b", "\xC3\xA9", "\"a\\0b\""})
    EXPECT_TRUE(refusal("run: {name: " + name + "}").starts_with("c.yaml:1: run.name: got "))
        << name;
  const std::string most(64, 'a');
  EXPECT_EQ(parse("run: {name: " + most + "}").run.name, most);
  EXPECT_EQ(refusal("run: {name: " + most + "a}"),
            "c.yaml:1: run.name: got " + most.substr(0, 60) +
                "..., allowed 1 to 64 of A-Z a-z 0-9 . _ -, not starting with a point");
  EXPECT_EQ(refusal("data: {source: ../de}"),
            "c.yaml:1: data.source: got ../de, allowed 1 to 64 of A-Z a-z 0-9 . _ -, not starting "
            "with a point");
}

TEST(Load, ChecksTheAddressToListenOn) {
  for (const std::string good : support::kListenable)
    EXPECT_EQ(parse("monitoring: {listen: '" + good + "'}").monitoring.listen, good);
  EXPECT_EQ(parse("monitoring: {listen: off}").monitoring.listen, "off");
  EXPECT_EQ(parse("monitoring: {listen: 9464}").monitoring.listen, "9464");
  for (const std::string bad : support::kNotListenable)
    EXPECT_EQ(refusal("monitoring: {listen: '" + bad + "'}"),
              "c.yaml:1: monitoring.listen: got '" + bad +
                  "', allowed off, PORT or :PORT (of 127.0.0.1), or HOST:PORT, where HOST is a "
                  "name or an IPv4 address (IPv6 is not served) and PORT in [0, 65535]");
}

TEST(Load, RefusesWhatIsNotAvailable) {
  const std::vector<Refused> cases = {
      {"train: {device: cuda}",
       "train.device: got cuda, which is not available: this program has no GPU kernels yet; "
       "available: auto, cpu, reference"},
      {"dist: {backend: nccl}",
       "dist.backend: got nccl, which is not available: it needs device cuda, which this program "
       "does not have yet; available: auto, mpi"},
  };
  for (const Refused& c : cases) EXPECT_EQ(refusal(c.text), "c.yaml:1: " + c.message);
  EXPECT_TRUE(parse("dist: {shard_optimizer: true}").dist.shard_optimizer);
}

TEST(Load, CommandLineWinsAndTheLaterWordWins) {
  const std::string file = "model:\n  width: 128\n  heads: 2\n";
  const Config config = parse(file, {"model.width=256", "run.seed=7", "model.width=512"});
  EXPECT_EQ(config.model.width, 512);
  EXPECT_EQ(config.model.heads, 2);
  EXPECT_EQ(config.run.seed, 7u);
}

TEST(Load, CommandLineValuesAreTakenAsTheyStand) {
  EXPECT_EQ(parse("", {"data.train=a: b #c = *d"}).data.train, "a: b #c = *d");
  EXPECT_EQ(parse("data: {test: x}", {"data.test="}).data.test, "");
  EXPECT_EQ(parse("", {"data.test='x y'"}).data.test, "x y");
  const Config config = parse("", {"optimizer.betas=[0.8, 0.9]"});
  EXPECT_EQ(config.optimizer.betas, (std::array<double, 2>{0.8, 0.9}));
  EXPECT_EQ(parse("", {"model={width: 8, heads: 2}"}).model.width, 8);
}

TEST(Load, ABracketIsTextWhereTextIsMeantAndItIsNoYaml) {
  EXPECT_EQ(parse("", {"data.train=[a] {b"}).data.train, "[a] {b");
  EXPECT_TRUE(
      refusal("", {"monitoring.listen=[::1]:9464"})
          .starts_with("command line: monitoring.listen: got [::1]:9464, allowed off, PORT"));
  EXPECT_EQ(refusal("", {"data.train=[a, b]"}),
            "command line: data.train: got a list of 2, allowed a path, or '' for none");
  EXPECT_EQ(refusal("", {"model.width=[8]"}),
            "command line: model.width: got a list of 1, allowed integer in [4, 65536]");
}

TEST(Load, NamesTheValueThatAWordMeans) {
  EXPECT_EQ(refusal("train: {device: gpu}"),
            "c.yaml:1: train.device: got gpu, allowed one of auto, cpu, cuda, reference; did you "
            "mean cuda");
  EXPECT_TRUE(refusal("train: {device: rference}").ends_with("; did you mean reference"));
}

TEST(Load, IntegersMayBeWrittenShort) {
  EXPECT_EQ(parse("train: {max_steps: 1e3}").train.max_steps, 1000);
  EXPECT_EQ(parse("", {"train.max_steps=20_000"}).train.max_steps, 20'000);
  EXPECT_EQ(refusal("model: {depth: E1e1D2}").substr(0, 38),
            "c.yaml:1: model.depth: got E1e1D2, all");
}

// Every message of gather_config, without the source.
std::vector<std::string> all_problems(const std::string& text,
                                      const std::vector<std::string>& overrides = {}) {
  Problems problems;
  (void)gather_config({.text = text, .name = "c", .run_name = "c"}, overrides, problems);
  std::vector<std::string> said;
  for (const Error& error : problems.errors()) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    said.emplace_back(error.what());
  }
  return said;
}

TEST(Gather, FindsEveryProblemAndTheFirstIsTheOneThatLoadingThrows) {
  const std::string text =
      "model: {widht: 8, heads: 0, kind: decodr}\n"
      "zebra: 1\n"
      "optimizer: {warmup_steps: 0}\n"
      "checkpoint: {every_steps: 10, keep_every: 15}\n"
      "train: 5\n";
  const std::vector<std::string> overrides = {"batch.tokens=x", "nonsense", "data.valid=v"};

  const std::vector<std::string> said = all_problems(text, overrides);

  EXPECT_EQ(said, (std::vector<std::string>{
                      "c:1: model.widht: unknown key; did you mean model.width",
                      "c:2: zebra: unknown key, allowed sections: run, model, data, batch, "
                      "optimizer, train, dist, checkpoint, monitoring, verdict",
                      "c:5: train: got 5, allowed a map of keys: max_steps, max_epochs, "
                      "validate_every, patience, best_metric, precision, device, threads",
                      "command line: got nonsense, allowed key=value",
                      "command line: batch.tokens: got x, allowed integer in [1, 1000000000]",
                      "c:1: model.heads: got 0, allowed integer in [1, 4096]",
                      "c:1: model.kind: got decodr, allowed one of encoder-decoder, decoder; did "
                      "you mean decoder",
                      "c:4: checkpoint.keep_every: got 15, allowed a multiple of "
                      "checkpoint.every_steps (10)"}));
  Problems problems;
  (void)gather_config({.text = text, .name = "c.yaml", .run_name = "c"}, overrides, problems);
  EXPECT_EQ(refusal(text, overrides), problems.errors().front().what());
}

TEST(Gather, FindsEveryContradictionOfAConfigWhoseValuesAreGood) {
  EXPECT_EQ(all_problems("{model: {width: 7, encoder_layers: 0}, "
                         "train: {patience: 2, validate_every: 0, precision: bf16}}")
                .size(),
            5u);  // width twice: it is odd, and no multiple of the heads
}

// A value that could not be read has its default, of which nobody spoke.
TEST(Gather, SaysNothingAboutDefaultsThatStandForABadValue) {
  EXPECT_EQ(all_problems("model: {width: 6, heads: x}").size(), 1u);
  EXPECT_EQ(all_problems("a: [\n", {"model.width=6"}).size(), 1u);
  EXPECT_EQ(all_problems("model: {width: 6}").size(), 1u);
}

TEST(Gather, ReadsAStream) {
  std::istringstream in("model: {width: 8, heads: 2}\n");
  const ConfigSource source = config_source(in);
  Problems problems;

  const Config config = gather_config(source, {}, problems).config;

  EXPECT_TRUE(problems.empty());
  EXPECT_EQ(config.model.width, 8);
  EXPECT_EQ(config.run.directory, "runs/stdin");
  std::istringstream large(std::string(2 << 20, ' '));
  (void)gather_config(config_source(large), {}, problems);
  ASSERT_EQ(problems.errors().size(), 1u);
  EXPECT_EQ(std::string(problems.errors()[0].what()),
            "standard input: has 1048577 bytes, allowed are 1048576");
}

TEST(Load, CommandLineErrorsSaySo) {
  const auto said = [](const std::string& word) { return refusal("", {word}); };
  EXPECT_EQ(said("width"), "command line: got width, allowed key=value");
  EXPECT_EQ(said("=5"), "command line: got =5, allowed key=value");
  EXPECT_EQ(said("model.widht=5"),
            "command line: model.widht: unknown key; did you mean model.width");
  EXPECT_EQ(said("model.width=x"),
            "command line: model.width: got x, allowed integer in [4, 65536]");
  EXPECT_EQ(said("model.width="),
            "command line: model.width: got '', allowed integer in [4, 65536]");
  EXPECT_EQ(said("verdict=5"),
            "command line: verdict: got 5, allowed a map of keys: after, action");
  EXPECT_EQ(said("optimizer.betas=[0.9"),
            "command line: optimizer.betas:1: a key must be plain text; is a bracket left open?");
  EXPECT_EQ(said("data.train='a"),
            "command line: data.train:1: not valid YAML: illegal EOF in scalar");
  const std::string why =
      "; it is not UTF-8, or holds control characters: rename what it names, or "
      "give it a link with another name";
  EXPECT_EQ(
      said("run.name=a\nb"),
      "command line: run.name: got a?b, allowed 1 to 64 of A-Z a-z 0-9 . _ -, not starting with "
      "a point" +
          why);
  EXPECT_EQ(said("data.train=a\xFF"),
            "command line: data.train: got a?, allowed a path, or '' for none" + why);
  EXPECT_EQ(said("run.directory=caf\xE9"),
            "command line: run.directory: got caf?, allowed a path" + why);
}

TEST(Load, EmptyFileGivesTheDefaults) {
  for (const std::string text : {"", "# nothing\n", "---\n", "model:\ntrain:\n"}) {
    const Config config = parse(text);
    EXPECT_EQ(config.run.name, "c");
    EXPECT_EQ(config.run.directory, "runs/c");
    EXPECT_EQ(config.run.seed, 1u);
    EXPECT_EQ(config.model.width, 256);
    EXPECT_EQ(config.checkpoint.every_minutes, 10);
    EXPECT_EQ(config.monitoring.listen, "127.0.0.1:9464");
    EXPECT_EQ(config.monitoring.layer_statistics_every, 50);
    EXPECT_EQ(config.dist.bucket_mb, 1);
  }
}

TEST(Load, DirectoryFollowsTheNameThatWins) {
  EXPECT_EQ(parse("run: {name: a}", {"run.name=b"}).run.directory, "runs/b");
  EXPECT_EQ(parse("run: {name: a, directory: d}", {"run.name=b"}).run.directory, "d");
}

class LoadFile : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) {
    const auto path = directory_ / name;
    std::ofstream(path, std::ios::binary) << text;
    return path.string();
  }
  static std::string refused(const std::string& path) {
    try {
      (void)load_config(path);
      return "accepted";
    } catch (const InvalidArgument& e) {
      return e.what();
    }
  }

  support::TemporaryDirectory directory_;
};

TEST_F(LoadFile, TakesTheRunNameFromTheFile) {
  const Config config = load_config(write("my.run-1.yaml", "model: {width: 8, heads: 2}"));
  EXPECT_EQ(config.run.name, "my.run-1");
  EXPECT_EQ(config.run.directory, "runs/my.run-1");
  EXPECT_EQ(config.model.width, 8);
}

TEST_F(LoadFile, AsksForANameWhenTheFileNameCannotBeOne) {
  const std::string path = write("my run.yaml", "");
  EXPECT_EQ(refused(path), path +
                               ": run.name: got my run (the file's name), allowed 1 to 64 of A-Z "
                               "a-z 0-9 . _ -, not starting with a point");
  EXPECT_EQ(load_config(path, {"run.name=ok"}).run.name, "ok");
}

TEST_F(LoadFile, RefusesWhatIsNoSmallFile) {
  const std::string missing = (directory_ / "none.yaml").string();
  EXPECT_EQ(refused(missing), missing + ": no such config file");
  EXPECT_EQ(
      refused(directory_.path().string()),
      directory_.path().string() +
          ": is a directory without a config.yaml, allowed a config file or a run's directory");
  const std::string large = write("large.yaml", std::string(3 << 20, '\n'));
  EXPECT_EQ(refused(large),
            large + ": is larger than 1048576 bytes, the most that a config may have");
}

TEST_F(LoadFile, NamesFileAndLine) {
  const std::string path = write("a.yaml", "model:\n  width: x\n");
  EXPECT_EQ(refused(path), path + ":2: model.width: got x, allowed integer in [4, 65536]");
}

TEST(Load, ManyKeysAreRefusedQuickly) {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += "k" + std::to_string(i) + ":\n";
  EXPECT_EQ(refusal(text).substr(0, 27), "c.yaml:1: k0: unknown key, ");
}

TEST(Load, ARunNeedsATrainingAndAValidationSet) {
  const auto said = [](const std::string& text) -> std::string {
    try {
      check_complete(parse(text), "c.yaml");
      return "accepted";
    } catch (const InvalidArgument& e) {
      return e.what();
    }
  };
  EXPECT_EQ(said(""), "c.yaml: data.train: is not set, allowed a path; a run needs it");
  EXPECT_EQ(said("data: {train: t}"),
            "c.yaml: data.valid: is not set, allowed a path; a run needs it");
  EXPECT_EQ(said("data: {train: t, valid: v}"), "accepted");
}

}  // namespace
}  // namespace fathom::launcher
