#include "launcher/config/load.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <istream>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/text.h"
#include "launcher/config/corpus_paths.h"
#include "launcher/config/nearest.h"
#include "launcher/config/resolve.h"
#include "launcher/config/schema.h"
#include "launcher/config/yaml.h"

namespace fathom::launcher {
namespace {

using Kind = YamlNode::Kind;

constexpr const char* kConfigName = "config.yaml";  // in a run's directory

std::string listed(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, ", "));
}

std::string hint(const std::optional<std::string>& meant) {
  return meant ? "; did you mean " + *meant : "";
}

std::string described(const YamlNode& node) {
  if (node.kind == Kind::kNull) return "nothing";
  if (node.kind == Kind::kMap) return "a map";
  if (node.kind == Kind::kList) return join("a list of ", node.items.size());
  const bool shows_quotes = node.quoted || node.text.empty();
  return shows_quotes ? "'" + printable(node.text) + "'" : printable(node.text);
}

[[noreturn]] void refuse_unknown(const std::string& place, const std::string& name) {
  const std::string head = place + ": " + printable(name) + ": unknown key";
  if (const auto meant = nearest_key(name)) fail(head, hint(meant));
  for (std::string section = name; section.find('.') != section.npos;) {
    section.resize(section.rfind('.'));
    if (const auto below = keys_below(section); !below.empty())
      fail(head, ", allowed in ", section, ": ", listed(below));
  }
  const auto meant = nearest(name, sections());
  fail(head, meant ? hint(meant) : ", allowed sections: " + listed(sections()));
}

// What was given, and what was wrong with it.
struct Gathered {
  Problems& problems;
  Settings settings = {};
  std::set<std::string> broken = {};  // sections of which something could not be read

  template <class F>
  void attempt(const std::string& name, const F& f) {
    if (!problems.attempt(f)) broken.insert(section_of(name));
  }
};

// Walks down to the leaves and enters each into the settings; a later one replaces an earlier.
void collect(const YamlNode& node, const std::string& name, Strength strength,
             const std::string& source, Gathered& out) {
  const auto place_of = [&](const YamlNode& at) {
    return strength == Strength::kFile ? join(source, ":", at.line) : source;
  };
  const std::string place = place_of(node);
  if (find_key(name)) {
    out.settings.insert_or_assign(name, Setting{node, strength, place});
    return;
  }
  const bool is_root = name.empty();
  const std::vector<std::string> below = is_root ? sections() : keys_below(name);
  if (below.empty()) refuse_unknown(place, name);
  if (node.kind == Kind::kNull && strength == Strength::kFile) return;
  require(node.kind == Kind::kMap, place, ": ", is_root ? "" : name + ": ", "got ", described(node),
          ", allowed a map of ", is_root ? "sections: " : "keys: ", listed(below));
  const auto collect_item = [&](const YamlNode& item) {
    require(!item.key.empty(), place_of(item), ": an empty key");
    const std::string path = is_root ? item.key : name + "." + item.key;
    // A second spelling of a key would get past the check for duplicates.
    const bool has_point = item.key.find('.') != item.key.npos;
    const bool is_known = find_key(path) != nullptr || !keys_below(path).empty();
    require(!has_point || !is_known, place_of(item), ": ", path,
            ": a point in a key, allowed are nested maps: ", path.substr(0, path.rfind('.')), ": {",
            path.substr(path.rfind('.') + 1), ": ...}");
    collect(item, path, strength, source, out);
  };
  for (const YamlNode& item : node.items)
    out.attempt(is_root ? item.key : name, [&] { collect_item(item); });
}

// `key=value`. The value is text as it stands, so that a path may hold any character; one that
// starts with a quote or bracket is YAML, unless it is none and text is meant: [::1]:9464.
YamlNode value_of_word(const std::string& name, const std::string& text, const std::string& place) {
  const YamlNode plain = {.kind = Kind::kScalar, .text = text};
  if (text.empty() || std::strchr("'\"[{", text[0]) == nullptr) return plain;
  const Key* key = find_key(name);
  const bool is_text =
      key != nullptr && key->type == "text" && std::strchr("[{", text[0]) != nullptr;
  try {
    return read_yaml(text, place + ": " + printable(name));
  } catch (const InvalidArgument&) {
    if (!is_text) throw;
    return plain;
  }
}

void collect_override(const std::string& word, Gathered& out) {
  const std::string place = "command line";
  const size_t equals = word.find('=');
  require(equals != word.npos && equals > 0, place, ": got ", printable(word),
          ", allowed key=value");
  const std::string name = word.substr(0, equals), text = word.substr(equals + 1);
  require(text.size() <= kMaxConfigBytes, place, ": ", printable(name), ": too long");
  collect(value_of_word(name, text, place), name, Strength::kCommandLine, place, out);
}

void apply(const std::string& name, const Setting& setting, Config& config) {
  const Key& key = *find_key(name);
  const YamlNode& value = setting.value;
  for (const NotAvailable& missing : key.not_available)
    require(!value.is_scalar() || value.text != missing.value, setting.place, ": ", name, ": got ",
            missing.value, ", which is not available: ", missing.reason);
  if (key.set(config, value)) return;
  const auto meant = key.meant.find(value.text);
  const bool is_unprintable =
      key.type == "text" && value.is_scalar() && find_unprintable(value.text) != value.text.npos;
  fail(setting.place, ": ", name, ": got ", described(value),
       setting.strength == Strength::kDefault ? " (the file's name)" : "", ", allowed ",
       key.allowed,
       is_unprintable ? "; it is not UTF-8, or holds control characters: rename what it names, or "
                        "give it a link with another name"
                      : "",
       hint(meant != key.meant.end() ? meant->second : nearest(value.text, key.choices)));
}

