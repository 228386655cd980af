#include "launcher/command_line.h"

#include <iostream>

#include <CLI/CLI.hpp>

#include "core/base/error.h"
#include "launcher/collective.h"
#include "launcher/commands/checkpoint.h"
#include "launcher/commands/config.h"
#include "launcher/commands/evaluate.h"
#include "launcher/commands/metrics.h"
#include "launcher/commands/prepare.h"
#include "launcher/commands/probe.h"
#include "launcher/commands/score.h"
#include "launcher/commands/train.h"
#include "launcher/commands/translate.h"
#include "launcher/signals.h"
#include "launcher/version.h"

namespace fathom::launcher {

int run_command_line(int argc, char** argv) {
  CLI::App app("Fathom: a distributed trainer for deep Transformers", "fathom");
  app.set_version_flag("--version", std::function<std::string()>([] {
                         return "fathom " + version() + " (" + commit() + ")\n" + built_with();
                       }));
  app.require_subcommand(0, 1);
  TrainCommand train_command;
  PrepareCommand prepare_command;
  TranslateCommand translate_command;
  EvaluateCommand evaluate_command;
  ScoreCommand score_command;
  ProbeCommand probe_command;
  ConfigCommand config_command;
  MetricsCommand metrics_command;
  CheckpointCommand checkpoint_command;
  const CLI::App* const train_app = add_train(app, train_command);
  const CLI::App* const prepare_app = add_prepare(app, prepare_command);
  const CLI::App* const translate_app = add_translate(app, translate_command);
  const CLI::App* const evaluate_app = add_evaluate(app, evaluate_command);
  const CLI::App* const score_app = add_score(app, score_command);
  const CLI::App* const probe_app = add_probe(app, probe_command);
  const CLI::App* const config_app = add_config(app, config_command);
  const CLI::App* const metrics_app = add_metrics(app, metrics_command);
  const CLI::App* const checkpoint_app = add_checkpoint(app, checkpoint_command);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    fail(error.what(), "; see --help");
  }

  // Plain calls, so that a backtrace reads: main, run_command_line, the command.
  if (train_app->parsed()) {
    install_signal_handlers(Stopping::kAtOnce);
    return on_all_ranks(*start_session(), train, train_command);
  }
  if (prepare_app->parsed()) return prepare(prepare_command);
  if (translate_app->parsed()) return translate(translate_command, std::cin, std::cout);
  if (evaluate_app->parsed())
    return on_all_ranks(*start_session(), evaluate, evaluate_command, std::cout);
  if (score_app->parsed()) return score(score_command);
  if (probe_app->parsed()) return probe(probe_command, std::cout);
  if (config_app->parsed()) return run_config(config_command, std::cout);
  if (metrics_app->parsed()) return metrics(metrics_command, std::cout);
  if (checkpoint_app->parsed()) return run_checkpoint(checkpoint_command);
  // Not left to the parser, which would say this of a mistyped subcommand instead of naming it.
  fail("a subcommand is required; see --help");
}

}  // namespace fathom::launcher
