#include "launcher/model_source.h"

#include "checkpoint/resolve.h"
#include "launcher/config/load.h"
#include "launcher/devices.h"
#include "launcher/provenance.h"
#include "launcher/run_tokenizer.h"
#include "launcher/train/load_state.h"
#include "monitoring/log.h"

namespace fathom::launcher {

LoadedModel load_model(const std::string& path, int threads) {
  const monitoring::Log log({.level = monitoring::LogLevel::kInfo});
  const checkpoint::Checkpoint source =
      checkpoint::open_checkpoint(path, [&log](const checkpoint::SkippedCheckpoint& skipped) {
        log.warn(checkpoint::describe(skipped));
      });
  const std::string text = provenance_text(source.manifest().provenance, "config");
  require<CheckpointError>(!text.empty(), source.path().string(),
                           ": carries no config; was it written by another program?");
  LoadedModel out;
  out.config = parse_config(text, source.path().string() + " (config)", "run");
  out.checkpoint = source.path();
  out.step = source.manifest().step;
  out.config.train.threads = threads;

  out.tokenizer =
      std::make_unique<data::Tokenizer>(data::Tokenizer::from_bytes(tokenizer_of(source)));
  out.config.model.vocabulary_size = out.tokenizer->size();

  out.device = make_device(out.config);
  out.model =
      std::make_unique<model::Transformer>(out.config.model, *out.device, compute_type(out.config));
  out.model->set_update(out.step);
  load_weights(source, *out.model);
  return out;
}

}  // namespace fathom::launcher
