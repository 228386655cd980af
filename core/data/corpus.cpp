#include "core/data/corpus.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "core/base/error.h"

namespace fathom::data {
namespace {

std::string remedy(LineFault fault) {
  const std::string_view remedy =
      fault == LineFault::kCarriageReturn ? "convert the file (sed -i 's/\\r$//' FILE)"
      : fault == LineFault::kInvalidUtf8  ? "convert the file (iconv -t UTF-8)"
                                          : "fix the line";
  return join("; ", remedy, " or set data.on_bad_line: skip");
}

// What kFail refuses. Over-long lines are common in web corpora and have their own rule.
bool is_bad(LineFault fault) { return fault != LineFault::kNone && fault != LineFault::kTooLong; }

void refuse_bad_lines_of(const CorpusFiles& files) {
  if (files.source) refuse_bad_lines(*files.source);
  refuse_bad_lines(files.target);
}

void note_byte_order_marks(const CorpusFiles& files, std::vector<std::string>& notes) {
  for (const Text* text : {files.source ? &*files.source : nullptr, &files.target})
    if (text != nullptr && text->had_byte_order_mark())
      notes.push_back(join(text->name(), ": took off a byte order mark at the start"));
}

// Why the pair cannot be trained on; empty when it can.
std::string_view reason_to_drop(const CorpusFiles& files, int64_t i) {
  if (files.source && files.source->fault(i) != LineFault::kNone)
    return reason(files.source->fault(i));
  if (files.target.fault(i) != LineFault::kNone) return reason(files.target.fault(i));
  if (files.source && is_blank(files.source->line(i))) return "empty_source";
  if (is_blank(files.target.line(i))) return "empty_target";
  return {};
}

std::string names(const CorpusFiles& files) {
  return files.source ? join(files.source->name(), " and ", files.target.name())
                      : files.target.name();
}

}  // namespace

void check_line_counts(const Text& source, const Text& target) {
  const int64_t n = source.size(), m = target.size();
  require<DataError>(n == m, "corpus: ", source.name(), " has ", n, " lines, but ", target.name(),
                     " has ", m, "; line ", std::min(n, m) + 1,
                     " has no translation: line n of one file must translate line n of the other");
}

void refuse_bad_lines(const Text& text) {
  int64_t first = -1, count = 0;
  for (int64_t i = 0; i < text.size(); ++i) {
    if (!is_bad(text.fault(i))) continue;
    if (count++ == 0) first = i;
  }
  if (count == 0) return;
  fail<DataError>(text.describe_fault(first),
                  count > 1 ? join(", the first of ", count, " bad lines") : "",
                  remedy(text.fault(first)));
}

CorpusFiles read_corpus(const std::string& prefix, const std::string& source,
                        const std::string& target, bool decoder_only) {
  return read_files(decoder_only ? "" : prefix + "." + source, prefix + "." + target);
}

CorpusFiles read_files(const std::string& source, const std::string& target) {
  if (source.empty()) return {std::nullopt, read_text(target)};
  CorpusFiles files{read_text(source), read_text(target)};
  check_line_counts(*files.source, files.target);
  return files;
}

Corpus training_corpus(const CorpusFiles& files, OnBadLine on_bad_line) {
  if (on_bad_line == OnBadLine::kFail) refuse_bad_lines_of(files);
  Corpus corpus;
  note_byte_order_marks(files, corpus.notes);
  const int64_t lines = files.target.size();
  for (int64_t i = 0; i < lines; ++i) {
    const std::string_view why = reason_to_drop(files, i);
    if (!why.empty()) {
      ++corpus.counts[std::string(why)];
      continue;
    }
    if (files.source) corpus.source.emplace_back(files.source->line(i));
    corpus.target.emplace_back(files.target.line(i));
  }
  require<DataError>(lines > 0, "corpus: ", names(files), ": no lines; is data.train right?");
  require<DataError>(corpus.size() > 0, "corpus: ", names(files), ": all ", lines,
                     " pairs were dropped (", describe(corpus.counts), "); nothing to train on");
  return corpus;
}

Corpus evaluation_corpus(const CorpusFiles& files, OnBadLine on_bad_line) {
  if (on_bad_line == OnBadLine::kFail) refuse_bad_lines_of(files);
  Corpus corpus;
  note_byte_order_marks(files, corpus.notes);
  const auto usable = [&](const Text& text, int64_t i) {
    return text.fault(i) == LineFault::kNone ? std::string(text.line(i)) : repaired(text.line(i));
  };
  for (int64_t i = 0; i < files.target.size(); ++i) {
    const LineFault of_source = files.source ? files.source->fault(i) : LineFault::kNone;
    const LineFault fault = of_source != LineFault::kNone ? of_source : files.target.fault(i);
    if (fault != LineFault::kNone) ++corpus.counts[std::string(reason(fault))];
    if (files.source) corpus.source.push_back(usable(*files.source, i));
    corpus.target.push_back(usable(files.target, i));
  }
  require<DataError>(corpus.size() > 0, "corpus: ", names(files), ": no lines to evaluate on");
  if (!corpus.counts.empty())
    corpus.notes.push_back(join(names(files), ": repaired bad lines, kept all ", corpus.size(),
                                " (", describe(corpus.counts), ")"));
  return corpus;
}

Corpus load_parallel(const std::string& prefix, const std::string& source,
                     const std::string& target, OnBadLine on_bad_line) {
  return training_corpus(read_corpus(prefix, source, target, false), on_bad_line);
}

std::string describe(const DropCounts& counts) {
  std::string out;
  for (const auto& [why, n] : counts) out += join(out.empty() ? "" : ", ", why, " ", n);
  return out.empty() ? "none" : out;
}

}  // namespace fathom::data
