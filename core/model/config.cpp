#include "core/model/config.h"

#include "core/base/error.h"

namespace fathom::model {

std::vector<Contradiction> contradictions(const ModelConfig& model) {
  std::vector<Contradiction> found;
  const bool is_decoder = model.kind == ModelKind::kDecoder;
  if (is_decoder && model.encoder_layers != 0)
    found.push_back({.key = "model.encoder_layers",
                     .value = model.encoder_layers,
                     .allowed = "0 in a decoder"});
  if (!is_decoder && model.encoder_layers == 0)
    found.push_back(
        {.key = "model.encoder_layers",
         .value = 0,
         .allowed = "at least 1 in an encoder-decoder; for a decoder set model.kind: decoder"});
  if (model.width % 2 != 0)
    found.push_back({.key = "model.width",
                     .value = model.width,
                     .allowed = "an even number: half of the positions are sines"});
  if (model.width % model.heads != 0)
    found.push_back({.key = "model.heads",
                     .value = model.heads,
                     .allowed = join("a divisor of model.width (", model.width, ")"),
                     .other = "model.width",
                     .other_allowed = join("a multiple of model.heads (", model.heads, ")")});
  return found;
}

}  // namespace fathom::model
