#include "launcher/commands/checkpoint.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <set>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "checkpoint/resolve.h"
#include "checkpoint/retention.h"
#include "checkpoint/verify.h"
#include "core/base/error.h"

namespace fathom::launcher {
namespace {

using checkpoint::ArrayInfo;
using checkpoint::Checkpoint;
using checkpoint::StateValue;

Checkpoint open(const std::string& path) {
  return checkpoint::open_checkpoint(path, [](const checkpoint::SkippedCheckpoint& skipped) {
    fmt::print(stderr, "fathom: {}\n", checkpoint::describe(skipped));
  });
}

std::string value_text(const StateValue& value) {
  if (const auto* v = std::get_if<int64_t>(&value)) return fmt::format("{}", *v);
  if (const auto* v = std::get_if<double>(&value)) return fmt::format("{:.17g}", *v);
  const auto& text = std::get<std::string>(value);
  constexpr size_t kShown = 60;
  return text.size() <= kShown
             ? fmt::format("\"{}\"", text)
             : fmt::format("\"{}...\" ({} bytes)", text.substr(0, kShown), text.size());
}

// One line a field; a text of several lines (the config) below its name.
void print_provenance(const std::string& text) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) return;
  for (const auto& [key, value] : json.items()) {
    std::string shown = value.is_string() ? value.get<std::string>() : value.dump();
    if (key == "counters") continue;  // of versions that kept metrics there, many
    for (size_t at = shown.find('\n'); at != shown.npos; at = shown.find('\n', at + 1))
      if (at + 1 < shown.size()) shown.replace(at, 1, "\n  ");
    const bool is_long = shown.find('\n') != shown.npos;
    fmt::print("{:<14} {}{}\n", key, is_long ? "\n  " : "", shown);
  }
}

void print_array(const Checkpoint& c, const ArrayInfo& info, size_t width) {
  const std::vector<double> values = c.values(info);
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  // Scaled by the largest: squares of second moments would underflow.
  const double largest = values.empty() ? 0 : std::max(std::abs(*low), std::abs(*high));
  double squares = 0;
  if (largest > 0)
    for (const double v : values) squares += (v / largest) * (v / largest);
  const std::string shape = checkpoint::shape_text(info.shape);
  if (values.empty())
    fmt::print("{:<{}}  {:>16}  {}  {:>11}  {:>11}  {:>11}\n", info.name, width, shape,
               checkpoint::to_string(info.type), "-", "-", "-");
  else
    fmt::print("{:<{}}  {:>16}  {}  {:>11.4e}  {:>11.4e}  {:>11.4e}\n", info.name, width, shape,
               checkpoint::to_string(info.type),
               largest * std::sqrt(squares / double(values.size())), *low, *high);
}

void inspect(const Checkpoint& c) {
  const checkpoint::Manifest& m = c.manifest();
  fmt::print(
      "checkpoint     {}\nstep           {}\nrun            {}\nattempt        {}\n"
      "fencing token  {}\n",
      c.path().string(), m.step, m.run_id, m.attempt, m.fencing_token);
  if (m.metric) fmt::print("metric         {} {:.6g}\n", m.metric->name, m.metric->value);
  if (const auto validation = checkpoint::read_validation(c.path(), m))
    for (const auto& [name, value] : validation->figures)
      fmt::print("validation     {} = {:.6g}\n", name, value);
  print_provenance(m.provenance);
  for (const auto& [name, value] : m.state)
    fmt::print("state          {} = {}\n", name, value_text(value));
  size_t width = 4;
  int64_t elements = 0, parameters = 0;
  for (const ArrayInfo& info : m.arrays) {
    if (info.name.starts_with("model/")) parameters += checkpoint::element_count(info.shape);
    width = std::max(width, info.name.size());
    elements += checkpoint::element_count(info.shape);
  }
  fmt::print("{:<{}}  {:>16}  {:>3}  {:>11}  {:>11}  {:>11}\n", "name", width, "shape", "type",
             "rms", "min", "max");
  for (const ArrayInfo& info : m.arrays) print_array(c, info, width);
  fmt::print("{} arrays, {} elements, {} bytes; parameters of the model: {}\n", m.arrays.size(),
             elements, m.state_bytes, parameters);
}

// "" if the arrays are equal to the bit.
std::string array_difference(const Checkpoint& a, const ArrayInfo& x, const Checkpoint& b,
                             const ArrayInfo& y) {
  if (x.shape != y.shape)
    return fmt::format("shape {} against {}", checkpoint::shape_text(x.shape),
                       checkpoint::shape_text(y.shape));
  if (x.type != y.type)
    return fmt::format("type {} against {}", checkpoint::to_string(x.type),
                       checkpoint::to_string(y.type));
  const auto p = a.bytes(x), q = b.bytes(y);
  if (std::equal(p.begin(), p.end(), q.begin())) return "";
  const auto u = a.values(x), v = b.values(y);
  const auto size = size_t(checkpoint::element_bytes(x.type));
  int64_t count = 0;
  double largest = 0;
  for (size_t i = 0; i < u.size(); ++i) {
    // By bytes: +0 and -0 differ, though their difference is 0.
    if (std::memcmp(&p[i * size], &q[i * size], size) == 0) continue;
    ++count;
    largest = std::max(largest, std::abs(u[i] - v[i]));
  }
  return fmt::format("{} of {} elements differ, largest difference {:.4g}", count, u.size(),
                     largest);
}

constexpr int kShownArrays = 20;

