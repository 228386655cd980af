#include "launcher/train/validation_figures.h"

#include <cmath>

namespace fathom::launcher {

void append_figures(monitoring::Object& fields, const Validation& v) {
  fields.push_back({"validation_loss", v.nll});
  fields.push_back({"perplexity", std::exp(v.nll)});
  if (std::isfinite(v.source_gain)) fields.push_back({"source_gain", v.source_gain});
}

}  // namespace fathom::launcher
