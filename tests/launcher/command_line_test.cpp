// The words of a command line reach their command, and those of no command are refused.
#include "launcher/command_line.h"

#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "launcher/commands/checkpoint.h"
#include "launcher/commands/config.h"
#include "launcher/commands/evaluate.h"
#include "launcher/commands/train.h"
#include "launcher/commands/translate.h"
#include "launcher/config/document.h"
#include "tests/support/expect_error.h"

namespace fathom::launcher {
namespace {

struct Answer {
  int code;
  std::string out;
};

Answer run(std::vector<std::string> words) {
  words.insert(words.begin(), "fathom");
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  testing::internal::CaptureStdout();
  const int code = run_command_line(int(arguments.size()), arguments.data());
  return {code, testing::internal::GetCapturedStdout()};
}

// A command's options alone, from the words after its name.
template <class Command>
Command parsed(CommandOptions (*add)(CommandOptions, Command&), const std::string& name,
               const std::vector<std::string>& words) {
  CommandLine line("program", "");
  Command command;
  const CommandOptions own = add(line.root(), command);
  std::vector<const char*> arguments = {"program", name.c_str()};
  for (const std::string& word : words) arguments.push_back(word.c_str());
  EXPECT_TRUE(line.parse(int(arguments.size()), arguments.data()));
  EXPECT_TRUE(own.parsed());
  return command;
}

TEST(CommandLine, NamesEveryCommandInItsHelp) {
  const Answer answer = run({"--help"});

  EXPECT_EQ(answer.code, 0);
  for (const char* name : {"train", "prepare", "translate", "evaluate", "score", "probe", "config",
                           "checkpoint", "metrics", "runs", "history", "init"}) {
    EXPECT_NE(answer.out.find(join("\n  ", name, " ")), std::string::npos) << name;
    EXPECT_EQ(run({name, "--help"}).code, 0);
  }
}

TEST(CommandLine, CallsTheCommandThatItNames) {
  std::ostringstream text, markdown;
  (void)config_keys(KeysForm::kText, "", text);
  (void)config_keys(KeysForm::kMarkdown, "", markdown);

  EXPECT_EQ(run({"config", "keys"}).out, text.str());
  EXPECT_EQ(run({"config", "keys", "--markdown"}).out, markdown.str());
  EXPECT_EQ(run({"config", "keys", "batch.tok"}).out, keys_as_text({find_key("batch.tokens")}));
  EXPECT_EQ(run({"config", "keys", "batch.tok", "--json"}).out,
            keys_as_json({find_key("batch.tokens")}));
}

TEST(CommandLine, RefusesWhatNamesNoCommand) {
  const auto refuses = [](const char* text, const std::vector<std::string>& words) {
    EXPECT_TRUE(support::throws_with<InvalidArgument>(text, [&] { (void)run(words); }));
    (void)testing::internal::GetCapturedStdout();
  };

  refuses("a subcommand is required; see --help", {});
  refuses("a subcommand is required; see --help", {"config"});
  refuses("a subcommand is required; see --help", {"checkpoint"});
  refuses("not expected: trian; see --help", {"trian"});
  refuses("arguments were not expected: 5 --beam 7; see --help",
          {"evaluate", "run", "5", "--beam", "7"});
  refuses("config is required; see --help", {"train"});
  refuses("checkpoint diff: needs two paths, got 3", {"checkpoint", "diff", "a", "b", "c"});
}

// As of a variable that is not set; a new run must not begin because of it.
TEST(CommandLine, RefusesAnEmptyValueOfAnOption) {
  for (const char* option : {"--init-from", "--resume", "--allow-change"})
    EXPECT_TRUE(support::throws_with<InvalidArgument>("is empty", [&] {
      (void)parsed(add_train, "train", {"c.yaml", option, ""});
    })) << option;
}

TEST(CommandLine, TakesWordsForHelpAndVersion) {
  EXPECT_EQ(run({"help"}).out, run({"--help"}).out);
  EXPECT_EQ(run({"help", "train"}).out, run({"train", "--help"}).out);
  EXPECT_EQ(run({"help", "config", "keys"}).out, run({"config", "keys", "--help"}).out);
  const std::string version = run({"--version"}).out;
  EXPECT_EQ(run({"version"}).out, version);
  EXPECT_EQ(run({"-V"}).out, version);
  for (const char* library : {"MPI ", "HDF5 1", "SentencePiece 0", "prometheus-cpp 1"})
    EXPECT_NE(version.find(library), std::string::npos) << library << version;
}

TEST(CommandLine, FillsTheOptionsOfACommandOverItsDefaults) {
  const TrainCommand train =
      parsed(add_train, "train",
             {"c.yaml", "a=1", "--resume", "never", "b=2", "--profile", "--init-from", "x"});
  EXPECT_EQ(train.config, "c.yaml");
  EXPECT_EQ(train.overrides, (std::vector<std::string>{"a=1", "b=2"}));
  EXPECT_EQ(train.options.resume, "never");
  EXPECT_EQ(train.options.init_from, "x");
  EXPECT_TRUE(train.options.profile);
  EXPECT_EQ(parsed(add_train, "train", {"c.yaml"}).options.resume, "auto");

  const TranslateCommand translate =
      parsed(add_translate, "translate", {"run", "--batch-tokens", "7"});
  EXPECT_EQ(translate.model, "run");
  EXPECT_EQ(translate.batch_tokens, 7);
  EXPECT_EQ(parsed(add_translate, "translate", {"run"}).batch_tokens, 2048);

  EXPECT_EQ(parsed(add_evaluate, "evaluate", {"run", "--split", "valid"}).split, "valid");
  EXPECT_TRUE(
      support::throws_with<InvalidArgument>("--threads: Value 1025 not in range 0 to 1024", [] {
        (void)parsed(add_evaluate, "evaluate", {"run", "--threads", "1025"});
      }));

  EXPECT_TRUE(support::throws_with<InvalidArgument>("--sentences: ", [] {
    (void)parsed(add_evaluate, "evaluate", {"run", "--sentences", "-1"});
  }));

  const CheckpointCommand diff = parsed(add_checkpoint, "checkpoint", {"diff", "a", "b"});
  EXPECT_EQ(diff.action, CheckpointCommand::Action::kDiff);
  EXPECT_EQ(diff.paths, (std::vector<std::string>{"a", "b"}));
}

}  // namespace
}  // namespace fathom::launcher
