#include "launcher/config/corpus_paths.h"

#include <fstream>

#include <gtest/gtest.h>

#include "launcher/config/load.h"
#include "tests/support/temporary_directory.h"

namespace fathom::launcher {
namespace {

class CorpusPaths : public ::testing::Test {
 protected:
  void write(const std::string& name) {
    const auto path = directory_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << "text\n";
  }
  std::string found(const std::string& prefix) {
    data::DataConfig data;
    data.train = prefix;
    find_corpora(data, directory_ / "configs");
    return data.train;
  }
  std::string in(const std::string& name) { return (directory_ / name).string(); }

  support::TemporaryDirectory directory_;
};

TEST_F(CorpusPaths, AreLookedForBesideTheConfig) {
  write("configs/corpus/train.en");
  write("configs/zipped/train.en.gz");
  EXPECT_EQ(found("corpus/train"), in("configs/corpus/train"));
  EXPECT_EQ(found("zipped/train"), in("configs/zipped/train"));
}

TEST_F(CorpusPaths, StayWhereTheyAreFoundFirst) {
  write("elsewhere/train.en");
  write("configs/elsewhere/train.en");
  const std::string absolute = in("elsewhere/train");
  EXPECT_EQ(found(absolute), absolute);
  const std::string relative =
      std::filesystem::relative(in("elsewhere/train"), std::filesystem::current_path()).string();
  EXPECT_EQ(found(relative), relative);
}

TEST_F(CorpusPaths, ThatBeginWithATildeAreInTheHomeDirectory) {
  const char* before = std::getenv("HOME");
  const std::string saved = before != nullptr ? before : "";
  setenv("HOME", "/home/me", 1);
  Config config;
  config.run.directory = "~/runs/x";
  config.data = {.train = "~/a",
                 .valid = "~",
                 .test = "~you/a",
                 .tokenizer_model = "a/~/b",
                 .directory = "~/d"};

  expand_home(config);

  EXPECT_EQ(config.run.directory, "/home/me/runs/x");
  EXPECT_EQ(config.data.train, "/home/me/a");
  EXPECT_EQ(config.data.valid, "/home/me");
  EXPECT_EQ(config.data.test, "~you/a");
  EXPECT_EQ(config.data.tokenizer_model, "a/~/b");
  EXPECT_EQ(config.data.directory, "/home/me/d");
  setenv("HOME", (directory_ / "home").c_str(), 1);
  write("home/text/train.en");
  std::ofstream(directory_ / "c.yaml") << "data: {train: ~/text/train}\n";
  EXPECT_EQ(load_config(directory_ / "c.yaml").data.train, in("home/text/train"));
  unsetenv("HOME");
  config.data.train = "~/a";
  expand_home(config);
  EXPECT_EQ(config.data.train, "~/a");
  if (before != nullptr) setenv("HOME", saved.c_str(), 1);
}

TEST_F(CorpusPaths, ThatLeadNowhereStay) {
  EXPECT_EQ(found("none/train"), "none/train");
  EXPECT_EQ(found(""), "");
}

TEST_F(CorpusPaths, OfAConfigFileAreLookedForWhenItIsLoaded) {
  for (const std::string split : {"train", "valid", "test"}) write("configs/own/" + split + ".en");
  std::ofstream(directory_ / "configs" / "c.yaml")
      << "data: {train: own/train, valid: own/valid, test: own/test}\n";
  const data::DataConfig data = load_config(directory_ / "configs" / "c.yaml").data;
  EXPECT_EQ(data.train, in("configs/own/train"));
  EXPECT_EQ(data.valid, in("configs/own/valid"));
  EXPECT_EQ(data.test, in("configs/own/test"));
}

}  // namespace
}  // namespace fathom::launcher
