#include "core/data/tokenizer.h"

#include <algorithm>
#include <cstdlib>
#include <regex>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/text.h"

namespace fathom::data {
namespace {

// SentencePiece stores positions in a word in 16 bits and overruns longer words; and normalisation
// can turn one character of 3 bytes into 18 characters.
constexpr size_t kLongestWordBytes = 4000;

bool has_long_word(std::string_view text) {
  size_t begin = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] != ' ' && text[i] != '\t') continue;
    if (i - begin > kLongestWordBytes) return true;
    begin = i + 1;
  }
  return false;
}

// Whether there is anything but white space and control characters; SentencePiece ends the process
// when there is not.
bool has_visible(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) { return uint8_t(c) > ' ' && c != 127; });
}

// U+2585 is SentencePiece's own: it leaves out sentences that have it.
constexpr std::string_view kReserved = "\xE2\x96\x85";

std::string without_reserved(std::string text) {
  for (size_t at = 0; (at = text.find(kReserved, at)) != std::string::npos;)
    text.replace(at, kReserved.size(), " ");
  return text;
}

// The sentences of both sides that can be learnt from.
class Sentences final : public sentencepiece::SentenceIterator {
 public:
  Sentences(std::span<const std::string> first, std::span<const std::string> second)
      : first_(first), second_(second) {
    skip();
  }
  bool done() const override { return next_ == first_.size() + second_.size(); }
  void Next() override {
    ++next_;
    skip();
  }
  const std::string& value() const override { return value_; }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  void skip() {
    for (; !done(); ++next_) {
      value_ =
          without_reserved(next_ < first_.size() ? first_[next_] : second_[next_ - first_.size()]);
      if (!has_long_word(value_) && has_visible(value_)) return;
    }
  }

  std::span<const std::string> first_, second_;
  size_t next_ = 0;
  std::string value_;
};

int64_t distinct_characters(std::span<const std::string> first,
                            std::span<const std::string> second) {
  std::unordered_set<std::string_view> characters;
  for (const std::span<const std::string> side : {first, second})
    for (const std::string& text : side)
      for (size_t at = 0; at < text.size();) {
        const size_t bytes = std::max<size_t>(1, utf8_length(text, at));
        characters.insert(std::string_view(text).substr(at, bytes));
        at += bytes;
      }
  return int64_t(characters.size());
}

// What SentencePiece's message means in our keys. It prints a source location first: "Internal:
// trainer.cc(580) [...] Vocabulary size ...".
std::string cause_of(const sentencepiece::util::Status& status, int64_t vocabulary_size,
                     double coverage) {
  const std::string text = status.ToString();
  std::smatch found;
  if (std::regex_search(text, found, std::regex(R"(required_chars\. \d+ vs (\d+))")))
    return join("it must be at least ", found[1].str(), ", for the characters of the text ",
                "at data.character_coverage ", coverage, "; raise the former, or lower the latter");
  if (std::regex_search(text, found, std::regex(R"(value <= (\d+))")))
    return join("the text has pieces for ", found[1].str(), " at most; set it to that or less");
  return join("learning ", vocabulary_size, " pieces failed: ", text);
}

}  // namespace

struct Tokenizer::Impl {
  sentencepiece::SentencePieceProcessor processor;
  std::string bytes;
  // Where the model numbers its pieces otherwise, else empty. kNoPiece: it has no EOS.
  static constexpr int kNoPiece = -1;
  std::vector<int> piece_of;      // by our token
  std::vector<int32_t> token_of;  // by its piece

  void number_anew() {
    const int unknown = processor.unk_id(), eos = processor.eos_id();
    if (unknown == kUnknownToken && eos == kEndOfSentence) return;
    piece_of = {unknown, eos >= 0 ? eos : kNoPiece};
    for (int piece = 0; piece < processor.GetPieceSize(); ++piece)
      if (piece != unknown && piece != eos) piece_of.push_back(piece);
    token_of.resize(size_t(processor.GetPieceSize()));
    for (size_t token = 0; token < piece_of.size(); ++token)
      if (piece_of[token] != kNoPiece) token_of[size_t(piece_of[token])] = int32_t(token);
  }
  [[nodiscard]] int piece(int32_t token) const {
    return piece_of.empty() ? token : piece_of[size_t(token)];
  }
};

Tokenizer::Tokenizer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

