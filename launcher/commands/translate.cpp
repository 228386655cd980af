#include "launcher/commands/translate.h"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <vector>

#include <unistd.h>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/text.h"
#include "core/data/lines.h"
#include "core/decode/greedy.h"
#include "core/decode/translate.h"
#include "launcher/model_source.h"
#include "monitoring/log.h"
#include "monitoring/progress.h"

namespace fathom::launcher {
namespace {

// Most lines that are read, sorted by length and written together. It bounds the memory, and a
// reader of the output sees it grow; what a line becomes does not depend on it.
constexpr size_t kLinesAtOnce = 2000;

// Without waiting for it.
bool has_more(std::istream& in) { return in.rdbuf()->in_avail() > 0; }

// A text that is translated.
struct Source {
  std::string name;
  std::istream& in;
};

// The next lines, none at the end. It waits for the first alone: who writes a line and waits for
// its translation gets it. `before` lines were read already.
std::vector<decode::Tokens> read_sources(const Source& source, size_t before,
                                         const LoadedModel& model, const monitoring::Log& log) {
  const size_t longest = size_t(model.config.data.max_length);
  std::vector<decode::Tokens> sources;
  const auto reads_on = [&] {
    return sources.empty() || (sources.size() < kLinesAtOnce && has_more(source.in));
  };
  for (std::string line; reads_on() && std::getline(source.in, line);) {
    const std::string place = join(source.name, ": line ", before + sources.size() + 1, ": ");
    const bool is_first = before + sources.size() == 0;
    const std::string foreign = is_first ? data::describe_foreign_bytes(line) : "";
    require<DataError>(foreign.empty(), source.name, " ", foreign);
    if (find_invalid_utf8(line) != line.npos)
      log.warn(place + "is not UTF-8; each byte that is not becomes U+FFFD");
    sources.push_back(model.tokenizer->encode(data::repaired(line)));
    if (sources.back().size() <= longest) continue;
    log.warn(join(place, sources.back().size(), " tokens, cut to ", longest, " (data.max_length)"));
    sources.back().resize(longest);
  }
  require<IoError>(!source.in.bad(), source.name, ": cannot be read; is it a directory?");
  return sources;
}

// Before the long work.
void check_files(const std::vector<std::string>& files, const std::string& output) {
  std::error_code ignored;
  for (const std::string& file : files)
    require(file == "-" || !std::filesystem::equivalent(data::find_text(file), output, ignored),
            "--output: ", output, " is the text to translate; name another file");
}

// Lines of one source after the other.
class Translation {
 public:
  Translation(const TranslateCommand& command, LoadedModel& model, std::ostream& out)
      : command_(command),
        model_(model),
        out_(out),
        log_({.level = monitoring::LogLevel::kInfo}),
        progress_(std::cerr, monitoring::stderr_progress("translate", 0)) {
    log_.before_line([this] { progress_.clear(); });
  }

  void run(const Source& source) {
    const bool is_typed = &source.in == &std::cin && isatty(STDIN_FILENO) != 0;
    for (size_t done = 0;;) {
      const std::vector<decode::Tokens> sources = read_sources(source, done, model_, log_);
      if (sources.empty()) break;
      for (const decode::Tokens& target :
           decode::translate(*model_.model, *model_.device, decode::Greedy(), sources,
                             {.batch_tokens = command_.batch_tokens}))
        out_ << model_.tokenizer->decode(target) << '\n';
      out_.flush();
      require<IoError>(bool(out_),
                       "translate: ", command_.output.empty() ? "standard output" : command_.output,
                       " cannot be written; is the disk full?");
      done += sources.size();
      total_ += int64_t(sources.size());
      if (!is_typed) progress_.update(total_, "sentences");
    }
  }

 private:
  const TranslateCommand& command_;
  LoadedModel& model_;
  std::ostream& out_;
  monitoring::Log log_;
  monitoring::Progress progress_;
  int64_t total_ = 0;
};

}  // namespace

CommandOptions add_translate(CommandOptions root, TranslateCommand& command) {
  CommandOptions own = root.subcommand("translate", "Translate line by line (greedy)");
  own.required("model", command.model, "A run directory or a checkpoint");
  own.optional("files", command.files, "Texts, plain or .gz; none, or -: standard input");
  own.option("--output", command.output, "A file to write instead of standard output");
  own.option("--batch-tokens", command.batch_tokens, "Source tokens decoded at once");
  own.threads(command.threads);
  return own;
}

int translate(const TranslateCommand& command, std::istream& in, std::ostream& out) {
  require(command.batch_tokens >= 1, "--batch-tokens: got ", command.batch_tokens,
          ", expected at least 1");
  LoadedModel loaded = load_model(command.model, command.threads);
  require(loaded.config.model.kind == model::ModelKind::kEncoderDecoder, command.model,
          ": a decoder-only model does not translate");
  std::vector<std::string> files = command.files;
  if (files.empty()) files = {"-"};
  check_files(files, command.output);
  if (&in == &std::cin) std::ios::sync_with_stdio(false);  // it then knows what waits to be read
  std::ofstream file;
  if (!command.output.empty()) {
    file.open(command.output, std::ios::binary);
    if (!file) fail_io("--output", "writing", command.output, errno);
  }
  Translation translation(command, loaded, command.output.empty() ? out : file);
  for (const std::string& name : files) {
    if (name == "-") {
      translation.run({.name = "standard input", .in = in});
    } else {
      std::istringstream text{std::string(data::read_text(name).bytes())};
      translation.run({.name = name, .in = text});
    }
  }
  return 0;
}

}  // namespace fathom::launcher
