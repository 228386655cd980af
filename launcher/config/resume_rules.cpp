#include "launcher/config/resume_rules.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/error.h"
#include "launcher/config/schema.h"

namespace fathom::launcher {
namespace {

bool ends_at_max_steps(optim::Schedule schedule) {
  return schedule == optim::Schedule::kCosine || schedule == optim::Schedule::kLinear;
}

// Of this difference, which may be stricter than its key: some values make another run.
MayChange may_change(const Difference& difference, const Config& old_config) {
  // The learning rate of every later step follows from it.
  if (difference.key == "train.max_steps" && ends_at_max_steps(old_config.optimizer.schedule))
    return MayChange::kOnRequest;
  // Checkpoints of fp32 and bf16 hold f32, those of fp64 f64.
  if (difference.key == "train.precision" &&
      (difference.old_value == "fp64" || difference.new_value == "fp64"))
    return MayChange::kNever;
  return find_key(difference.key)->may_change;
}

// A path says nothing about the text: what was made of it is compared once it is read.
bool is_decided_by_its_text(const std::string& key) {
  return key == "data.train" || key == "data.valid";
}

std::string refusal(const Difference& difference) {
  return join("resume: ", difference.key, ": got ", difference.new_value,
              ", but the checkpoint was made with ", difference.old_value,
              "; put it back, or start a new run in another run.directory");
}

}  // namespace

std::vector<std::string> parse_allowed_changes(std::string_view list) {
  std::vector<std::string> keys;
  for (size_t begin = 0; !list.empty() && begin <= list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    const std::string name(list.substr(begin, end - begin));
    begin = end + 1;
    const Key* key = find_key(name);
    if (key == nullptr) {
      const std::optional<std::string> nearest = nearest_key(name);
      fail("--allow-change: got '", name, "', which is no key; ",
           nearest ? "did you mean " + *nearest : "fathom config keys lists them");
    }
    require(key->may_change != MayChange::kNever, "--allow-change: ", name,
            " never changes in a run: it belongs to the model's shape or the training text; "
            "start a new run in another run.directory");
    keys.push_back(name);
  }
  return keys;
}

std::vector<Difference> check_resume(const Config& old_config, const Config& new_config,
                                     const std::vector<std::string>& allowed) {
  std::vector<Difference> on_request;
  for (const Difference& difference : differences(old_config, new_config)) {
    if (is_decided_by_its_text(difference.key)) continue;
    const MayChange rule = may_change(difference, old_config);
    require(rule != MayChange::kNever, refusal(difference));
    if (rule == MayChange::kOnRequest) on_request.push_back(difference);
  }
  for (const Difference& difference : on_request) {
    if (std::find(allowed.begin(), allowed.end(), difference.key) != allowed.end()) continue;
    std::vector<std::string> keys;
    for (const Difference& d : on_request) keys.push_back(d.key);
    fail(refusal(difference), ", or go on with it: --allow-change ",
         fmt::to_string(fmt::join(keys, ",")));
  }
  return on_request;
}

}  // namespace fathom::launcher
