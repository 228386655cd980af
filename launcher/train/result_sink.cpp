#include "launcher/train/result_sink.h"

#include "core/base/file.h"
#include "launcher/train/config_changes.h"
#include "launcher/train/validation_figures.h"

namespace fathom::launcher {

ResultSink::ResultSink(const std::filesystem::path& run) : path_(run / "result.json") {
  std::filesystem::remove(path_);
}

void ResultSink::started(const RunStart& start) { changes_ = start.changes; }

void ResultSink::finished(const RunEnd& end) {
  monitoring::Object result = {{"status", end.status}, {"reason", end.reason}, {"step", end.step}};
  if (end.validation) append_figures(result, *end.validation);
  if (!end.verdict.empty()) result.emplace_back("verdict", end.verdict);
  if (!changes_.empty()) result.emplace_back("changes", as_json(changes_));
  write_file_durably("run", path_, monitoring::to_json(result) + "\n");
}

}  // namespace fathom::launcher
