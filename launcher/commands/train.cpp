#include "launcher/commands/train.h"

#include <exception>

#include "core/base/error.h"
#include "core/base/file.h"
#include "launcher/config/load.h"
#include "launcher/config/resume_rules.h"
#include "launcher/cores.h"
#include "launcher/signals.h"
#include "launcher/train/training_run.h"

namespace fathom::launcher {

CommandOptions add_train(CommandOptions root, TrainCommand& command) {
  CommandOptions own = root.subcommand("train", "Train a model; alone, or under mpirun or srun");
  own.required("config", command.config, "A YAML file, or a run's directory");
  own.optional("overrides", command.overrides, "key=value, wins over the file");
  own.option("--resume", command.options.resume,
             "auto, never, require, or the path of a checkpoint or run");
  own.option("--init-from", command.options.init_from,
             "Start a new run from the weights and the tokenizer of this checkpoint or run");
  own.flag("--overwrite", command.options.overwrite,
           "Start anew; a run that is in the directory is moved aside, to RUN.replaced-TIME");
  own.option("--allow-change", command.allow_change,
             "KEY,KEY,...: keys that this resume may change although they change what is learned");
  own.flag("-q,--quiet", command.is_quiet, "Warnings and errors only");
  own.flag("-v,--verbose", command.is_verbose, "A line for every step");
  own.flag("--profile", command.options.profile,
           "Print where the time of ten steps goes, op by op; write RUN/trace.json for Perfetto");
  return own;
}

namespace {

// One word a line.
std::string words_of(const TrainCommand& command) {
  std::string words = command.config;
  for (const std::string& word : command.overrides) words += "\n" + word;
  const auto add = [&words](const char* option, const std::string& value) {
    if (!value.empty()) words += join("\n", option, " ", value);
  };
  add("--resume", command.options.resume);
  add("--init-from", command.options.init_from);
  add("--allow-change", command.allow_change);
  return words;
}

}  // namespace

int train(const TrainCommand& command, dist::Session& session) {
  require(session.world().size() == 1 || !is_read_once(command.config), command.config,
          ": is no file, and every rank reads it; write the config to a file");
  const Config config = load_config(command.config, command.overrides);
  check_complete(config, command.config);
  RunOptions options = command.options;
  options.allow_change = parse_allowed_changes(command.allow_change);
  options.command = words_of(command);
  require(!command.is_quiet || !command.is_verbose, "--quiet and --verbose exclude each other");
  if (command.is_quiet) options.log_level = monitoring::LogLevel::kWarning;
  if (command.is_verbose) options.log_level = monitoring::LogLevel::kDebug;
  options.cores = cores_of_rank(session.node());
  TrainingRun run(config, options, session.world());
  if (const std::optional<TrainResult> end = run.earlier_end()) return exit_code_of(end->kind);
  run.open();
  install_signal_handlers(Stopping::kBetweenSteps);
  try {
    const TrainResult result = run.loop().run();
    run.finish(result);
    run.linger(result);
    return exit_code_of(result.kind);
  } catch (const std::exception& error) {
    const bool has_failed = dynamic_cast<const TrainingError*>(&error) != nullptr;
    run.abandon(has_failed ? "failed" : "stopped", error.what());
    throw;
  }
}

}  // namespace fathom::launcher