int diff_arrays(const Checkpoint& a, const Checkpoint& b) {
  int differences = 0;
  const auto report = [&](const std::string& name, const std::string& what) {
    if (++differences <= kShownArrays) fmt::print("{}: {}\n", name, what);
  };
  for (const ArrayInfo& x : a.manifest().arrays) {
    const ArrayInfo* y = b.find(x.name);
    const std::string what = y ? array_difference(a, x, b, *y) : "only in the first";
    if (!what.empty()) report(x.name, what);
  }
  for (const ArrayInfo& y : b.manifest().arrays)
    if (a.find(y.name) == nullptr) report(y.name, "only in the second");
  if (differences > kShownArrays)
    fmt::print("... and {} more arrays\n", differences - kShownArrays);
  return differences;
}

// By bits, as the arrays: NaN equals itself.
bool is_same(const StateValue& a, const StateValue& b) {
  const auto *x = std::get_if<double>(&a), *y = std::get_if<double>(&b);
  return x && y ? std::bit_cast<uint64_t>(*x) == std::bit_cast<uint64_t>(*y) : a == b;
}

int diff_values(const Checkpoint& a, const Checkpoint& b) {
  int differences = 0;
  const auto &x = a.manifest().state, &y = b.manifest().state;
  std::set<std::string> names;
  for (const auto& [name, value] : x) names.insert(name);
  for (const auto& [name, value] : y) names.insert(name);
  for (const std::string& name : names) {
    const auto p = x.find(name), q = y.find(name);
    if (p != x.end() && q != y.end() && is_same(p->second, q->second)) continue;
    fmt::print("{}: {} against {}\n", name, p == x.end() ? "nothing" : value_text(p->second),
               q == y.end() ? "nothing" : value_text(q->second));
    ++differences;
  }
  return differences;
}

}  // namespace

int checkpoint_inspect(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) inspect(open(path));
  return int(ExitCode::kDone);
}

int checkpoint_list(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    std::vector<checkpoint::Manifest> manifests;
    std::vector<std::string> lines;
    for (const auto& candidate : checkpoint::candidates(path)) try {
        checkpoint::Manifest m = checkpoint::read_manifest(candidate);
        std::string line =
            fmt::format("{:>10}  {:>14} bytes  {}", m.step, m.state_bytes, candidate.string());
        if (const auto validation = checkpoint::read_validation(candidate, m)) {
          m.metric = validation->metric;
          for (const auto& [name, value] : validation->figures)
            line += fmt::format("  {} {:.6g}", name, value);
        }
        lines.push_back(std::move(line));
        manifests.push_back(std::move(m));
      } catch (const CheckpointError& error) {
        fmt::print("{}\n", error.what());
      }
    const std::vector<const checkpoint::Manifest*> ranked = checkpoint::rank_by_metric(manifests);
    for (size_t i = 0; i < lines.size(); ++i)
      fmt::print("{}{}\n", lines[i],
                 !ranked.empty() && ranked.front() == &manifests[i] ? "  (best)" : "");
  }
  return int(ExitCode::kDone);
}

int checkpoint_verify(const std::vector<std::string>& paths) {
  bool all_valid = true;
  for (const std::string& path : paths) {
    for (const auto& candidate : checkpoint::candidates(path)) {
      const std::string reason = checkpoint::verify(candidate);
      // A run that lives deletes checkpoints: that is no damage.
      const bool is_gone = !std::filesystem::exists(std::filesystem::symlink_status(candidate));
      const bool is_valid = reason.empty() || is_gone;
      fmt::print("{}: {}\n", candidate.string(),
                 reason.empty() ? "valid"
                 : is_gone      ? "deleted by its run since it was listed"
                                : reason);
      all_valid = all_valid && is_valid;
    }
  }
  return int(all_valid ? ExitCode::kDone : ExitCode::kCheckpoint);
}

int checkpoint_diff(const std::string& a, const std::string& b) {
  const Checkpoint first = open(a);
  const Checkpoint second = open(b);
  const int arrays = diff_arrays(first, second), values = diff_values(first, second);
  if (arrays + values == 0)
    fmt::print("identical\n");
  else
    fmt::print("different: arrays {}, values {}\n", arrays, values);
  return arrays + values == 0 ? 0 : 1;
}

CommandOptions add_checkpoint(CommandOptions root, CheckpointCommand& command) {
  using Action = CheckpointCommand::Action;
  CommandOptions own =
      root.subcommand("checkpoint", "Look into checkpoints; a run stands for its own");
  const auto add = [&](const char* name, const char* text, Action action) {
    CommandOptions one = own.subcommand(name, text);
    one.required("paths", command.paths, "Checkpoints or run directories");
    one.on_parsed([&command, action] { command.action = action; });
    return one;
  };
  add("list", "Those of a run, newest first, with what validations found", Action::kList);
  add("inspect", "Step, origin, and a table of the arrays", Action::kInspect);
  add("verify", "Is every one whole? Exit 0 or 4", Action::kVerify);
  add("diff", "Compare the state of two: exit 0 when identical, 1 when not", Action::kDiff);
  add("verify-child", "", Action::kVerifyChild).hide_from_help();
  return own;
}

int run_checkpoint(const CheckpointCommand& command) {
  const std::vector<std::string>& paths = command.paths;
  switch (command.action) {
    case CheckpointCommand::Action::kList:
      return checkpoint_list(paths);
    case CheckpointCommand::Action::kInspect:
      return checkpoint_inspect(paths);
    case CheckpointCommand::Action::kVerify:
      return checkpoint_verify(paths);
    case CheckpointCommand::Action::kDiff:
      require(paths.size() == 2, "checkpoint diff: needs two paths, got ", paths.size());
      return checkpoint_diff(paths[0], paths[1]);
    case CheckpointCommand::Action::kVerifyChild:
      return checkpoint::verify_child_main(paths.front());
    case CheckpointCommand::Action::kNone:
      break;
  }
  fail("a subcommand is required; see --help");
}

}  // namespace fathom::launcher