// `model.depth` stands for two keys: it replaces weaker ones and must agree with its equals.
void replace_depth(Settings& settings) {
  const auto found = settings.extract("model.depth");
  if (!found) return;
  const Setting& depth = found.mapped();
  Config config;
  apply("model.depth", depth, config);
  for (const std::string name : {"model.encoder_layers", "model.decoder_layers"}) {
    const std::string implied = value_of(config, name);
    const YamlNode value = {.kind = Kind::kScalar, .text = implied};
    Setting& own = settings.try_emplace(name).first->second;
    if (own.strength < depth.strength) own = {value, depth.strength, depth.place};
    if (own.strength > depth.strength) continue;
    Config stated;
    apply(name, own, stated);
    require(value_of(stated, name) == implied, own.place, ": ", name, ": got ",
            value_of(stated, name), ", allowed ", implied, " with model.depth ", depth.value.text,
            "; give one of the two");
  }
}

std::string read_config(const std::filesystem::path& path) {
  const std::string name = printable(path.string());
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  require(std::filesystem::exists(status), name, ": no such config file");
  require(!std::filesystem::is_directory(status), name,
          ": is a directory without a config.yaml, allowed a config file or a run's directory");
  const FileDescriptor file = open_to_read(path);
  require(file.is_open(), name, ": cannot be opened: ", errno_text(errno));
  std::string text;
  const int reason = read_to_end(file, text, kMaxConfigBytes + 1);
  require(reason == 0, name, ": cannot be read: ", errno_text(reason));
  require(text.size() <= kMaxConfigBytes, name, ": is larger than ", kMaxConfigBytes,
          " bytes, the most that a config may have");
  return text;
}

std::filesystem::path config_file_of(const std::filesystem::path& path) {
  const std::filesystem::path in_run = path / kConfigName;
  return std::filesystem::is_regular_file(in_run) ? in_run : path;
}

// A run that was moved or copied is where its config lies, whatever that says.
bool lies_in_a_run(const std::filesystem::path& file) {
  return file.filename() == kConfigName && std::filesystem::exists(parent_of(file) / ".owner");
}

bool names_run_directory(const std::vector<std::string>& overrides) {
  return std::any_of(overrides.begin(), overrides.end(),
                     [](const std::string& word) { return word.starts_with("run.directory="); });
}

GatheredConfig gather(std::string_view text, const std::string& source,
                      const std::string& default_name, const std::vector<std::string>& overrides,
                      Problems& problems) {
  Gathered given{problems};
  // Of a file that is no YAML nothing is known, and every rule might speak of a default.
  const bool is_yaml = problems.attempt(
      [&] { collect(read_yaml(text, source), "", Strength::kFile, source, given); });
  for (const std::string& word : overrides)
    given.attempt(word.substr(0, word.find('=')), [&] { collect_override(word, given); });
  given.attempt("model", [&] { replace_depth(given.settings); });
  // Not a value anyone wrote: refused like one, but at no line.
  const YamlNode name = {.kind = Kind::kScalar, .text = default_name};
  given.settings.try_emplace("run.name", Setting{name, Strength::kDefault, source});
  GatheredConfig out;
  for (const auto& [key, setting] : given.settings)
    given.attempt(key, [&] { apply(key, setting, out.config); });
  if (!is_yaml)
    for (const std::string& section : sections()) given.broken.insert(section);
  out.broken = std::move(given.broken);
  resolve(out.config, given.settings, source, out.broken, problems);
  return out;
}

}  // namespace

Config parse_config(std::string_view text, const std::string& source,
                    const std::string& default_name, const std::vector<std::string>& overrides) {
  Problems problems;
  Config config = gather(text, source, default_name, overrides, problems).config;
  if (!problems.empty()) fail(problems.errors().front().what());
  return config;
}

ConfigSource config_source(const std::filesystem::path& path) {
  const std::filesystem::path file = config_file_of(path);
  ConfigSource source = {.text = read_config(file),
                         .name = printable(file.string()),
                         .run_name = file.stem().string(),
                         .folder = file.parent_path(),
                         .run = {}};
  if (lies_in_a_run(file)) source.run = parent_of(file);
  return source;
}

ConfigSource config_source(std::istream& in) {
  std::string text(kMaxConfigBytes + 1, '\0');
  in.read(text.data(), std::streamsize(text.size()));
  text.resize(size_t(in.gcount()));
  return {.text = std::move(text), .name = "standard input", .run_name = "stdin"};
}

GatheredConfig gather_config(const ConfigSource& source, const std::vector<std::string>& overrides,
                             Problems& problems) {
  GatheredConfig out = gather(source.text, source.name, source.run_name, overrides, problems);
  if (!source.run.empty() && !names_run_directory(overrides)) out.config.run.directory = source.run;
  expand_home(out.config);
  find_corpora(out.config.data, source.folder);
  return out;
}

Config load_config(const std::filesystem::path& path, const std::vector<std::string>& overrides) {
  Problems problems;
  Config config = gather_config(config_source(path), overrides, problems).config;
  if (!problems.empty()) fail(problems.errors().front().what());
  return config;
}

void check_complete(const Config& config, const std::string& source, Problems& problems) {
  for (const Key& key : schema()) {
    if (!key.is_required || key.get(config) != key.get(Config{})) continue;
    problems.add(InvalidArgument(
        join(source, ": ", key.name, ": is not set, allowed a path; a run needs it")));
  }
}

void check_complete(const Config& config, const std::string& source) {
  Problems problems;
  check_complete(config, source, problems);
  if (!problems.empty()) fail(problems.errors().front().what());
}

}  // namespace fathom::launcher
