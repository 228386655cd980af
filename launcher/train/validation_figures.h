// A validation's figures as fields of JSON, the same in events.jsonl and result.json.
#pragma once

#include "launcher/evaluation.h"
#include "monitoring/json.h"

namespace fathom::launcher {

// validation_loss, perplexity, and source_gain where there is one.
void append_figures(monitoring::Object& fields, const Validation& validation);

}  // namespace fathom::launcher
