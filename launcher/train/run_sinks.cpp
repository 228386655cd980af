#include "launcher/train/run_sinks.h"

#include <algorithm>
#include <iostream>

#include "launcher/train/history_sink.h"
#include "launcher/train/metrics_server.h"
#include "launcher/train/metrics_sink.h"
#include "launcher/train/progress_sink.h"
#include "launcher/train/result_sink.h"
#include "launcher/train/start_sink.h"
#include "launcher/train/textfile_sink.h"

namespace fathom::launcher {

struct RunSinks::Sinks {
  Sinks(const Config& config, const StartRecord& record, int64_t resumed_from, bool is_branch,
        monitoring::Log& log)
      : metrics(config),
        server(config, metrics.metrics(), log),
        textfile(config.run.directory, config.run.name, metrics.metrics(), log),
        result(config.run.directory),
        history(config.run.directory, resumed_from, is_branch),
        start(config.run.directory, record),
        progress(std::cerr,
                 monitoring::stderr_progress(config.run.name, config.train.max_steps,
                                             std::max<int64_t>(resumed_from, 0)),
                 log) {}

  MetricsSink metrics;
  MetricsServer server;  // first: a port that is required and taken leaves the files as they are
  TextfileSink textfile;
  ResultSink result;
  HistorySink history;
  StartSink start;
  ProgressSink progress;
};

RunSinks::RunSinks(const Config& config, const StartRecord& start, int64_t resumed_from,
                   bool is_branch, int rank, monitoring::Log& log) {
  if (rank != 0) return;
  sinks_ = std::make_unique<Sinks>(config, start, resumed_from, is_branch, log);
  observers_.add(sinks_->metrics);
  observers_.add(sinks_->textfile);
  observers_.add(sinks_->history);
  observers_.add(sinks_->start);
  observers_.add(sinks_->progress);
  observers_.add(sinks_->result);  // last: result.json says that all the rest is written
}

RunSinks::~RunSinks() = default;

}  // namespace fathom::launcher
