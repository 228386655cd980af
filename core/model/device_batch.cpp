#include "core/model/device_batch.h"

namespace fathom::model {
namespace {

// Gathers arrays for one upload: parts are added one by one and become views of one tensor.
class Upload {
 public:
  void add(std::span<const int32_t> part) {
    values_.insert(values_.end(), part.begin(), part.end());
  }
  void send(Tape& tape) { all_ = tape.upload(values_); }
  // The next part, in the order of add().
  [[nodiscard]] Tensor take(size_t count) {
    Tensor part = all_.columns(at_, int64_t(count));
    at_ += int64_t(count);
    return part;
  }

 private:
  std::vector<int32_t> values_;
  Tensor all_;
  int64_t at_ = 0;
};

void check_tokens(std::span<const int32_t> tokens, int64_t vocabulary_size) {
  for (const int32_t t : tokens)
    require(t >= 0 && t < vocabulary_size, "batch: token ", t, " is outside the vocabulary of ",
            vocabulary_size);
}

const int32_t* address(const Tensor& t) { return static_cast<const int32_t*>(t.address()); }

}  // namespace

kernels::Segments segments_of(const Tensor& begin, const Tensor& length, int64_t total,
                              int64_t longest) {
  return {.begin = address(begin),
          .length = address(length),
          .count = length.numel(),
          .total = total,
          .longest = longest};
}

kernels::RowIds PackedRows::ids() const {
  return {.sentence = address(sentence), .position = address(position)};
}

kernels::Segments PackedRows::segments() const {
  return segments_of(begin, length, tokens.numel(), longest);
}

DeviceBatch upload(Tape& tape, const data::PackedBatch& batch, int64_t vocabulary_size) {
  check_tokens(batch.source, vocabulary_size);
  check_tokens(batch.decoder_input, vocabulary_size);
  check_tokens(batch.target, vocabulary_size);
  const bool has_source = batch.source_segments.count() > 0;
  Upload parts;
  if (has_source)
    for (const auto* part : {&batch.source, &batch.source_position, &batch.source_sentence,
                             &batch.source_segments.begin, &batch.source_segments.length})
      parts.add(*part);
  for (const auto* part :
       {&batch.decoder_input, &batch.target_position, &batch.target_sentence,
        &batch.target_segments.begin, &batch.target_segments.length, &batch.target})
    parts.add(*part);
  parts.send(tape);

  const auto rows = [&parts](const data::Segments& segments) {
    const size_t T = size_t(segments.total), S = size_t(segments.count());
    PackedRows out;
    out.tokens = parts.take(T);
    out.position = parts.take(T);
    out.sentence = parts.take(T);
    out.begin = parts.take(S);
    out.length = parts.take(S);
    out.longest = segments.longest();
    return out;
  };
  DeviceBatch out;
  if (has_source) out.source = rows(batch.source_segments);
  out.target = rows(batch.target_segments);
  out.targets = parts.take(batch.target.size());
  return out;
}

PackedRows upload_rows(Tape& tape, std::span<const int32_t> tokens,
                       std::span<const int32_t> position, const data::Segments& segments,
                       int64_t vocabulary_size) {
  check_tokens(tokens, vocabulary_size);
  Upload parts;
  parts.add(tokens);
  parts.add(position);
  parts.add(segments.begin);
  parts.add(segments.length);
  parts.send(tape);
  PackedRows out;
  out.tokens = parts.take(tokens.size());
  out.position = parts.take(position.size());
  out.begin = parts.take(segments.begin.size());
  out.length = parts.take(segments.length.size());
  out.longest = segments.longest();
  return out;
}

}  // namespace fathom::model
