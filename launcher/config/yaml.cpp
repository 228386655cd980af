#include "launcher/config/yaml.h"

#include <algorithm>
#include <array>
#include <istream>
#include <map>
#include <streambuf>
#include <utility>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include "core/base/error.h"
#include "core/base/text.h"

namespace fathom::launcher {

namespace {

bool is_control(std::string_view text, size_t at) {
  const auto c = uint8_t(text[at]);
  // U+0080 to U+009F are controls too; U+0085 is a line end to some YAML readers.
  return c < 0x20 || c == 0x7F ||
         (c == 0xC2 && at + 1 < text.size() && uint8_t(text[at + 1]) < 0xA0);
}

// Where the first byte stands that a config may not hold; npos if there is none.
size_t first_unclean(std::string_view text, Whitespace whitespace) {
  for (size_t at = 0; at < text.size();) {
    const size_t length = utf8_length(text, at);
    if (length == 0) return at;
    const char c = text[at];
    const bool line_space = c == '\n' || c == '\r' || c == '\t';
    if (is_control(text, at) && !(line_space && whitespace == Whitespace::kLines)) return at;
    at += length;
  }
  return std::string_view::npos;
}

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
    check_plain(mark, "?", anchor);
    add({.line = line_of(mark)}, mark);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    refuse(mark, "aliases (*name) are not allowed; write the value out");
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    check_plain(mark, tag, anchor);
    add({.kind = YamlNode::Kind::kScalar,
         .text = value,
         .quoted = tag == "!",
         .line = line_of(mark)},
        mark);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(YamlNode::Kind::kList, mark, tag, anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(YamlNode::Kind::kMap, mark, tag, anchor);
  }
  void OnMapEnd() override { close(); }

 private:
  // An unclosed bracket can reach here too: yaml-cpp takes it for a map without keys.
  static constexpr const char* kBadKey = "a key must be plain text; is a bracket left open?";

  struct Frame {
    YamlNode node;
    YAML::Mark mark;
    bool has_key = false;
    std::string key = {};
    int key_line = 0;
    std::map<std::string, int> first_line = {};
  };

  static int line_of(const YAML::Mark& mark) { return mark.line + 1; }

  [[noreturn]] void refuse(const YAML::Mark& mark, const std::string& what) const {
    fail(source_, ":", line_of(mark), ": ", what);
  }
  void check_plain(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) const {
    if (anchor != 0) refuse(mark, "anchors (&name) are not allowed; write the value out");
    if (!tag.empty() && tag != "?" && tag != "!")
      refuse(mark, "tags (" + printable(tag) + ") are not allowed; the key decides the type");
  }

  void open(YamlNode::Kind kind, const YAML::Mark& mark, const std::string& tag,
            YAML::anchor_t anchor) {
    check_plain(mark, tag, anchor);
    if (awaits_key()) refuse(mark, kBadKey);
    if (frames_.size() >= kMaxYamlDepth)
      refuse(mark, join("nested deeper than ", kMaxYamlDepth, " levels"));
    frames_.push_back({.node = {.kind = kind, .line = line_of(mark)}, .mark = mark});
  }
  void close() {
    Frame frame = std::move(frames_.back());
    frames_.pop_back();
    add(std::move(frame.node), frame.mark);
  }

  [[nodiscard]] bool awaits_key() const {
    return !frames_.empty() && frames_.back().node.kind == YamlNode::Kind::kMap &&
           !frames_.back().has_key;
  }

  void add(YamlNode node, const YAML::Mark& mark) {
    if (frames_.empty()) {
      root_ = std::move(node);
      return;
    }
    Frame& parent = frames_.back();
    if (awaits_key()) {
      if (node.kind != YamlNode::Kind::kScalar) refuse(mark, kBadKey);
      const auto [first, is_new] = parent.first_line.emplace(node.text, node.line);
      if (!is_new)
        refuse(mark,
               join(path_to(node.text), ": duplicate key, first given in line ", first->second));
      parent.has_key = true;
      parent.key = node.text;
      parent.key_line = node.line;
      return;
    }
    if (parent.has_key) {
      node.key = std::move(parent.key);
      node.line = parent.key_line;
      parent.has_key = false;
    }
    parent.node.items.push_back(std::move(node));
  }

  [[nodiscard]] std::string path_to(const std::string& key) const {
    std::string path;
    for (const Frame& frame : frames_)
      if (frame.has_key) path += frame.key + ".";
    return printable(path + key);
  }

  const std::string& source_;
  YamlNode root_;
  std::vector<Frame> frames_;
  int documents_ = 0;
};

// Reads from memory; a string stream would take the global locale along.
class MemoryBuffer final : public std::streambuf {
 public:
  explicit MemoryBuffer(std::string& text) {
    setg(text.data(), text.data(), text.data() + text.size());
  }
};

}  // namespace

YamlNode read_yaml(std::string_view text, const std::string& source) {
  require(text.size() <= kMaxConfigBytes, source, ": has ", text.size(), " bytes, allowed are ",
          kMaxConfigBytes);
  // yaml-cpp takes byte 4 for the end of the file and would drop all that follows.
  if (const size_t bad = first_unclean(text, Whitespace::kLines); bad != text.npos)
    fail(source, ":", 1 + std::count(text.begin(), text.begin() + ptrdiff_t(bad), '\n'),
         ": holds a control character or is not UTF-8, allowed is UTF-8 text");

  std::string copy(text);
  MemoryBuffer buffer(copy);
  std::istream stream(&buffer);
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
         ": not valid YAML: ", printable(e.msg));
  }
  return builder.take_root();
}

bool is_clean_text(std::string_view text, Whitespace whitespace) {
  return first_unclean(text, whitespace) == text.npos;
}

std::string printable(std::string_view text) {
  constexpr size_t kMost = 60;
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t length = std::max<size_t>(utf8_length(text, at), 1);
    if (out.size() + length > kMost) return out + "...";
    const bool broken = utf8_length(text, at) == 0 || is_control(text, at);
    out += broken ? std::string_view("?") : text.substr(at, length);
    at += length;
  }
  return out;
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
