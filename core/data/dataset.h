// The tokens of one split, ready to train on: for every pair the tokens of source and target,
// without EOS (`pack` adds it). A file of this format is mapped read-only, so ranks of one machine
// share its pages. It contains a hash of all its contents, which is checked when it is opened.
//
// The file, native little-endian:  header of 96 bytes | source offsets, target offsets
// (int64, pairs + 1 each) | source tokens, target tokens (int32).
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fathom::data {

struct TokenPair {
  std::vector<int32_t> source;  // empty for a decoder-only model
  std::vector<int32_t> target;
};

// Tokens of every pair, EOS included. For a decoder-only model all of `source` is 0.
struct PairLengths {
  std::vector<int32_t> source, target;

  [[nodiscard]] int64_t size() const { return int64_t(target.size()); }
  // Of a pair in a batch.
  [[nodiscard]] int32_t cost(int64_t i) const {
    return std::max(source[size_t(i)], target[size_t(i)]);
  }
};

class Dataset {
 public:
  // In memory.
  [[nodiscard]] static Dataset from_pairs(std::span<const TokenPair> pairs, bool decoder_only);
  // DataError naming the file and the remedy when it is truncated, damaged, or of another version.
  [[nodiscard]] static Dataset open(const std::filesystem::path& path);

  // The bytes of its file.
  [[nodiscard]] std::string_view image() const { return *image_; }
  // Of the content: equal on two machines exactly when their data are equal.
  [[nodiscard]] const std::string& hash() const { return hash_; }

  [[nodiscard]] int64_t size() const { return int64_t(target_offsets_.size()) - 1; }
  [[nodiscard]] bool decoder_only() const { return decoder_only_; }
  // Without EOS. InvalidArgument for i outside 0 .. size() - 1.
  [[nodiscard]] std::span<const int32_t> source(int64_t i) const;
  [[nodiscard]] std::span<const int32_t> target(int64_t i) const;
  [[nodiscard]] int32_t source_length(int64_t i) const { return int32_t(source(i).size()); }
  [[nodiscard]] int32_t target_length(int64_t i) const { return int32_t(target(i).size()); }
  // Of all pairs, without EOS.
  [[nodiscard]] int64_t source_tokens() const { return int64_t(source_tokens_.size()); }
  [[nodiscard]] int64_t target_tokens() const { return int64_t(target_tokens_.size()); }
  [[nodiscard]] PairLengths lengths() const;

 private:
  Dataset(std::shared_ptr<const std::string_view> image, const std::string& name);

  std::shared_ptr<const std::string_view> image_;
  std::string hash_;
  bool decoder_only_ = false;
  std::span<const int64_t> source_offsets_, target_offsets_;
  std::span<const int32_t> source_tokens_, target_tokens_;
};

// Entropy in nats of the distribution of single target tokens, EOS of every pair included: the loss
// of a model that has learnt nothing but frequencies.
[[nodiscard]] double unigram_entropy(const Dataset& dataset);

}  // namespace fathom::data
