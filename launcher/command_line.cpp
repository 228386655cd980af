#include "launcher/command_line.h"

#include <iostream>

#include "core/base/error.h"
#include "launcher/collective.h"
#include "launcher/command_options.h"
#include "launcher/commands/checkpoint.h"
#include "launcher/commands/config.h"
#include "launcher/commands/evaluate.h"
#include "launcher/commands/history.h"
#include "launcher/commands/init.h"
#include "launcher/commands/metrics.h"
#include "launcher/commands/prepare.h"
#include "launcher/commands/probe.h"
#include "launcher/commands/runs.h"
#include "launcher/commands/score.h"
#include "launcher/commands/train.h"
#include "launcher/commands/translate.h"
#include "launcher/signals.h"
#include "launcher/version.h"

namespace fathom::launcher {

int run_command_line(int argc, char** argv) {
  CommandLine words("fathom", "Fathom: a distributed trainer for deep Transformers");
  words.version([] { return "fathom " + version() + " (" + commit() + ")\n" + built_with(); });
  TrainCommand train_command;
  PrepareCommand prepare_command;
  TranslateCommand translate_command;
  EvaluateCommand evaluate_command;
  ScoreCommand score_command;
  ProbeCommand probe_command;
  ConfigCommand config_command;
  InitCommand init_command;
  RunsCommand runs_command;
  HistoryCommand history_command;
  MetricsCommand metrics_command;
  CheckpointCommand checkpoint_command;
  const CommandOptions train_words = add_train(words.root(), train_command);
  const CommandOptions prepare_words = add_prepare(words.root(), prepare_command);
  const CommandOptions translate_words = add_translate(words.root(), translate_command);
  const CommandOptions evaluate_words = add_evaluate(words.root(), evaluate_command);
  const CommandOptions score_words = add_score(words.root(), score_command);
  const CommandOptions probe_words = add_probe(words.root(), probe_command);
  const CommandOptions config_words = add_config(words.root(), config_command);
  const CommandOptions init_words = add_init(words.root(), init_command);
  const CommandOptions runs_words = add_runs(words.root(), runs_command);
  const CommandOptions history_words = add_history(words.root(), history_command);
  const CommandOptions metrics_words = add_metrics(words.root(), metrics_command);
  const CommandOptions checkpoint_words = add_checkpoint(words.root(), checkpoint_command);
  if (!words.parse(argc, argv)) return 0;

  // Plain calls, so that a backtrace reads: main, run_command_line, the command.
  if (train_words.parsed()) {
    install_signal_handlers(Stopping::kBetweenSteps);  // MPI_Init must not be ended half-way
    const std::unique_ptr<dist::Session> session = start_session();
    install_signal_handlers(Stopping::kAtOnce);
    return on_all_ranks(*session, train, train_command);
  }
  if (prepare_words.parsed()) return prepare(prepare_command);
  if (translate_words.parsed()) return translate(translate_command, std::cin, std::cout);
  if (evaluate_words.parsed())
    return on_all_ranks(*start_session(), evaluate, evaluate_command, std::cout);
  if (score_words.parsed()) return score(score_command);
  if (probe_words.parsed()) return probe(probe_command, std::cout);
  if (config_words.parsed()) return run_config(config_command, std::cin, std::cout, std::cerr);
  if (init_words.parsed()) return init(init_command, std::cout, std::cerr);
  if (runs_words.parsed()) return runs(runs_command, std::cout);
  if (history_words.parsed()) return history(history_command, std::cout);
  if (metrics_words.parsed()) return metrics(metrics_command, std::cout);
  if (checkpoint_words.parsed()) return run_checkpoint(checkpoint_command);
  fail("a subcommand is required; see --help");
}

}  // namespace fathom::launcher
