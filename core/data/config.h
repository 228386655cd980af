// The `data` and `batch` sections of a config. Plain data.
#pragma once

#include <cstdint>
#include <string>

namespace fathom::data {

enum class TokenizerKind { kBpe, kUnigram };
enum class OnBadLine { kFail, kSkip };

struct DataConfig {
  // A prefix: `PREFIX.SOURCE` and `PREFIX.TARGET`, plain or with `.gz` added.
  std::string train;
  std::string valid;
  std::string test;
  std::string source = "de";  // languages, and extensions of the files
  std::string target = "en";  // a decoder-only model reads the target side only
  int64_t vocabulary_size = 8000;
  TokenizerKind tokenizer = TokenizerKind::kBpe;
  double character_coverage = 0;  // 0: by the text, see Tokenizer::train
  std::string tokenizer_model;    // a SentencePiece model to use; empty: one is learned
  int64_t max_length = 256;       // tokens of a side without EOS; a longer training pair is dropped
  OnBadLine on_bad_line = OnBadLine::kFail;
  std::string directory;  // empty: `.fathom/data/<fingerprint>`
};

struct BatchConfig {
  int64_t tokens = 4096;  // per optimizer step over all ranks; a pair costs max(source, target)
  int64_t micro_tokens = 4096;  // maximum in one forward and backward
  int64_t shards = 0;  // virtual shards; 0: max(8, the power of two >= tokens/micro_tokens)
};

}  // namespace fathom::data
