#include "launcher/config/yaml.h"

#include <algorithm>
#include <array>
#include <locale>
#include <map>
#include <sstream>
#include <utility>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include "core/base/error.h"
#include "core/base/text.h"

namespace fathom::launcher {
namespace {

using Kind = YamlNode::Kind;

// Puts the parser's events together to a tree.
class TreeBuilder final : public YAML::EventHandler {
 public:
  explicit TreeBuilder(const std::string& source) : source_(source) {}
  YamlNode take_root() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1) refuse(mark, "a second document starts here, allowed is one");
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    add({}, mark, "?", anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    refuse(mark, "aliases (*name) are not allowed; write the value out");
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    add({.kind = Kind::kScalar, .text = value, .quoted = tag == "!"}, mark, tag, anchor);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(Kind::kList, mark, tag, anchor);
  }
  void OnSequenceEnd() override { open_.pop_back(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(Kind::kMap, mark, tag, anchor);
  }
  void OnMapEnd() override { open_.pop_back(); }

 private:
  // A list or map that is not closed. Its node stays where it is while items are added to it.
  struct Open {
    YamlNode* node;
    bool has_key = false;  // of a map: the last item waits for its value
    std::map<std::string, int> first_line = {};
  };

  [[noreturn]] void refuse(const YAML::Mark& mark, const std::string& what) const {
    fail(source_, ":", mark.line + 1, ": ", what);
  }

  void open(Kind kind, const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    YamlNode* const node = add({.kind = kind}, mark, tag, anchor);
    if (open_.size() >= kMaxYamlDepth)
      refuse(mark, join("nested deeper than ", kMaxYamlDepth, " levels"));
    open_.push_back({.node = node});
  }

  // Where the node is now; nullptr for the key of a map.
  YamlNode* add(YamlNode node, const YAML::Mark& mark, const std::string& tag,
                YAML::anchor_t anchor) {
    if (anchor != 0) refuse(mark, "anchors (&name) are not allowed; write the value out");
    if (!tag.empty() && tag != "?" && tag != "!")
      refuse(mark, "tags (" + printable(tag) + ") are not allowed; the key decides the type");
    node.line = mark.line + 1;
    if (open_.empty()) return &(root_ = std::move(node));
    Open& parent = open_.back();
    std::vector<YamlNode>& items = parent.node->items;
    if (parent.node->kind == Kind::kList) return &items.emplace_back(std::move(node));
    parent.has_key = !parent.has_key;
    if (parent.has_key) {
      add_key(parent, node, mark);
      return nullptr;
    }
    node.key = std::move(items.back().key);
    node.line = items.back().line;
    return &(items.back() = std::move(node));
  }

  void add_key(Open& map, const YamlNode& key, const YAML::Mark& mark) {
    // An unclosed bracket can reach here too: yaml-cpp takes it for a map without keys.
    if (!key.is_scalar()) refuse(mark, "a key must be plain text; is a bracket left open?");
    const auto [first, is_new] = map.first_line.emplace(key.text, key.line);
    if (!is_new)
      refuse(mark, join(path_to(key.text), ": duplicate key, first given in line ", first->second));
    map.node->items.push_back({.key = key.text, .line = key.line});
  }

  [[nodiscard]] std::string path_to(const std::string& key) const {
    std::string path;
    for (size_t i = 1; i < open_.size(); ++i)
      if (open_[i - 1].node->kind == Kind::kMap) path += open_[i].node->key + ".";
    return printable(path + key);
  }

  const std::string& source_;
  YamlNode root_;
  std::vector<Open> open_;
  int documents_ = 0;
};

}  // namespace

YamlNode read_yaml(std::string_view text, const std::string& source) {
  require(text.size() <= kMaxConfigBytes, source, ": has ", text.size(), " bytes, allowed are ",
          kMaxConfigBytes);
  // yaml-cpp takes byte 4 for the end of the file and would drop all that follows.
  if (const size_t bad = find_unprintable(text, "\n\r\t"); bad != text.npos)
    fail(source, ":", 1 + std::count(text.begin(), text.begin() + ptrdiff_t(bad), '\n'),
         ": holds a control character or is not UTF-8, allowed is UTF-8 text");

  std::istringstream stream{std::string(text)};
  stream.imbue(std::locale::classic());
  TreeBuilder builder(source);
  try {
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& e) {
    // An unexpected end is reported past the last line.
    const bool open_end = !text.empty() && text.back() != '\n';
    const auto lines = int(std::count(text.begin(), text.end(), '\n')) + (open_end ? 1 : 0);
    fail(source, ":", std::max(1, std::min(e.mark.line + 1, lines)),
         ": not valid YAML: ", printable(e.msg),
         text.find('\t') != text.npos ? "; is a line indented with a tab? YAML takes spaces" : "");
  }
  return builder.take_root();
}

std::string quote_yaml(const std::string& text) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const auto is_safe = [&](char c) {
    return is_letter(c) || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.' || c == '/';
  };
  // Words that YAML 1.1 readers take for a boolean or null.
  constexpr std::array kWords = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"};
  std::string lower = text;
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = char(c - 'A' + 'a');
  const bool plain = !text.empty() && (is_letter(text[0]) || text[0] == '/') &&
                     std::all_of(text.begin(), text.end(), is_safe) &&
                     std::find(kWords.begin(), kWords.end(), lower) == kWords.end();
  if (plain) return text;
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("''") : std::string(1, c);
  return out + "'";
}

}  // namespace fathom::launcher
