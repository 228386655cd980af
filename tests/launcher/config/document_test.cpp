// The page, the example configs and the commands that print them. FATHOM_SOURCE_DIR is the root of
// the repository.
#include "launcher/config/document.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "launcher/commands/config.h"
#include "launcher/config/load.h"
#include "launcher/config/schema.h"
#include "launcher/config/show.h"
#include "tests/support/expect_error.h"

namespace fathom::launcher {
namespace {

const std::filesystem::path kRoot = FATHOM_SOURCE_DIR;

std::string file_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Document, ThePageIsTheOutputOfTheCommand) {
  std::ostringstream out;
  EXPECT_EQ(config_keys(KeysForm::kMarkdown, "", out), 0);
  EXPECT_EQ(out.str(), file_text(kRoot / "docs" / "configuration.md"))
      << "regenerate it with: fathom config keys --markdown > docs/configuration.md";
}

TEST(Document, HasARowForEveryKeyInBothForms) {
  const std::string page = keys_as_markdown();
  const std::string table = "\n" + keys_as_text(keys_like(""));
  for (const Key& key : schema()) {
    EXPECT_FALSE(key.meaning.empty()) << key.name;
    EXPECT_NE(page.find("\n| `" + key.name + "` | "), page.npos) << key.name;
    EXPECT_NE(table.find("\n" + key.name + "  "), table.npos) << key.name;
  }
}

TEST(Document, SaysWhatIsNotAvailableAndWhatMayChange) {
  const std::string page = keys_as_markdown();
  EXPECT_NE(page.find("| `dist.backend` | choice | `auto` | one of auto, mpi, nccl; nccl is not "
                      "available | "),
            page.npos);
  EXPECT_NE(
      page.find("| `train.device` | choice | `auto` | one of auto, cpu, cuda, reference; cuda is "
                "not available | "),
      page.npos);
  const size_t width = page.find("| `model.width` |");
  EXPECT_EQ(page.substr(page.find('\n', width) - 9, 9), "| fixed |");
}

TEST(Schema, NamesAreUniqueAndSectionsStayTogether) {
  std::vector<std::string> names, sections;
  for (const Key& key : schema()) {
    EXPECT_EQ(std::count(names.begin(), names.end(), key.name), 0) << key.name;
    names.push_back(key.name);
    const std::string section = key.name.substr(0, key.name.find('.'));
    if (sections.empty() || sections.back() != section) {
      EXPECT_EQ(std::count(sections.begin(), sections.end(), section), 0) << section;
      sections.push_back(section);
    }
  }
}

TEST(Configs, EveryOneIsCompleteAndReadsBack) {
  int found = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kRoot / "configs")) {
    if (entry.path().extension() != ".yaml") continue;
    const Config config = load_config(entry.path());
    check_complete(config, entry.path().string());
    EXPECT_EQ(to_yaml(parse_config(to_yaml(config), "again", "again")), to_yaml(config));
    ++found;
  }
  EXPECT_GE(found, 1);
}

TEST(Configs, Iwslt14IsThePublishedSetUp) {
  const auto path = kRoot / "configs" / "iwslt14-de-en.yaml";
  const Config config = load_config(path);
  EXPECT_EQ(config.run.name, "iwslt14-de-en");
  EXPECT_EQ(config.model.topology, "residual");
  EXPECT_EQ(config.model.encoder_layers, 6);
  EXPECT_EQ(config.model.dropout, 0.3);
  EXPECT_EQ(config.model.attention_dropout, 0.1);
  EXPECT_EQ(config.model.activation_dropout, 0.1);
  EXPECT_EQ(config.optimizer.weight_decay, 1e-4);
  EXPECT_EQ(config.train.max_steps, 500'000);
  const Config deep = load_config(
      path, {"model.depth=E12D12", "model.topology=pre-ln", "optimizer.schedule=inverse-sqrt-w1"});
  EXPECT_EQ(deep.model.encoder_layers, 12);
  EXPECT_TRUE(deep.model.topology_options.empty());
  EXPECT_EQ(deep.optimizer.warmup_steps, 1);
}

TEST(ConfigCommand, ShowsTheResolvedConfigAndMarksWhatDiffers) {
  const std::string path = (kRoot / "configs" / "iwslt14-de-en.yaml").string();
  std::ostringstream out;
  EXPECT_EQ(config_show(config_source(path), {"run.seed=5"}, out), 0);
  EXPECT_EQ(out.str(), to_marked_yaml(load_config(path, {"run.seed=5"})));
  EXPECT_NE(out.str().find("\n  seed: 5  # default 1\n"), std::string::npos);
  EXPECT_THROW((void)config_show(config_source(path), {"model.width=7"}, out), InvalidArgument);
}

TEST(ConfigCommand, PrintsABlockForAKeyThatFitsATerminal) {
  std::ostringstream out;
  EXPECT_EQ(config_keys(KeysForm::kText, "", out), 0);
  std::istringstream lines(out.str());
  size_t heads = 0;
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 100u) << line;
    const std::string name = line.substr(0, line.find(' '));
    heads += size_t(!line.empty() && line[0] != ' ');
    EXPECT_TRUE(name.empty() || find_key(name) != nullptr) << line;
  }
  EXPECT_EQ(heads, schema().size());
}

