#include "launcher/commands/init.h"

#include <charconv>
#include <filesystem>
#include <ostream>
#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"
#include "launcher/config/schema.h"
#include "launcher/hold_out.h"
#include "launcher/suggest_config.h"

namespace fathom::launcher {
namespace {

namespace fs = std::filesystem;

struct NamedText {
  std::string prefix, ending;  // "corpus" and "de" of corpus.de and corpus.de.gz
};

NamedText split_name(fs::path path) {
  if (path.extension() == ".gz") path.replace_extension();
  const std::string ending = path.extension().string();
  return {path.replace_extension().string(), ending.empty() ? "" : ending.substr(1)};
}

// Where the ending is one that data.source may be.
bool is_language(const std::string& ending) {
  Config ignored;
  return find_key("data.source")->set(ignored, {.kind = YamlNode::Kind::kScalar, .text = ending});
}

// The run's name after the corpus, with what a name cannot hold left out.
std::string run_name(const std::string& prefix) {
  std::string name;
  for (const char c : fs::path(prefix).filename().string())
    if (is_language(name + c)) name += c;
  return name.empty() ? "own" : name;
}

int64_t count_of(const std::string& text) {
  int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  require(error == std::errc() && end == text.data() + text.size() && count > 0,
          "init: --hold-out: got ", printable(text),
          ", expected a number of pairs and a directory");
  return count;
}

data::Corpus read(const InitCommand& command) {
  data::CorpusFiles files{data::read_text(command.source), data::read_text(command.target)};
  data::check_line_counts(*files.source, files.target);
  return data::training_corpus(files, data::OnBadLine::kSkip);
}

std::string words_of(const InitCommand& command) {
  std::string words = "fathom init " + command.source + " " + command.target;
  if (!command.valid.empty()) words += " --valid " + command.valid;
  if (!command.hold_out.empty())
    words += " --hold-out " + command.hold_out[0] + " " + command.hold_out[1];
  return words;
}

void hold_out_to(const fs::path& directory, const data::Corpus& corpus, int64_t count,
                 Suggestion& out, std::ostream& notes) {
  const HeldOut texts = hold_out(corpus, count);
  write_held_out(texts, directory, out.source, out.target);
  out.train = (directory / "train").string();
  out.valid = (directory / "valid").string();
  out.test = (directory / "test").string();
  out.size = size_of(texts.train);
  notes << join("init: ", directory.string(), ": ", texts.train.size(), " pairs for training, ",
                texts.valid.size(), " for validation, ", texts.test.size(), " for the test");
  if (!corpus.counts.empty()) notes << "; left out: " << data::describe(corpus.counts);
  if (texts.repeated > 0) notes << join("; left out as equal to one held out: ", texts.repeated);
  notes << "\n";
}

}  // namespace

CommandOptions add_init(CommandOptions root, InitCommand& command) {
  CommandOptions own =
      root.subcommand("init", "A config to begin with for two files that translate each other");
  own.required("source", command.source, "PREFIX.SOURCE, plain or .gz");
  own.required("target", command.target, "PREFIX.TARGET, plain or .gz");
  own.option("--valid", command.valid, "PREFIX of the validation set");
  own.option("--hold-out", command.hold_out, {"N", "DIRECTORY"},
             "Write train, valid and test files into DIRECTORY, N pairs for each of the last two");
  return own;
}

int init(const InitCommand& command, std::ostream& out, std::ostream& notes) {
  const NamedText source = split_name(command.source), target = split_name(command.target);
  const bool has_languages =
      is_language(source.ending) && is_language(target.ending) && source.ending != target.ending;
  const bool is_corpus = has_languages && source.prefix == target.prefix;
  const bool holds_out = !command.hold_out.empty();
  require(is_corpus || holds_out, "init: got ", printable(command.source), " and ",
          printable(command.target),
          ", expected PREFIX.SOURCE and PREFIX.TARGET, such as corpus.de and corpus.en; rename "
          "them, or give --hold-out N DIRECTORY, which writes files with such names");
  require(!holds_out || command.valid.empty(),
          "init: --valid or --hold-out, not both: one names a validation set, one makes it");
  Suggestion suggestion{.command = printable(words_of(command)),
                        .name = run_name(source.prefix),
                        .train = source.prefix,
                        .valid = command.valid,
                        .test = {},
                        .source = has_languages ? source.ending : "source",
                        .target = has_languages ? target.ending : "target",
                        .size = {}};
  const data::Corpus corpus = read(command);
  if (!command.valid.empty())
    for (const std::string& ending : {suggestion.source, suggestion.target})
      (void)data::find_text(command.valid + "." + ending);
  if (holds_out)
    hold_out_to(command.hold_out[1], corpus, count_of(command.hold_out[0]), suggestion, notes);
  else
    suggestion.size = size_of(corpus);
  out << suggested_config(suggestion);
  return int(ExitCode::kDone);
}

}  // namespace fathom::launcher
