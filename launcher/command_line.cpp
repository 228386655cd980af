#include "launcher/command_line.h"

#include <chrono>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <thread>

#include <CLI/CLI.hpp>

#include "checkpoint/verify.h"
#include "core/base/error.h"
#include "dist/watchdog.h"
#include "launcher/commands/checkpoint.h"
#include "launcher/commands/config.h"
#include "launcher/commands/evaluate.h"
#include "launcher/commands/prepare.h"
#include "launcher/commands/probe.h"
#include "launcher/commands/score.h"
#include "launcher/commands/train.h"
#include "launcher/commands/translate.h"
#include "launcher/config/load.h"
#include "launcher/signals.h"
#include "launcher/version.h"

namespace fathom::launcher {
namespace {

using Action = std::function<int()>;

constexpr auto kStartLimit = std::chrono::minutes(10);  // hundreds of nodes start within it

// MPI waits for all processes of the job, for ever if one is stopped or its node is gone.
std::unique_ptr<dist::Session> start_session() {
  const dist::Watchdog watchdog(kStartLimit, [](const dist::Watchdog::Expiry& expiry) {
    std::cerr << join("fathom: start: no answer from all processes of the job within ",
                      int64_t(expiry.limit_seconds),
                      " s; is one of them stopped, or its node out of reach? Look at their logs "
                      "and start the run again\n")
              << std::flush;
    std::_Exit(int(ExitCode::kPeer));
  });
  return dist::start();
}

// An error on one rank ends them all: a peer in a collective would wait for ever.
int on_all_ranks(const std::function<int(dist::Session&)>& command) {
  const std::unique_ptr<dist::Session> session = start_session();
  dist::Communicator& world = session->world();
  // What all ranks meet, rank 0 says for them: the others give it the time to.
  const auto end_all = [&](int code, const std::string& text) {
    if (world.size() == 1) return;
    if (world.rank() != 0) std::this_thread::sleep_for(std::chrono::milliseconds(500));
    std::cerr << join("fathom: rank ", world.rank(), ": ", text, "\n") << std::flush;
    world.abort(text, code);
  };
  try {
    return command(*session);
  } catch (const Error& error) {
    end_all(int(error.code()), error.what());
    throw;
  } catch (const std::exception& error) {
    end_all(int(ExitCode::kIo), error.what());
    throw;
  }
}

void add_train(CLI::App& app, Action& action) {
  CLI::App* sub = app.add_subcommand("train", "Train a model; alone, or under mpirun or srun");
  const auto c = std::make_shared<TrainCommand>();
  sub->add_option("config", c->config, "A YAML file")->required();
  sub->add_option("overrides", c->overrides, "key=value, wins over the file");
  sub->add_option("--resume", c->options.resume, "auto, never, require, or a checkpoint's path")
      ->capture_default_str();
  sub->add_option("--init-from", c->options.init_from,
                  "Start a new run from the weights of this checkpoint");
  sub->add_flag(
      "--profile", c->options.profile,
      "Print where the time of ten steps goes, op by op; write RUN/trace.json for Perfetto");
  sub->callback([c, &action] {
    action = [c] {
      heed_signals(Stopping::kAtOnce);
      return on_all_ranks([c](dist::Session& s) { return train(*c, s); });
    };
  });
}

void add_prepare(CLI::App& app, Action& action) {
  CLI::App* sub = app.add_subcommand("prepare", "Learn the tokenizer and build the data set");
  const auto config = std::make_shared<std::string>();
  const auto overrides = std::make_shared<std::vector<std::string>>();
  sub->add_option("config", *config, "A YAML file")->required();
  sub->add_option("overrides", *overrides, "key=value, wins over the file");
  sub->callback([config, overrides, &action] {
    action = [config, overrides] {
      const Config c = load_config(*config, *overrides);
      return prepare(c.data, c.model.kind == model::ModelKind::kDecoder);
    };
  });
}

void add_translate(CLI::App& app, Action& action) {
  CLI::App* sub =
      app.add_subcommand("translate", "Translate standard input, line by line (greedy)");
  const auto c = std::make_shared<TranslateCommand>();
  sub->add_option("model", c->model, "A run directory or a checkpoint")->required();
  sub->add_option("--batch-tokens", c->batch_tokens, "Source tokens decoded at once")
      ->capture_default_str();
  sub->add_option("--threads", c->threads, "0: all cores allowed")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  sub->callback([c, &action] { action = [c] { return translate(*c, std::cin, std::cout); }; });
}

void add_evaluate(CLI::App& app, Action& action) {
  CLI::App* sub = app.add_subcommand("evaluate", "Loss, perplexity, source gain and BLEU as JSON");
  const auto c = std::make_shared<EvaluateCommand>();
  sub->add_option("model", c->model, "A run directory or a checkpoint")->required();
  sub->add_option("--split", c->split, "valid or test")->capture_default_str();
  sub->add_option("--sentences", c->sentences, "Only the first so many; 0: all")
      ->check(CLI::NonNegativeNumber);
  sub->add_option("--samples", c->samples, "Translations to show")->check(CLI::NonNegativeNumber);
  sub->add_option("--threads", c->threads, "0: all cores allowed")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  sub->callback([c, &action] {
    action = [c] {
      return on_all_ranks([c](dist::Session& s) { return evaluate(*c, s, std::cout); });
    };
  });
}

void add_score(CLI::App& app, Action& action) {
  CLI::App* sub = app.add_subcommand("score", "BLEU and chrF of a file, as sacreBLEU counts them");
  const auto c = std::make_shared<ScoreCommand>();
  sub->add_option("hypothesis", c->hypothesis, "A file, plain or .gz, or - for standard input")
      ->required();
  sub->add_option("references", c->references, "One file or more")->required();
  sub->add_flag("--lowercase", c->lowercase, "Compare in lower case");
  sub->add_option("--tokenize", c->tokenizer, "13a, intl, char, none")->capture_default_str();
  sub->add_option("--smooth", c->smoothing, "exp, floor, add-k, none")->capture_default_str();
  sub->callback([c, &action] { action = [c] { return score(*c); }; });
}

void add_probe(CLI::App& app, Action& action) {
  CLI::App* sub = app.add_subcommand("probe", "One batch forward and backward: layer statistics");
  const auto c = std::make_shared<ProbeCommand>();
  sub->add_option("source", c->source, "A config file, a run directory or a checkpoint")
      ->required();
  sub->add_option("overrides", c->overrides, "key=value, of a config file");
  sub->add_option("--out", c->out, "Write every gradient there, in the checkpoint format");
  sub->callback([c, &action] { action = [c] { return probe(*c, std::cout); }; });
}

void add_config(CLI::App& app, Action& action) {
  CLI::App* sub = app.add_subcommand("config", "Show or check a config, or list all keys");
  sub->require_subcommand(0, 1);
  const auto path = std::make_shared<std::string>();
  const auto overrides = std::make_shared<std::vector<std::string>>();
  const auto add = [&](const char* name, const char* text, auto command) {
    CLI::App* one = sub->add_subcommand(name, text);
    one->add_option("config", *path, "A YAML file")->required();
    one->add_option("overrides", *overrides, "key=value, wins over the file");
    one->callback([=, &action] { action = [=] { return command(*path, *overrides, std::cout); }; });
  };
  add("show", "The resolved config", config_show);
  add("check", "Check, and say what memory a rank needs", config_check);
  CLI::App* keys = sub->add_subcommand("keys", "Every key: type, default, range, meaning");
  const auto markdown = std::make_shared<bool>(false);
  keys->add_flag("--markdown", *markdown);
  keys->callback([markdown, &action] {
    action = [markdown] {
      return config_keys(*markdown ? KeysForm::kMarkdown : KeysForm::kText, std::cout);
    };
  });
}

void add_checkpoint(CLI::App& app, Action& action) {
  CLI::App* sub =
      app.add_subcommand("checkpoint", "Look into checkpoints; a run stands for its own");
  sub->require_subcommand(0, 1);
  const auto paths = std::make_shared<std::vector<std::string>>();
  const auto add = [&](const char* name, const char* text, const Action& command) {
    CLI::App* one = sub->add_subcommand(name, text);
    one->add_option("paths", *paths, "Checkpoints or run directories")->required();
    one->callback([command, &action] { action = command; });
    return one;
  };
  add("inspect", "Step, origin, and a table of the arrays",
      [paths] { return checkpoint_inspect(*paths); });
  add("verify", "Is every one whole? Exit 0 or 4", [paths] { return checkpoint_verify(*paths); });
  add("diff", "Compare the state of two: exit 0 when identical, 1 when not", [paths] {
    require(paths->size() == 2, "checkpoint diff: needs two paths, got ", paths->size());
    return checkpoint_diff((*paths)[0], (*paths)[1]);
  });
  add("verify-child", "", [paths] {
    return checkpoint::verify_child_main(paths->front());
  })->group("");
}

}  // namespace

int run_command_line(int argc, char** argv) {
  CLI::App app("Fathom: a distributed trainer for deep Transformers", "fathom");
  app.set_version_flag("--version", std::function<std::string()>([] {
                         return "fathom " + version() + " (" + commit() + ")\n" + built_with();
                       }));
  app.require_subcommand(0, 1);
  Action action;
  add_train(app, action);
  add_prepare(app, action);
  add_translate(app, action);
  add_evaluate(app, action);
  add_score(app, action);
  add_probe(app, action);
  add_config(app, action);
  add_checkpoint(app, action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    fail(error.what(), "; see --help");
  }
  // Not left to the parser, which would say this of a mistyped subcommand instead of naming it.
  require(bool(action), "a subcommand is required; see --help");
  return action();
}

}  // namespace fathom::launcher