TEST(ConfigCommand, PrintsTheKeysThatAPatternNames) {
  const auto names = [](const std::string& pattern) {
    std::vector<std::string> found;
    for (const Key* key : keys_like(pattern)) found.push_back(key->name);
    return found;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(names("warmup"), (Names{"optimizer.warmup_steps", "optimizer.warmup_start"}));
  EXPECT_EQ(names("batch.*"), (Names{"batch.tokens", "batch.micro_tokens", "batch.shards"}));
  EXPECT_EQ(names("*.learning_rat?"), Names{"optimizer.learning_rate"});
  EXPECT_EQ(names("").size(), schema().size());
  EXPECT_TRUE(support::throws_with<InvalidArgument>(
      "config keys: no key is like optimiser; did you mean optimizer",
      [] { (void)keys_like("optimiser"); }));
  EXPECT_TRUE(support::throws_with<InvalidArgument>("did you mean model.width",
                                                    [] { (void)keys_like("model.widht"); }));
  EXPECT_TRUE(support::throws_with<InvalidArgument>("lists them all",
                                                    [] { (void)keys_like("zzzzzzzz*"); }));
  std::ostringstream out;
  EXPECT_THROW((void)config_keys(KeysForm::kMarkdown, "batch", out), InvalidArgument);
}

TEST(ConfigCommand, MarksTheKeysThatARunNeeds) {
  const std::string text = keys_as_text(keys_like("data.train"));
  EXPECT_TRUE(text.starts_with("data.train ")) << text;
  EXPECT_EQ(text.substr(0, text.find('\n')).substr(38), "required");
  EXPECT_NE(keys_as_markdown().find("| `data.valid` | text | `none: required` |"),
            std::string::npos);
  EXPECT_EQ(keys_as_text(keys_like("data.test")).find("required"), std::string::npos);
}

TEST(ConfigCommand, PrintsJsonForScripts) {
  const auto keys = nlohmann::json::parse(keys_as_json(keys_like("")));
  ASSERT_EQ(keys.size(), schema().size());
  size_t required = 0;
  for (const auto& key : keys) {
    EXPECT_NE(find_key(key.at("name").get<std::string>()), nullptr);
    EXPECT_FALSE(key.at("meaning").get<std::string>().empty());
    required += size_t(key.at("required").get<bool>());
    EXPECT_TRUE(!key.at("required").get<bool>() || !key.contains("default"));
  }
  EXPECT_EQ(required, 2u);
  const auto device = nlohmann::json::parse(keys_as_json(keys_like("train.device")))[0];
  EXPECT_EQ(device.at("default"), "auto");
  EXPECT_EQ(device.at("choices").size(), 4u);
  EXPECT_EQ(device.at("not_available"), nlohmann::json::array({"cuda"}));
  EXPECT_EQ(device.at("resume"), "may change");
  EXPECT_EQ(nlohmann::json::parse(keys_as_json({})), nlohmann::json::array());
}

}  // namespace
}  // namespace fathom::launcher
