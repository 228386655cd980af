// A hypothesis with its references, line by line, as BLEU and chrF need them: counted, decoded, and
// optionally lower-cased. An empty line of a file is a reference of no words, as sacreBLEU 2.6.0
// reads it.
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
  int64_t references = 0;  // per line
};

// `references` holds one vector per reference stream, each as long as `hypotheses`. `place` begins
// the messages. Throws DataError for streams of different length or no line at all; InvalidArgument
// without a reference stream.
[[nodiscard]] Segments align_segments(const char* place, std::span<const std::string> hypotheses,
                                      std::span<const std::vector<std::string>> references,
                                      bool lowercase);

}  // namespace fathom::score
