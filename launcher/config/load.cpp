#include "launcher/config/load.h"

#include <cerrno>
#include <cstring>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "core/base/error.h"
#include "core/base/file.h"
#include "launcher/config/resolve.h"
#include "launcher/config/schema.h"
#include "launcher/config/yaml.h"

namespace fathom::launcher {

namespace {

// A key with the value that won.
struct Setting {
  YamlNode value;
  Origin origin;
};
using Settings = std::map<std::string, Setting, std::less<>>;

std::string joined(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, ", "));
}

std::vector<std::string> sections() {
  std::vector<std::string> names;
  for (const Key& key : schema()) {
    const std::string section = key.name.substr(0, key.name.find('.'));
    if (names.empty() || names.back() != section) names.push_back(section);
  }
  return names;
}

std::string described(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::kNull:
      return "nothing";
    case YamlNode::Kind::kList:
      return join("a list of ", node.items.size());
    case YamlNode::Kind::kMap:
      return "a map";
    case YamlNode::Kind::kScalar:
      break;
  }
  return node.quoted || node.text.empty() ? "'" + printable(node.text) + "'" : printable(node.text);
}

[[noreturn]] void refuse_unknown(const std::string& place, const std::string& name) {
  const std::string head = place + ": " + printable(name) + ": unknown key";
  if (const auto meant = nearest_key(name)) fail(head, "; did you mean ", *meant);
  for (std::string section = name; section.find('.') != section.npos;) {
    section.resize(section.rfind('.'));
    if (const auto below = keys_below(section); !below.empty())
      fail(head, ", allowed in ", section, ": ", joined(below));
  }
  const auto meant = nearest(name, sections());
  fail(head, meant ? "; did you mean " + *meant : ", allowed sections: " + joined(sections()));
}

// Walks down to the leaves and enters each into `settings`; a later one replaces an earlier.
void collect(const YamlNode& node, const std::string& name, const Origin& origin,
             const std::string& source, Settings& settings) {
  if (find_key(name)) {
    settings.insert_or_assign(name, Setting{.value = node, .origin = origin});
    return;
  }
  const bool is_root = name.empty();
  if (!is_root && keys_below(name).empty()) refuse_unknown(origin.place, name);
  if (node.kind == YamlNode::Kind::kNull && origin.strength == Strength::kFile) return;
  if (node.kind != YamlNode::Kind::kMap)
    fail(origin.place, ": ", is_root ? "" : name + ": ", "got ", described(node),
         ", allowed a map of ",
         is_root ? "sections: " : "keys: ", joined(is_root ? sections() : keys_below(name)));
  for (const YamlNode& item : node.items) {
    const std::string path = is_root ? item.key : name + "." + item.key;
    Origin own = origin;
    if (origin.strength == Strength::kFile) own.place = join(source, ":", item.line);
    require(!item.key.empty(), own.place, ": an empty key");
    // A second spelling of a key would get past the check for duplicates.
    const bool exists = find_key(path) != nullptr || !keys_below(path).empty();
    require(!exists || item.key.find('.') == item.key.npos, own.place, ": ", path,
            ": a point in a key, allowed are nested maps: ", path.substr(0, path.rfind('.')), ": {",
            path.substr(path.rfind('.') + 1), ": ...}");
    collect(item, path, own, source, settings);
  }
}

// `key=value`. The value is text as it stands, so that a path may hold any character; one that
// starts with a quote or bracket is YAML.
void collect_override(const std::string& word, Settings& settings) {
  const std::string place = "command line";
  const size_t equals = word.find('=');
  require(equals != word.npos && equals > 0, place, ": got ", printable(word),
          ", allowed key=value");
  const std::string name = word.substr(0, equals);
  const std::string text = word.substr(equals + 1);
  const bool is_yaml = !text.empty() && std::strchr("'\"[{", text[0]) != nullptr;
  require(is_yaml || text.size() <= kMaxConfigBytes, place, ": ", printable(name), ": too long");
  YamlNode node = {.kind = YamlNode::Kind::kScalar, .text = text};
  if (is_yaml) node = read_yaml(text, place + ": " + printable(name));
  collect(node, name, {.strength = Strength::kCommandLine, .place = place}, place, settings);
}

