#include "core/score/segments.h"

#include <cstddef>

#include "core/base/error.h"
#include "core/score/unicode.h"

namespace fathom::score {
namespace {

void check_streams(const char* place, size_t lines,
                   std::span<const std::vector<std::string>> references) {
  require(!references.empty(), place, ": got no reference, needs one or more");
  for (size_t r = 0; r < references.size(); ++r)
    require<DataError>(references[r].size() == lines, place, ": the hypothesis has ", lines,
                       " lines, but reference ", r + 1, " has ", references[r].size(),
                       "; both need one line per sentence, separated by LF only");
  require<DataError>(lines > 0, place, ": got 0 lines, needs one or more to score");
}

std::u32string decode(const std::string& line, bool lowercase) {
  std::u32string text = decode_utf8(line);
  return lowercase ? lower_case(text) : text;
}

}  // namespace

Segments align_segments(const char* place, std::span<const std::string> hypotheses,
                        std::span<const std::vector<std::string>> references, bool lowercase) {
  check_streams(place, hypotheses.size(), references);
  Segments result{.lines = {}, .references = int64_t(references.size())};
  result.lines.reserve(hypotheses.size());
  for (size_t i = 0; i < hypotheses.size(); ++i) {
    Segment segment{.hypothesis = decode(hypotheses[i], lowercase), .references = {}};
    for (const std::vector<std::string>& stream : references)
      segment.references.push_back(decode(stream[i], lowercase));
    result.lines.push_back(std::move(segment));
  }
  return result;
}

}  // namespace fathom::score
