// Text to token ids and back, by SentencePiece. One vocabulary serves both sides. Id 0 is the
// unknown token, id 1 ends a sentence (EOS); there is no padding token, and a decoder's input
// starts with EOS. A model of other makers may have others: its pieces are then numbered anew,
// those two first, the rest in its order.
//
// In a model that is learned here text is normalised by nmt_nfkc, SentencePiece's default. There is
// no byte fallback: only characters without a piece are unknown, and the 256 byte tokens would be
// untrained.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/data/config.h"

namespace fathom::data {

inline constexpr int32_t kUnknownToken = 0;
inline constexpr int32_t kEndOfSentence = 1;

class Tokenizer {
 public:
  // Learns from `source`, then `target`; the same sentences give the same model, byte for byte.
  // `character_coverage`: the share of the text whose characters get a piece each, the most
  // frequent first. 0: 1, or kCoverageOfMany where the text has so many different characters that
  // they would take more than a quarter of the vocabulary (as in Chinese, or in text from the web).
  // DataError, naming data.vocabulary_size or data.character_coverage and the limit, when the text
  // cannot hold that many pieces or has more characters than that.
  [[nodiscard]] static Tokenizer train(std::span<const std::string> source,
                                       std::span<const std::string> target, TokenizerKind kind,
                                       int64_t vocabulary_size, double character_coverage = 0);
  static constexpr double kCoverageOfMany = 0.9995;

  // From the bytes of a model file, or the file. DataError when it is not a SentencePiece model;
  // IoError when the file cannot be read.
  [[nodiscard]] static Tokenizer from_bytes(std::string model);
  [[nodiscard]] static Tokenizer load(const std::filesystem::path& path);

  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  // Without EOS. Empty for a text of white space. Any number of threads may call these at once.
  [[nodiscard]] std::vector<int32_t> encode(std::string_view text) const;
  // Skips EOS. InvalidArgument for an id outside 0 .. size() - 1.
  [[nodiscard]] std::string decode(std::span<const int32_t> tokens) const;

  [[nodiscard]] int64_t size() const;
  [[nodiscard]] int32_t eos() const { return kEndOfSentence; }
  [[nodiscard]] int32_t unknown() const { return kUnknownToken; }
  // The piece as SentencePiece writes it, with U+2581 for a space.
  [[nodiscard]] std::string piece(int32_t token) const;
  // The model file.
  [[nodiscard]] const std::string& bytes() const;

 private:
  struct Impl;
  explicit Tokenizer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace fathom::data
