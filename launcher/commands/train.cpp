#include "launcher/commands/train.h"

#include <exception>

#include "launcher/config/load.h"
#include "launcher/signals.h"
#include "launcher/train/training_run.h"

namespace fathom::launcher {

int train(const TrainCommand& command, dist::Session& session) {
  const Config config = load_config(command.config, command.overrides);
  check_complete(config, command.config);
  TrainingRun run(config, command.options, session.world());
  if (const std::optional<TrainResult> end = run.earlier_end()) return exit_code_of(end->kind);
  run.open();
  heed_signals(Stopping::kBetweenSteps);
  try {
    const TrainResult result = run.loop().run();
    run.finish(result);
    return exit_code_of(result.kind);
  } catch (const std::exception& error) {
    run.abandon(error.what());
    throw;
  }
}

}  // namespace fathom::launcher
