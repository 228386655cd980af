#include "launcher/commands/train.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <optional>

#include <nlohmann/json.hpp>

#include "core/base/file.h"
#include "core/data/batch_plan.h"
#include "launcher/config/load.h"
#include "launcher/cores.h"
#include "launcher/devices.h"
#include "launcher/profile_model.h"
#include "launcher/provenance.h"
#include "launcher/run_setup.h"
#include "launcher/signals.h"
#include "launcher/trainer.h"
#include "monitoring/catalogue.h"

namespace fathom::launcher {
namespace {

// A hung peer keeps everybody in a collective for ever, so the process ends from here.
dist::Watchdog make_watchdog(const Config& config, dist::Communicator& group) {
  return dist::Watchdog(dist::Watchdog::Duration(config.dist.timeout_seconds),
                        [&group](const dist::Watchdog::Expiry& e) {
                          std::cerr
                              << join("fathom: rank ", group.rank(), ": watchdog: no progress for ",
                                      int64_t(e.seconds), " s in ", e.phase, " after step ", e.step,
                                      "; a peer hangs or is gone. Look at its log and start "
                                      "the run again (dist.timeout_seconds sets the "
                                      "limit)\n")
                              << std::flush;
                          group.abort("watchdog", int(ExitCode::kPeer));
                          std::_Exit(int(ExitCode::kPeer));
                        });
}

void keep_tokenizer(const data::PreparedData& data, const Config& config) {
  write_file_durably("run", std::filesystem::path(config.run.directory) / "tokenizer.model",
                     data.tokenizer->bytes());
}

// Before the long work, not at the first step that has layer statistics.
void check_series(const Config& config, int ranks) {
  const int64_t blocks =
      config.monitoring.detail == Detail::kBlock ? model::block_count(config.model) : 0;
  const int64_t needed = monitoring::series_needed(blocks, ranks);
  require(needed <= config.monitoring.max_series, "monitoring.max_series: got ",
          config.monitoring.max_series, ", but ", blocks, " blocks on ", ranks, " ranks need ",
          needed, "; raise it", blocks > 0 ? ", or set monitoring.detail: run" : "");
}

int exit_code_of(StopKind kind) {
  switch (kind) {
    case StopKind::kCompleted:
      return int(ExitCode::kDone);
    case StopKind::kSignalled:
      return int(ExitCode::kRequeue);
    case StopKind::kFailed:
      return int(ExitCode::kTraining);
  }
  return int(ExitCode::kTraining);
}

const char* status_of(StopKind kind) {
  switch (kind) {
    case StopKind::kCompleted:
      return "completed";
    case StopKind::kSignalled:
      return "interrupted";
    case StopKind::kFailed:
      return "failed";
  }
  return "failed";
}

// How the run ended last time, by its result.json; "" if it did not.
std::string last_status(const Config& config) {
  const std::optional<std::string> text =
      read_if_there("run", std::filesystem::path(config.run.directory) / "result.json");
  const nlohmann::json result = nlohmann::json::parse(text.value_or(""), nullptr, false);
  return result.is_object() ? result.value("status", "") : "";
}

// A run that an error ends says so in result.json, if that can still be written and the directory
// is still ours.
TrainResult run_to_its_end(Trainer& trainer, Recorder& recorder, const RunDirectory& run) {
  try {
    return trainer.run();
  } catch (const std::exception& error) {
    try {
      if (run.lock && run.lock->still_mine())
        recorder.finish("stopped", error.what(), trainer.state().step, {});
    } catch (const Error&) {
      // The disk may be what failed; the error that ends the run is the first one.
    }
    throw;
  }
}

// What validation translations are compared with, read once: the files may change while a run
// lives.
std::vector<std::string> validation_references(const Config& config, const monitoring::Log& log) {
  if (config.train.best_metric != BestMetric::kBleu || config.data.valid.empty()) return {};
  std::vector<std::string> lines =
      data::evaluation_text(config.data, config.data.valid, false).target;
  const auto empty = std::count(lines.begin(), lines.end(), "");
  require<DataError>(size_t(empty) < lines.size(), "data.valid: all ", lines.size(),
                     " references are empty, but train.best_metric is bleu");
  if (empty > 0)
    log.warn(join("data.valid: ", empty, " of ", lines.size(),
                  " references are empty; they do not count for BLEU"));
  return lines;
}

void say_end(StopKind kind, int64_t step, const std::string& reason) {
  std::cerr << join("fathom train: ", status_of(kind), " at step ", step, ": ", reason,
                    kind == StopKind::kSignalled ? "; saved, run the same command to go on" : "",
                    "\n")
            << std::flush;
}

// Collective. The exit code of a run that ended for good in an earlier attempt, said once more;
// none if something is left to do. A failure that only the last validation showed is judged again.
std::optional<int> earlier_end(const Config& config, const data::PreparedData& data,
                               const TrainState& state, dist::Communicator& group,
                               const monitoring::Log& log) {
  std::string status = group.rank() == 0 ? last_status(config) : "";
  group.broadcast(status, 0);
  if (status == status_of(StopKind::kFailed)) {
    const std::optional<score::Verdict> verdict = standing_verdict(config, data, state);
    if (!verdict) return std::nullopt;
    if (group.rank() == 0) say_end(StopKind::kFailed, state.step, score::describe(*verdict));
    return exit_code_of(StopKind::kFailed);
  }
  if (!is_complete(config, state)) return std::nullopt;
  log.info(join("already complete at step ", state.step,
                "; raise train.max_steps (or train.max_epochs, train.patience) to go on"));
  return exit_code_of(StopKind::kCompleted);
}

void announce(const Config& config, const data::PreparedData& data, const model::Transformer& model,
              const Resume& resume, const std::string& init_from, int64_t step, int ranks,
              Recorder& recorder, const monitoring::Log& log) {
  log.info(join(config.model.topology, ": ", model.parameters().all().size(), " tensors, ",
                model.parameters().size(), " parameters; ", data.train.size(), " training pairs, ",
                data.train.target_tokens(), " target tokens, unigram entropy ",
                data.unigram_entropy, " nats; ranks: ", ranks,
                ", threads of each: ", config.train.threads, ", shards: ", config.batch.shards));
  if (resume.resumes) {
    const std::string from = resume.checkpoint ? resume.checkpoint->path().string() : "";
    log.info(join("resumed from step ", step, ", ", from));
    if (!init_from.empty())
      log.warn("--init-from was left out: this run goes on from its own checkpoint");
    recorder.event("resumed", {{"step", step}, {"from", from}, {"attempt", resume.attempt}});
  } else {
    recorder.event(
        "started",
        {{"step", step}, {"ranks", ranks}, {"run_id", resume.run_id}, {"init_from", init_from}});
    const data::DropCounts& dropped = data.reports.at("train").counts;
    recorder.dropped(dropped);
    if (!dropped.empty()) log.info("left out of training: " + data::describe(dropped));
  }
}

}  // namespace

int train(const TrainCommand& command, dist::Session& session) {
  dist::Communicator& group = session.world();
  monitoring::Log log(
      {.level = monitoring::LogLevel::kInfo, .rank = group.rank(), .size = group.size()});
  Config config = load_config(command.config, command.overrides);
  check_complete(config, command.config);
  config.batch.shards = data::resolved_shards(config.batch);
  config.train.threads = threads_per_rank(config);
  require(group.size() <= config.batch.shards, "batch.shards: ", config.batch.shards,
          " virtual shards cannot be shared out over ", group.size(),
          " ranks; start at most that many, or raise batch.shards");
  if (config.dist.reduction == Reduction::kTree) data::check_shards_fit(config.batch);
  check_series(config, group.size());
  dist::Watchdog watchdog = make_watchdog(config, group);
  // Rank 0 may learn a tokenizer from all the text while its peers wait for it.
  std::optional<dist::Watchdog::Section> set_up;
  set_up.emplace(watchdog, "set-up", section_limit(config, std::chrono::hours(6)));

  RunDirectory run = open_run_directory(config, group.rank(), log);
  Resume resume = decide_resume(config, command.resume, run, group, log);
  const data::PreparedData data = prepare_data(config, group, log);
  check_same_data(resume, data);
  const std::unique_ptr<Device> device = make_device(config);
  check_same_numerics(resume, device->numerics(), log);
  check_ranks_agree(config, data, device->numerics(), group);
  config.model.vocabulary_size = data.tokenizer->size();
  if (group.rank() == 0) keep_tokenizer(data, config);

  model::Transformer model(config.model, *device, compute_type(config));
  const Sharding sharding(config.dist, model.parameters(), group);
  optim::Adam adam(config.optimizer, sharding.slices());

  // The step a resume starts from, before the recorder opens the histories.
  TrainState loaded{model, adam};
  if (resume.resumes) {
    load_state(resume, loaded, sharding, group);
    model.set_update(loaded.step);
  } else {
    model.initialise(config.run.seed);
    if (command.init_from.empty())
      profile_model(config, data.train, model, group);
    else
      load_weights(command.init_from, config, model, group, log);
  }
  if (resume.resumes)
    if (const std::optional<int> code = earlier_end(config, data, loaded, group, log)) return *code;
  const std::vector<std::string> references = validation_references(config, log);
  const bool is_chosen = command.resume != "auto" && command.resume != "require";
  if (is_chosen) abandon_later(resume, run);
  if (group.rank() == 0) keep_config(config);
  Recorder recorder(config, config.run.directory, resume.resumes ? loaded.step : -1, group.rank(),
                    group.size(), log);
  if (resume.checkpoint)
    recorder.restore_counters(
        provenance_text(resume.checkpoint->manifest().provenance, "counters"));
  recorder.rejected(resume.rejected);
  announce(config, data, model, resume, command.init_from, loaded.step, group.size(), recorder,
           log);

  std::optional<StepProfiler> profiler;
  if (command.profile && group.rank() == 0)
    profiler.emplace(device->compute(), std::filesystem::path(config.run.directory) / "trace.json");
  Trainer trainer({.config = config,
                   .data = data,
                   .references = references,
                   .group = group,
                   .device = *device,
                   .model = model,
                   .sharding = sharding,
                   .adam = adam,
                   .recorder = recorder,
                   .profiler = profiler ? &*profiler : nullptr,
                   .watchdog = watchdog,
                   .checkpoints = run.checkpoints ? &*run.checkpoints : nullptr,
                   .run_id = resume.run_id,
                   .attempt = resume.attempt},
                  loaded);
  resume.checkpoint.reset();  // its memory is no longer needed
  set_up.reset();
  heed_signals(Stopping::kBetweenSteps);
  const TrainResult result = run_to_its_end(trainer, recorder, run);
  if (profiler) profiler->finish(std::cerr);

  monitoring::Object more;
  if (result.validation) {
    more.push_back({"validation_loss", result.validation->nll});
    more.push_back({"perplexity", std::exp(result.validation->nll)});
    if (std::isfinite(result.validation->source_gain))
      more.push_back({"source_gain", result.validation->source_gain});
  }
  recorder.finish(status_of(result.kind), result.reason, trainer.state().step, more);
  if (group.rank() == 0) say_end(result.kind, trainer.state().step, result.reason);
  return exit_code_of(result.kind);
}

}  // namespace fathom::launcher