void apply(const std::string& name, const Setting& setting, Config& config) {
  const Key& key = *find_key(name);
  const YamlNode& value = setting.value;
  const std::string place = setting.origin.place + ": " + name + ": ";
  if (value.kind == YamlNode::Kind::kScalar)
    for (const NotAvailable& missing : key.not_available)
      if (value.text == missing.value)
        fail(place, "got ", missing.value, ", which is not available: ", missing.reason);
  if (key.set(config, value)) return;
  const auto meant = nearest(value.text, key.choices);
  fail(place, "got ", described(value), ", allowed ", key.allowed,
       meant ? "; did you mean " + *meant : "");
}

// `model.depth` stands for two keys: it replaces weaker ones and must agree with its equals.
void replace_depth(Settings& settings) {
  const auto found = settings.find("model.depth");
  if (found == settings.end()) return;
  const Setting depth = found->second;
  Config config;
  apply("model.depth", depth, config);
  for (const std::string name : {"model.encoder_layers", "model.decoder_layers"}) {
    const std::string implied = value_of(config, name);
    const auto own = settings.find(name);
    const bool holds =
        own != settings.end() && own->second.origin.strength >= depth.origin.strength;
    if (holds && own->second.origin.strength == depth.origin.strength) {
      Config stated;
      apply(name, own->second, stated);
      require(value_of(stated, name) == implied, own->second.origin.place, ": ", name, ": got ",
              value_of(stated, name), ", allowed ", implied, " with model.depth ", depth.value.text,
              "; give one of the two");
    }
    if (holds) continue;
    const YamlNode value = {.kind = YamlNode::Kind::kScalar, .text = implied};
    settings.insert_or_assign(name, Setting{.value = value, .origin = depth.origin});
  }
  settings.erase("model.depth");
}

std::string read_config(const std::filesystem::path& path) {
  const std::string name = printable(path.string());
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  require(std::filesystem::exists(status), name, ": no such config file");
  require(!std::filesystem::is_directory(status), name, ": is a directory, allowed a config file");
  const FileDescriptor file = open_to_read(path);
  require(file.is_open(), name, ": cannot be opened: ", errno_text(errno));
  std::string text;
  const int reason = read_to_end(file, text, kMaxConfigBytes + 1);
  require(reason == 0, name, ": cannot be read: ", errno_text(reason));
  require(text.size() <= kMaxConfigBytes, name, ": is larger than ", kMaxConfigBytes,
          " bytes, the most that a config may have");
  return text;
}

}  // namespace

Config parse_config(std::string_view text, const std::string& source,
                    const std::string& default_name, const std::vector<std::string>& overrides) {
  Settings settings;
  const YamlNode root = read_yaml(text, source);
  collect(root, "", {.strength = Strength::kFile, .place = join(source, ":", root.line)}, source,
          settings);
  for (const std::string& word : overrides) collect_override(word, settings);
  replace_depth(settings);

  // Not a value anyone wrote: refused like one, but at no line.
  if (!settings.contains("run.name")) {
    const YamlNode name = {.kind = YamlNode::Kind::kScalar, .text = default_name};
    settings.emplace(
        "run.name",
        Setting{.value = name, .origin = {.strength = Strength::kDefault, .place = source}});
  }
  Config config;
  Origins origins;
  for (const auto& [name, setting] : settings) {
    apply(name, setting, config);
    if (setting.origin.strength != Strength::kDefault) origins.emplace(name, setting.origin);
  }
  resolve(config, origins, source);
  return config;
}

Config load_config(const std::filesystem::path& path, const std::vector<std::string>& overrides) {
  return parse_config(read_config(path), printable(path.string()), path.stem().string(), overrides);
}

void check_complete(const Config& config, const std::string& source) {
  for (const auto& [key, value] :
       {std::pair("data.train", &config.data.train), std::pair("data.valid", &config.data.valid)})
    require(!value->empty(), source, ": ", key, ": is not set, allowed a path; a run needs it");
}

}  // namespace fathom::launcher
