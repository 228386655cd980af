#include "launcher/commands/train.h"

#include <exception>

#include "launcher/config/load.h"
#include "launcher/config/resume_rules.h"
#include "launcher/signals.h"
#include "launcher/train/training_run.h"

namespace fathom::launcher {

CommandOptions add_train(CommandOptions root, TrainCommand& command) {
  CommandOptions own = root.subcommand("train", "Train a model; alone, or under mpirun or srun");
  own.required("config", command.config, "A YAML file");
  own.optional("overrides", command.overrides, "key=value, wins over the file");
  own.option("--resume", command.options.resume, "auto, never, require, or a checkpoint's path");
  own.option("--init-from", command.options.init_from,
             "Start a new run from the weights of this checkpoint");
  own.flag("--overwrite", command.options.overwrite,
           "Start anew; a run that is in the directory is moved aside, to RUN.replaced-TIME");
  own.option("--allow-change", command.allow_change,
             "KEY,KEY,...: keys that this resume may change although they change what is learned");
  own.flag("--profile", command.options.profile,
           "Print where the time of ten steps goes, op by op; write RUN/trace.json for Perfetto");
  return own;
}

int train(const TrainCommand& command, dist::Session& session) {
  const Config config = load_config(command.config, command.overrides);
  check_complete(config, command.config);
  RunOptions options = command.options;
  options.allow_change = parse_allowed_changes(command.allow_change);
  TrainingRun run(config, options, session.world());
  if (const std::optional<TrainResult> end = run.earlier_end()) return exit_code_of(end->kind);
  run.open();
  install_signal_handlers(Stopping::kBetweenSteps);
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
