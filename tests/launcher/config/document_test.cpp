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

#include "core/base/error.h"
#include "launcher/commands/config.h"
#include "launcher/config/load.h"
#include "launcher/config/schema.h"
#include "launcher/config/show.h"

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
  EXPECT_EQ(config_keys(KeysForm::kMarkdown, out), 0);
  EXPECT_EQ(out.str(), file_text(kRoot / "docs" / "configuration.md"))
      << "regenerate it with: fathom config keys --markdown > docs/configuration.md";
}

TEST(Document, HasARowForEveryKeyInBothForms) {
  const std::string page = keys_as_markdown();
  const std::string table = "\n" + keys_as_text();
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

TEST(ConfigCommand, ShowsTheResolvedConfig) {
  const std::string path = (kRoot / "configs" / "iwslt14-de-en.yaml").string();
  std::ostringstream out;
  EXPECT_EQ(config_show(path, {"run.seed=5"}, out), 0);
  EXPECT_EQ(out.str(), to_yaml(load_config(path, {"run.seed=5"})));
}

TEST(ConfigCommand, ChecksAndRefuses) {
  const std::string path = (kRoot / "configs" / "iwslt14-de-en.yaml").string();
  std::ostringstream out;
  EXPECT_EQ(config_check(path, {}, out), 0);
  const std::string ok = path + ": ok: run iwslt14-de-en, config ";
  EXPECT_TRUE(out.str().starts_with(ok + config_hash(load_config(path)) + "\nmemory of a rank "))
      << out.str();
  EXPECT_THROW((void)config_check(path, {"data.train="}, out), InvalidArgument);
  EXPECT_THROW((void)config_show(path, {"model.width=7"}, out), InvalidArgument);
}

TEST(ConfigCommand, PrintsOneLineForAKey) {
  std::ostringstream out;
  EXPECT_EQ(config_keys(KeysForm::kText, out), 0);
  const std::string text = out.str();
  EXPECT_EQ(size_t(std::count(text.begin(), text.end(), '\n')), schema().size() + 1);
  EXPECT_TRUE(text.starts_with("key "));
}

}  // namespace
}  // namespace fathom::launcher