Tokenizer Tokenizer::train(std::span<const std::string> source, std::span<const std::string> target,
                           TokenizerKind kind, int64_t vocabulary_size, double character_coverage) {
  require<DataError>(!source.empty() || !target.empty(), "tokenizer: no sentence to learn from");
  require(vocabulary_size > 2 && vocabulary_size <= 1'000'000,
          "tokenizer: data.vocabulary_size is ", vocabulary_size,
          ", allowed are 3 to 1000000 (two are special)");
  require(character_coverage >= 0 && character_coverage <= 1,
          "tokenizer: data.character_coverage is ", character_coverage, ", allowed are 0 to 1");
  const bool has_many = 4 * distinct_characters(source, target) > vocabulary_size;
  const double coverage = character_coverage > 0 ? character_coverage
                          : has_many             ? kCoverageOfMany
                                                 : 1;
  // One thread: the unigram trainer adds up expectations per thread, so the result depends on their
  // number. No sampling of sentences: that is random.
  const std::unordered_map<std::string, std::string> settings{
      {"model_type", kind == TokenizerKind::kBpe ? "bpe" : "unigram"},
      {"vocab_size", std::to_string(vocabulary_size)},
      {"character_coverage", join(coverage)},
      {"byte_fallback", "false"},
      {"unk_id", std::to_string(kUnknownToken)},
      {"eos_id", std::to_string(kEndOfSentence)},
      {"bos_id", "-1"},
      {"pad_id", "-1"},
      {"num_threads", "1"},
      {"input_sentence_size", "0"},
      {"shuffle_input_sentence", "false"},
      {"max_sentence_length", std::to_string(int64_t{1} << 20)},
      {"minloglevel", "2"}};
  Sentences sentences(source, target);
  require<DataError>(!sentences.done(), "tokenizer: none of ", source.size() + target.size(),
                     " sentences can be learnt from: they have no visible characters, or words of "
                     "more than ",
                     kLongestWordBytes, " bytes");
  std::string model;
  const auto status = sentencepiece::SentencePieceTrainer::Train(settings, &sentences, &model);
  if (!status.ok())
    fail<DataError>("tokenizer: data.vocabulary_size is ", vocabulary_size, ": ",
                    cause_of(status, vocabulary_size, coverage));
  return from_bytes(std::move(model));
}

Tokenizer Tokenizer::from_bytes(std::string model) {
  auto impl = std::make_unique<Impl>();
  const auto status = impl->processor.LoadFromSerializedProto(model);
  require<DataError>(status.ok(), "tokenizer: ", model.size(),
                     " bytes are not a SentencePiece model: ", status.ToString());
  impl->number_anew();
  impl->bytes = std::move(model);
  return Tokenizer(std::move(impl));
}

Tokenizer Tokenizer::load(const std::filesystem::path& path) {
  try {
    return from_bytes(read_file("data", path));
  } catch (const DataError& e) {
    fail<DataError>(path.string(), ": ", e.what());
  }
}

std::vector<int32_t> Tokenizer::encode(std::string_view text) const {
  std::vector<int> ids;
  const auto status = impl_->processor.Encode({text.data(), text.size()}, &ids);
  require<DataError>(status.ok(), "tokenizer: cannot encode: ", status.ToString());
  if (!impl_->token_of.empty())
    for (int& id : ids) id = impl_->token_of[size_t(id)];
  return ids;
}

std::string Tokenizer::decode(std::span<const int32_t> tokens) const {
  std::vector<int> ids;
  ids.reserve(tokens.size());
  for (const int32_t token : tokens) {
    require(token >= 0 && token < size(), "tokenizer: token ", token, " is not in 0 .. ",
            size() - 1);
    if (token != kEndOfSentence) ids.push_back(impl_->piece(token));
  }
  std::string text;
  const auto status = impl_->processor.Decode(ids, &text);
  require<DataError>(status.ok(), "tokenizer: cannot decode: ", status.ToString());
  return text;
}

int64_t Tokenizer::size() const {
  return impl_->piece_of.empty() ? impl_->processor.GetPieceSize()
                                 : int64_t(impl_->piece_of.size());
}

std::string Tokenizer::piece(int32_t token) const {
  require(token >= 0 && token < size(), "tokenizer: token ", token, " is not in 0 .. ", size() - 1);
  const int piece = impl_->piece(token);
  return piece == Impl::kNoPiece ? "</s>" : impl_->processor.IdToPiece(piece);
}

const std::string& Tokenizer::bytes() const { return impl_->bytes; }

}  // namespace fathom::data
