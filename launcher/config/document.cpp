#include "launcher/config/document.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "launcher/config/schema.h"

namespace fathom::launcher {
namespace {

constexpr std::string_view kPreamble = R"(# Configuration

This page is the output of `fathom config keys --markdown`; a test keeps the two equal.

A config is a YAML file: sections, and keys in them. `key=value` words after it on the command line
win over the file, and a later word wins over an earlier one:

    fathom train configs/iwslt14-de-en.yaml model.depth=E12D12 model.topology=pre-ln run.seed=2

- Nothing is silently ignored. An unknown or duplicate key, a wrong type, a value out of range or a
  contradiction ends the program with exit code 2 and `FILE:LINE: KEY: got ..., allowed ...`.
- A key that is left out takes its default. `fathom config show CONFIG [key=value ...]` prints every
  key; where it shows 0, '' or auto, the run decides as the table says. `fathom config check` only
  checks, and says how much memory a rank needs for weights, gradients and the optimizer's state.
- Numbers are decimal, with a point in every locale. A quoted number is text. A value on the command
  line is taken as it stands; one that starts with a quote or a bracket is YAML:
  `'optimizer.betas=[0.9, 0.98]'`.
- Paths are relative to the directory in which the program is started. A corpus (`data.train`,
  `data.valid`, `data.test`) that is not found there is looked for in the config file's folder.
- What a key on the command line implies wins over the file: `model.depth=D24 model.kind=decoder`
  drops the file's layer counts, `optimizer.schedule=inverse-sqrt-w1` its warm-up, and
  `model.topology=pre-ln` options that only another topology has.
- Limits: 1 MiB, 32 levels, one document; no anchors, aliases or tags.

The last column says whether the key may change when a run is resumed: freely, or on request, which is
`--allow-change KEY,KEY,...`, since it changes what is learned. Another changed key is an error that
names both values. Texts are compared by what they hold: those of `data.train` and `data.valid` may lie
elsewhere, another training text is refused, another validation text must be allowed. Where the config
leaves `batch.shards` at 0, a run that is resumed keeps the shards that it began with.
)";

std::string default_of(const Key& key) {
  if (key.name == "run.name") return "name of the file";
  if (key.name == "run.directory") return "runs/NAME";
  return key.get(Config{}).value_or("-");
}

// A value that the contract has and this program does not is marked where the value is listed.
std::string allowed_of(const Key& key) {
  std::string text = key.allowed;
  for (const NotAvailable& missing : key.not_available)
    text += "; " + missing.value + " is not available";
  return text;
}

const char* resume_of(const Key& key) {
  switch (key.may_change) {
    case MayChange::kFreely:
      return "may change";
    case MayChange::kOnRequest:
      return "on request";
    case MayChange::kNever:
      break;
  }
  return "fixed";
}

std::string cell(std::string text) {
  for (size_t at = 0; (at = text.find('|', at)) != text.npos; at += 2) text.replace(at, 1, "\\|");
  return text;
}

}  // namespace

std::string keys_as_text() {
  std::vector<std::array<std::string, 5>> rows = {{"key", "type", "default", "allowed", "meaning"}};
  for (const Key& key : schema())
    rows.push_back({key.name, key.type, default_of(key), allowed_of(key), key.meaning});
  std::array<size_t, 5> widths = {};  // of the last column it stays 0
  for (const auto& row : rows)
    for (size_t i = 0; i < 4; ++i) widths[i] = std::max(widths[i], row[i].size() + 2);
  std::string out;
  for (const auto& row : rows) {
    for (size_t i = 0; i < 5; ++i) out += fmt::format("{:<{}}", row[i], widths[i]);
    out += "\n";
  }
  return out;
}

std::string keys_as_markdown() {
  constexpr auto* kHeader = "| key | type | default | allowed | meaning | resume |\n";
  std::string out(kPreamble), section;
  for (const Key& key : schema()) {
    if (section_of(key.name) != section) {
      section = section_of(key.name);
      out += fmt::format("\n## {}\n\n{}|---|---|---|---|---|---|\n", section, kHeader);
    }
    out += fmt::format("| `{}` | {} | `{}` | {} | {} | {} |\n", key.name, key.type, default_of(key),
                       cell(allowed_of(key)), cell(key.meaning), resume_of(key));
  }
  return out;
}

}  // namespace fathom::launcher
