#include "core/model/flops.h"

namespace fathom::model {

// Multiply-adds of a layer for S source and T target tokens of a pair, d the width, f that of the
// feed-forward block:
//   self-attention   4 d^2 n (q, k, v, o) + 2 d n^2 (scores, weighted sum)      n = S or T
//   cross-attention  2 d^2 T (q, o) + 2 d^2 S (k, v) + 2 d T S
//   feed-forward     2 d f n
double training_flops(const ModelConfig& model, const data::PairLengths& lengths,
                      std::span<const int64_t> pairs) {
  const double d = double(model.width), f = double(model.ffn_width);
  const bool has_encoder = model.kind == ModelKind::kEncoderDecoder;
  double encoder = 0, decoder = 0, output = 0;
  for (const int64_t pair : pairs) {
    const double S = has_encoder ? lengths.source[size_t(pair)] : 0;
    const double T = lengths.target[size_t(pair)];
    encoder += S * (4 * d * d + 2 * d * f) + 2 * d * S * S;
    decoder += T * (4 * d * d + 2 * d * f) + 2 * d * T * T;
    if (has_encoder) decoder += 2 * d * d * (T + S) + 2 * d * T * S;
    output += T * d * double(model.vocabulary_size);
  }
  constexpr double kPerMultiplyAdd = 2, kForwardAndBackward = 3;
  return kPerMultiplyAdd * kForwardAndBackward *
         (model.encoder_layers * encoder + model.decoder_layers * decoder + output);
}

}  // namespace fathom::model
