#include "core/data/dataset.h"

#include <array>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>

#include "core/base/error.h"
#include "core/base/hash.h"
#include "core/data/mapped_file.h"
#include "core/data/tokenizer.h"

namespace fathom::data {
namespace {

constexpr std::array<char, 8> kMagic{'F', 'A', 'T', 'H', 'O', 'M', 'D', 'S'};
constexpr uint32_t kVersion = 1;

struct Header {
  std::array<char, 8> magic;
  uint32_t version;
  uint32_t decoder_only;
  int64_t pairs, source_tokens, target_tokens;
  std::array<char, 32> hash;  // of the whole file with this field zeroed
  std::array<char, 24> reserved;
};
static_assert(sizeof(Header) == 96 && std::is_trivially_copyable_v<Header>);

// Bytes of a file with this header; negative when the counts are impossible.
int64_t file_size(const Header& h) {
  constexpr int64_t kMost = int64_t{1} << 48;
  if (std::min({h.pairs, h.source_tokens, h.target_tokens}) < 0) return -1;
  if (std::max({h.pairs, h.source_tokens, h.target_tokens}) > kMost) return -1;
  return int64_t(sizeof(Header)) + 2 * (h.pairs + 1) * int64_t(sizeof(int64_t)) +
         (h.source_tokens + h.target_tokens) * int64_t(sizeof(int32_t));
}

// Two hashes, so that no copy of a mapped file is needed to zero the field.
std::array<char, 32> hash_of(Header header, std::string_view content) {
  header.hash = {};
  const std::string_view head(reinterpret_cast<const char*>(&header), sizeof header);
  const std::string hex = xxh3_128(xxh3_128(head) + xxh3_128(content));
  std::array<char, 32> out;
  std::copy(hex.begin(), hex.end(), out.begin());
  return out;
}

template <class T>
void append(std::string& bytes, const T& value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void append_offsets(std::string& bytes, std::span<const TokenPair> pairs,
                    std::vector<int32_t> TokenPair::*side) {
  int64_t offset = 0;
  append(bytes, offset);
  for (const TokenPair& pair : pairs) append(bytes, offset += int64_t((pair.*side).size()));
}

void append_tokens(std::string& bytes, std::span<const TokenPair> pairs,
                   std::vector<int32_t> TokenPair::*side) {
  for (const TokenPair& pair : pairs)
    bytes.append(reinterpret_cast<const char*>((pair.*side).data()),
                 (pair.*side).size() * sizeof(int32_t));
}

// Takes `count` values off the front. The image is 8-byte aligned, and so is every part of it that
// holds int64.
template <class T>
std::span<const T> take(const char*& at, int64_t count) {
  const std::span<const T> part(reinterpret_cast<const T*>(at), size_t(count));
  at += part.size_bytes();
  return part;
}

bool is_ascending(std::span<const int64_t> offsets, int64_t last) {
  return offsets.front() == 0 && offsets.back() == last &&
         std::is_sorted(offsets.begin(), offsets.end());
}

}  // namespace

Dataset Dataset::from_pairs(std::span<const TokenPair> pairs, bool decoder_only) {
  Header header{};
  header.magic = kMagic;
  header.version = kVersion;
  header.decoder_only = decoder_only ? 1 : 0;
  header.pairs = int64_t(pairs.size());
  for (const TokenPair& pair : pairs) {
    header.source_tokens += int64_t(pair.source.size());
    header.target_tokens += int64_t(pair.target.size());
  }
  require(!decoder_only || header.source_tokens == 0,
          "data set: a decoder-only data set was given ", header.source_tokens, " source tokens");

  // Heap storage of a string this long is aligned for any type.
  auto storage = std::make_shared<std::pair<std::string, std::string_view>>();
  std::string& bytes = storage->first;
  bytes.reserve(size_t(file_size(header)));
  append(bytes, header);
  append_offsets(bytes, pairs, &TokenPair::source);
  append_offsets(bytes, pairs, &TokenPair::target);
  append_tokens(bytes, pairs, &TokenPair::source);
  append_tokens(bytes, pairs, &TokenPair::target);
  header.hash = hash_of(header, std::string_view(bytes).substr(sizeof header));
  std::memcpy(bytes.data(), &header, sizeof header);
  storage->second = bytes;
  return {std::shared_ptr<const std::string_view>(storage, &storage->second), "in memory"};
}

Dataset Dataset::open(const std::filesystem::path& path) { return {map_file(path), path.string()}; }

Dataset::Dataset(std::shared_ptr<const std::string_view> image, const std::string& name)
    : image_(std::move(image)) {
  const auto refuse = [&](const auto&... parts) {
    fail<DataError>("data set: ", name, " ", parts..., "; delete it and run `fathom prepare`");
  };
  Header header{};
  if (image_->size() < sizeof header)
    refuse("is cut off: ", image_->size(), " bytes, the header alone has ", sizeof header);
  std::memcpy(&header, image_->data(), sizeof header);
  if (header.magic != kMagic) refuse("is not a data set of Fathom");
  if (header.version != kVersion)
    refuse("has format version ", header.version, ", this program reads ", kVersion);
  if (file_size(header) != int64_t(image_->size()))
    refuse("has ", image_->size(), " bytes, its header says ", file_size(header));
  const char* at = image_->data() + sizeof header;
  if (header.hash != hash_of(header, image_->substr(sizeof header)))
    refuse("is damaged: its content does not have the hash in its header");

  hash_.assign(header.hash.data(), header.hash.size());
  decoder_only_ = header.decoder_only != 0;
  source_offsets_ = take<int64_t>(at, header.pairs + 1);
  target_offsets_ = take<int64_t>(at, header.pairs + 1);
  source_tokens_ = take<int32_t>(at, header.source_tokens);
  target_tokens_ = take<int32_t>(at, header.target_tokens);
  // A hash is not a signature: a file made by hand must not lead to reads outside its pages.
  if (!is_ascending(source_offsets_, header.source_tokens) ||
      !is_ascending(target_offsets_, header.target_tokens))
    refuse("is damaged: offsets do not ascend to the number of tokens");
}

std::span<const int32_t> Dataset::source(int64_t i) const {
  require(i >= 0 && i < size(), "data set: pair ", i, " of ", size());
  const int64_t begin = source_offsets_[size_t(i)], end = source_offsets_[size_t(i) + 1];
  return source_tokens_.subspan(size_t(begin), size_t(end - begin));
}

std::span<const int32_t> Dataset::target(int64_t i) const {
  require(i >= 0 && i < size(), "data set: pair ", i, " of ", size());
  const int64_t begin = target_offsets_[size_t(i)], end = target_offsets_[size_t(i) + 1];
  return target_tokens_.subspan(size_t(begin), size_t(end - begin));
}

PairLengths Dataset::lengths() const {
  PairLengths lengths;
  lengths.source.reserve(size_t(size()));
  lengths.target.reserve(size_t(size()));
  for (int64_t i = 0; i < size(); ++i) {
    lengths.source.push_back(decoder_only_ ? 0 : source_length(i) + 1);
    lengths.target.push_back(target_length(i) + 1);
  }
  return lengths;
}

double unigram_entropy(const Dataset& dataset) {
  std::vector<int64_t> count;
  const auto add = [&](int32_t token, int64_t n) {
    require<DataError>(token >= 0, "data set: token ", token, " is negative");
    if (size_t(token) >= count.size()) count.resize(size_t(token) + 1);
    count[size_t(token)] += n;
  };
  for (int64_t i = 0; i < dataset.size(); ++i)
    for (const int32_t token : dataset.target(i)) add(token, 1);
  add(kEndOfSentence, dataset.size());

  const double total = double(dataset.target_tokens() + dataset.size());
  double entropy = 0;
  for (const int64_t n : count)
    if (n > 0) entropy -= double(n) / total * std::log(double(n) / total);
  return entropy;
}

}  // namespace fathom::data
