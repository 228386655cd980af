// A hypothesis with its references, line by line, as BLEU and chrF need them: counted, decoded, and
// optionally lower-cased. An empty reference means "this line has one reference less", as in
// sacreBLEU; a line without any is refused.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace fathom::score {

struct Segment {
  std::u32string hypothesis;
  std::vector<std::u32string> references;  // one or more
};

struct Segments {
  std::vector<Segment> lines;
  int64_t references = 0;  // per line; 0 if it varies
};

// `references` holds one vector per reference stream, each as long as `hypotheses`. `place` begins
// the messages. Throws DataError for streams of different length, no line at all, or a line whose
// references are all empty; InvalidArgument without a reference stream.
[[nodiscard]] Segments align_segments(const char* place, std::span<const std::string> hypotheses,
                                      std::span<const std::vector<std::string>> references,
                                      bool lowercase);

// "nrefs" of a signature: the number, or "var".
[[nodiscard]] std::string references_field(int64_t references);

}  // namespace fathom::score
