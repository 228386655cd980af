#include "launcher/commands/score.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <iterator>

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/data/lines.h"
#include "core/score/bleu.h"
#include "core/score/chrf.h"

namespace fathom::launcher {
namespace {

using Lines = std::vector<std::string>;

Lines lines_of(const data::Text& text) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";  // a character to sacreBLEU
  Lines lines;
  for (int64_t i = 0; i < text.size(); ++i) {
    const std::string_view line = text.line(i);
    const size_t invalid = find_invalid_utf8(line);
    require<DataError>(invalid == line.npos, text.name(), ":", i + 1, ": byte ", invalid + 1,
                       " of the line is not UTF-8; convert the file first");
    lines.emplace_back(line);
  }
  if (text.had_byte_order_mark() && !lines.empty()) lines[0].insert(0, kByteOrderMark);
  return lines;
}

Lines read_lines(const std::string& path) {
  if (path != "-") {
    require<IoError>(std::filesystem::exists(path), path, ": cannot open: ", std::strerror(ENOENT));
    require<IoError>(!std::filesystem::is_directory(path), path,
                     ": is a directory, expected a text file with one sentence a line");
    return lines_of(data::read_text(path));
  }
  std::string bytes{std::istreambuf_iterator<char>(std::cin), {}};
  require<IoError>(!std::cin.bad(), "standard input: cannot be read");
  return lines_of(data::Text("standard input", std::move(bytes)));
}

void check_inputs(const ScoreCommand& command) {
  require(!command.references.empty(), "score: got no reference file, needs one or more");
  const auto from_stdin =
      std::count(command.references.begin(), command.references.end(), std::string("-")) +
      (command.hypothesis == "-" ? 1 : 0);
  require(from_stdin <= 1, "score: ", from_stdin,
          " inputs are '-', but standard input can be read once; name a file");
}

// The count error names the files, which the scorer does not know.
void check_counts(const ScoreCommand& command, const Lines& hypotheses,
                  const std::vector<Lines>& references) {
  for (std::size_t r = 0; r < references.size(); ++r)
    require<DataError>(references[r].size() == hypotheses.size(), "score: ", command.hypothesis,
                       " has ", hypotheses.size(), " lines, but ", command.references[r], " has ",
                       references[r].size(), "; both need one line per sentence");
}

nlohmann::ordered_json report(const Lines& hypotheses, const std::vector<Lines>& references,
                              const score::BleuOptions& options) {
  const score::BleuScore bleu = score::corpus_bleu(hypotheses, references, options);
  nlohmann::ordered_json json{
      {"bleu", bleu.score},
      {"bleu_line", score::to_line(bleu)},
      {"signature", score::signature(bleu, options)},
      {"precisions", bleu.precisions},
      {"brevity_penalty", bleu.brevity_penalty},
      {"hypothesis_length", bleu.hypothesis_length},
      {"reference_length", bleu.reference_length},
  };
  const auto add_chrf = [&](const std::string& name, score::ChrfOptions chrf_options) {
    chrf_options.lowercase = options.lowercase;
    const score::ChrfScore chrf = score::corpus_chrf(hypotheses, references, chrf_options);
    json[name] = chrf.score;
    json[name + "_line"] = score::to_line(chrf, chrf_options);
    json[name + "_signature"] = score::signature(chrf, chrf_options);
  };
  add_chrf("chrf2", score::kChrf2);
  add_chrf("chrf2++", score::kChrf2PlusPlus);
  json["lines"] = hypotheses.size();
  return json;
}

}  // namespace

CommandOptions add_score(CommandOptions root, ScoreCommand& command) {
  CommandOptions own =
      root.subcommand("score", "BLEU and chrF of a file, as sacreBLEU counts them");
  own.required("hypothesis", command.hypothesis, "A file, plain or .gz, or - for standard input");
  own.required("references", command.references, "One file or more");
  own.flag("--lowercase", command.lowercase, "Compare in lower case");
  own.option("--tokenize", command.tokenizer, "13a, intl, char, none");
  own.option("--smooth", command.smoothing, "exp, floor, add-k, none");
  return own;
}

int score(const ScoreCommand& command) {
  const score::BleuOptions options{.tokenizer = score::parse_bleu_tokenizer(command.tokenizer),
                                   .smoothing = score::parse_bleu_smoothing(command.smoothing),
                                   .lowercase = command.lowercase};
  check_inputs(command);
  const Lines hypotheses = read_lines(command.hypothesis);
  std::vector<Lines> references;
  for (const std::string& path : command.references) references.push_back(read_lines(path));
  check_counts(command, hypotheses, references);

  std::cout << report(hypotheses, references, options).dump(2) << std::endl;
  require<IoError>(std::cout.good(), "score: standard output cannot be written");
  return static_cast<int>(ExitCode::kDone);
}

}  // namespace fathom::launcher
