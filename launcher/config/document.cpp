#include "launcher/config/document.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fnmatch.h>

#include "core/base/error.h"
#include "core/base/text.h"
#include "launcher/config/nearest.h"
#include "monitoring/json.h"

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
  checks: it names everything that is wrong, in the texts too, or says what the run would be.
  `fathom config keys PATTERN` prints the keys whose name contains a word or is matched by a glob.
- Numbers are decimal, with a point in every locale; `1_000` and `1e3` are integers too. A quoted
  number is text. A value on the command line is taken as it stands; one that starts with a quote
  or a bracket is YAML: `'optimizer.betas=[0.9, 0.98]'`.
- Paths are relative to the directory in which the program is started; `~/` is the home directory.
  A corpus (`data.train`, `data.valid`, `data.test`) that is not found there is looked for in the
  config file's folder.
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
  if (key.is_required) return "none: required";
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

// Indented, in lines of at most 100 columns.
std::string wrapped(const std::string& text) {
  constexpr size_t kColumns = 100;
  const std::string indent = "    ";
  std::string out, line = indent;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    if (line.size() > indent.size() && line.size() + 1 + word.size() > kColumns)
      out += std::exchange(line, indent) + "\n";
    line += (line.size() > indent.size() ? " " : "") + word;
    begin = end + 1;
  }
  return out + line + "\n";
}

std::string cell(std::string text) {
  for (size_t at = 0; (at = text.find('|', at)) != text.npos; at += 2) text.replace(at, 1, "\\|");
  return text;
}

}  // namespace

std::vector<const Key*> keys_like(const std::string& pattern) {
  const bool is_glob = pattern.find_first_of("*?") != pattern.npos;
  std::vector<const Key*> found;
  std::vector<std::string> names = sections();
  for (const Key& key : schema()) {
    const bool is_it = is_glob ? ::fnmatch(pattern.c_str(), key.name.c_str(), 0) == 0
                               : key.name.find(pattern) != key.name.npos;
    if (is_it) found.push_back(&key);
    names.push_back(key.name);
    names.push_back(key.name.substr(key.name.rfind('.') + 1));
  }
  if (!found.empty()) return found;
  const auto meant = nearest(pattern, names);
  fail("config keys: no key is like ", printable(pattern),
       meant ? "; did you mean " + *meant : "; fathom config keys lists them all");
}

std::string keys_as_text(const std::vector<const Key*>& keys) {
  std::string out;
  for (const Key* key : keys) {
    if (!out.empty()) out += "\n";
    out += fmt::format("{:<36}  {}\n", key->name,
                       key->is_required ? "required" : "default " + default_of(*key));
    const std::string allowed = allowed_of(*key);
    const std::string type = allowed.starts_with(key->type) ? "" : key->type + ": ";
    out += wrapped(type + allowed + "; on a resume: " + resume_of(*key));
    out += wrapped(key->meaning);
  }
  return out;
}

std::string keys_as_json(const std::vector<const Key*>& keys) {
  std::string out = "[";
  const auto texts = [](const std::vector<std::string>& words) {
    monitoring::Array array;
    for (const std::string& word : words) array.emplace_back(word);
    return array;
  };
  for (const Key* key : keys) {
    monitoring::Object object = {{"name", key->name}, {"type", key->type}};
    const auto value = key->get(Config{});
    const bool has_default =
        value && !key->is_required && key->name != "run.name" && key->name != "run.directory";
    if (has_default) object.emplace_back("default", *value);
    std::vector<std::string> missing;
    for (const NotAvailable& m : key->not_available) missing.push_back(m.value);
    object.insert(object.end(), {{"required", key->is_required},
                                 {"allowed", key->allowed},
                                 {"choices", texts(key->choices)},
                                 {"not_available", texts(missing)},
                                 {"resume", resume_of(*key)},
                                 {"meaning", key->meaning}});
    out += (out.size() > 1 ? ",\n" : "\n") + monitoring::to_json(object);
  }
  return out + "\n]\n";
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
