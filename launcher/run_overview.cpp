#include "launcher/run_overview.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint/owner.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/system.h"
#include "launcher/config/load.h"
#include "launcher/config/yaml.h"
#include "launcher/effective_validations.h"

namespace fathom::launcher {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kPlace = "runs";

// Of a regular file; a pipe or a device is never waited for.
struct stat status_of(const Directory& run, const std::string& name) {
  struct stat status {};
  if (::fstatat(run.descriptor().get(), name.c_str(), &status, 0) != 0) status.st_mode = 0;
  return status;
}

bool has_file(const Directory& run, const std::string& name) {
  return S_ISREG(status_of(run, name).st_mode);
}

// The last bytes of a file, empty where there is none.
std::string tail_of(const Directory& run, const std::string& name) {
  constexpr int64_t kTail = 256 << 10;  // some hundred lines
  if (!has_file(run, name)) return "";
  const FileDescriptor file = run.open_to_read(name);
  const int64_t size = status_of(run, name).st_size, begin = std::max<int64_t>(0, size - kTail);
  std::string bytes(size_t(size - begin), '\0');
  if (!file.is_open()) return "";
  const ssize_t got = ::pread(file.get(), bytes.data(), bytes.size(), begin);
  bytes.resize(size_t(std::max<ssize_t>(0, got)));
  // What is torn at its beginning and at its end is no line.
  if (begin > 0) bytes.erase(0, std::min(bytes.find('\n'), bytes.size() - 1) + 1);
  bytes.resize(bytes.rfind('\n') == bytes.npos ? 0 : bytes.rfind('\n') + 1);
  return bytes;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

// None for what is no JSON object.
std::optional<json> object_of(const std::string& line) {
  json object = json::parse(line, nullptr, /*allow_exceptions=*/false);
  return object.is_object() ? std::optional(std::move(object)) : std::nullopt;
}

template <class T>
std::optional<T> number(const json& object, const char* name) {
  const auto found = object.find(name);
  const bool is_it = found != object.end() &&
                     (std::is_integral_v<T> ? found->is_number_integer() : found->is_number());
  return is_it ? std::optional(found->get<T>()) : std::nullopt;
}

// The last step that counts, and its loss: not those that a resume does again.
void read_steps(const Directory& run, RunOverview& out) {
  const std::vector<std::string> lines = lines_of(tail_of(run, "metrics.jsonl"));
  int64_t limit = std::numeric_limits<int64_t>::max();
  for (auto text = lines.rbegin(); text != lines.rend(); ++text) {
    const std::optional<json> line = object_of(*text);
    const std::optional<int64_t> step = line ? number<int64_t>(*line, "step") : std::nullopt;
    if (!step) continue;
    if (line->contains("marker")) {
      limit = std::min(limit, *step);
      out.step = limit;
    } else if (*step <= limit) {
      out.step = *step;
      out.loss = number<double>(*line, "loss");
      return;
    }
  }
}

void read_best_validation(const Directory& run, bool is_by_bleu, RunOverview& out) {
  constexpr size_t kMost = 64 << 20;
  if (!has_file(run, "events.jsonl")) return;
  std::string text = run.read_if_there("events.jsonl", kMost).value_or("");
  text.resize(text.rfind('\n') == text.npos ? 0 : text.rfind('\n') + 1);
  for (const auto& [step, line] : effective_validations(lines_of(text))) {
    const json event = json::parse(line);
    const std::optional<double> loss = number<double>(event, "validation_loss");
    const std::optional<double> bleu = number<double>(event, "bleu");
    const bool is_better = is_by_bleu
                               ? bleu && (!out.bleu || *bleu > *out.bleu)
                               : loss && (!out.validation_loss || *loss < *out.validation_loss);
    if (!is_better) continue;
    out.validation_loss = loss;
    out.bleu = bleu;
    out.validation_step = step;
  }
}

// By result.json.
void read_end(const Directory& run, RunOverview& out) {
  constexpr size_t kMost = 1 << 20;
  const std::string text = run.read_if_there("result.json", kMost).value_or("");
  const json result = json::parse(text, nullptr, /*allow_exceptions=*/false);
  const json status = result.is_object() ? result.value("status", json()) : json();
  const json reason = result.is_object() ? result.value("reason", json()) : json();
  if (!status.is_string()) {
    out.status = "damaged";
    out.note = "result.json cannot be read";
    return;
  }
  out.status = status.get<std::string>();
  if (reason.is_string()) out.note = reason.get<std::string>();
  if (const auto step = number<int64_t>(result, "step")) out.step = step;
}

void read_status(const Directory& run, RunOverview& out) {
  const std::optional<checkpoint::Owner> owner =
      has_file(run, checkpoint::kOwnerName) ? checkpoint::read_owner(run) : std::nullopt;
  const bool is_readable = !owner || owner->pid > 0;
  if (owner && is_readable && !owner->released && checkpoint::may_be_alive(*owner)) {
    out.status = "running";
    out.note = checkpoint::describe(*owner);
    if (owner->host != host_name()) out.note += "; whether it lives is not seen from here";
  } else if (has_file(run, "result.json")) {
    read_end(run, out);
  } else {
    out.status = is_readable ? "crashed" : "damaged";
    out.note = is_readable ? "the same command goes on" : ".owner cannot be read";
  }
}

// What the config says; one that cannot be read, or is of another version, says nothing.
struct Plan {
  std::optional<int64_t> max_steps;
  bool is_by_bleu = false;
};

Plan read_plan(const Directory& run) {
  if (!has_file(run, "config.yaml")) return {};
  Problems problems;
  const ConfigSource source = {
      .text = run.read_if_there("config.yaml", kMaxConfigBytes).value_or(""),
      .name = "config.yaml",
      .run_name = "run"};
  const Config config = gather_config(source, {}, problems).config;
  if (!problems.empty()) return {};
  return {.max_steps = config.train.max_steps,
          .is_by_bleu = config.train.best_metric == BestMetric::kBleu};
}

}  // namespace

bool is_run_directory(const fs::path& path) {
  std::error_code ignored;
  const auto has = [&](const char* name) { return fs::exists(path / name, ignored); };
  return has(checkpoint::kOwnerName) ||
         (has("config.yaml") && (has("metrics.jsonl") || has("checkpoints")));
}

RunOverview overview_of(const fs::path& path) {
  RunOverview out;
  out.name = path.filename().string();
  out.directory = path;
  try {
    const Directory run(kPlace, path, Directory::Links::kFollow);
    for (const char* name :
         {"metrics.jsonl", "events.jsonl", "result.json", checkpoint::kOwnerName})
      out.written = std::max(out.written, double(status_of(run, name).st_mtime));
    const Plan plan = read_plan(run);
    out.max_steps = plan.max_steps;
    read_steps(run, out);
    read_best_validation(run, plan.is_by_bleu, out);
    read_status(run, out);
  } catch (const std::exception& error) {
    out.status = "damaged";
    out.note = error.what();
  }
  return out;
}

std::vector<RunOverview> overviews_in(const fs::path& root) {
  std::error_code ignored;
  require(fs::is_directory(root, ignored), "runs: ", root.string(),
          ": no such directory; expected one in which runs are, or a run");
  if (is_run_directory(root)) return {overview_of(fs::absolute(root).lexically_normal())};
  const Directory directory(kPlace, root, Directory::Links::kFollow);
  std::vector<RunOverview> all;
  for (const std::string& name : directory.names())
    if (!name.starts_with('.') && is_run_directory(root / name))
      all.push_back(overview_of(root / name));
  return all;
}

}  // namespace fathom::launcher
