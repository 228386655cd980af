#include "launcher/config/yaml.h"

#include <string>

#include <gtest/gtest.h>

#include "core/base/error.h"

namespace fathom::launcher {
namespace {

std::string refused(const std::string& text) {
  try {
    (void)read_yaml(text, "c.yaml");
    return "accepted";
  } catch (const InvalidArgument& e) {
    return e.what();
  }
}

TEST(Yaml, KeepsOrderKindAndLineOfEveryEntry) {
  const YamlNode root = read_yaml("# note\na: 1\n\nb:\n  c: '2'\n  d: [3, x]\n  e:\n", "c.yaml");

  ASSERT_EQ(root.kind, YamlNode::Kind::kMap);
  ASSERT_EQ(root.items.size(), 2u);
  EXPECT_EQ(root.items[0].key, "a");
  EXPECT_EQ(root.items[0].text, "1");
  EXPECT_FALSE(root.items[0].quoted);
  EXPECT_EQ(root.items[0].line, 2);
  const YamlNode& b = root.items[1];
  EXPECT_EQ(b.line, 4);
  ASSERT_EQ(b.items.size(), 3u);
  EXPECT_TRUE(b.items[0].quoted);
  EXPECT_EQ(b.items[0].line, 5);
  EXPECT_EQ(b.items[1].kind, YamlNode::Kind::kList);
  EXPECT_EQ(b.items[1].items[1].text, "x");
  EXPECT_EQ(b.items[2].kind, YamlNode::Kind::kNull);
  EXPECT_EQ(b.items[2].line, 7);
}

TEST(Yaml, TakesAFileWithoutADocumentForNothing) {
  for (const std::string text : {"", "\n\n", "# only a note\n", "---\n", "~\n"})
    EXPECT_EQ(read_yaml(text, "c.yaml").kind, YamlNode::Kind::kNull) << text;
}

TEST(Yaml, RefusesDuplicateKeysAtEveryLevel) {
  EXPECT_EQ(refused("a: 1\nb: 2\na: 3\n"), "c.yaml:3: a: duplicate key, first given in line 1");
  EXPECT_EQ(refused("a:\n  b:\n    c: 1\n    c: 1\n"),
            "c.yaml:4: a.b.c: duplicate key, first given in line 3");
  EXPECT_EQ(refused("{a: 1, \"a\": 2}"), "c.yaml:1: a: duplicate key, first given in line 1");
}

TEST(Yaml, RefusesWhatAConfigHasNoUseFor) {
  EXPECT_EQ(refused("a: &x 1\nb: 2\n"),
            "c.yaml:1: anchors (&name) are not allowed; write the value out");
  EXPECT_EQ(refused("a: &x {c: 1}\nb: *x\n"),
            "c.yaml:1: anchors (&name) are not allowed; write the value out");
  EXPECT_EQ(refused("a: 1\nb: !!int 2\n"),
            "c.yaml:2: tags (tag:yaml.org,2002:int) are not allowed; the key decides the type");
  EXPECT_EQ(refused("a: 1\n---\nb: 2\n"),
            "c.yaml:2: a second document starts here, allowed is one");
  EXPECT_EQ(refused("? [a, b]\n: 1\n"),
            "c.yaml:1: a key must be plain text; is a bracket left open?");
  EXPECT_EQ(refused("a: 1\n~: 1\n"), "c.yaml:2: a key must be plain text; is a bracket left open?");
}

TEST(Yaml, RefusesAnAliasWithoutAnchor) {
  EXPECT_EQ(refused("a: 1\nb: *x\n"),
            "c.yaml:2: not valid YAML: the referenced anchor is not defined");
}

TEST(Yaml, NamesTheLineOfASyntaxError) {
  EXPECT_EQ(refused("a: 1\nb: [1, 2\n").substr(0, 27), "c.yaml:2: not valid YAML: e");
  EXPECT_EQ(refused("a: 1\n b: 2\n").substr(0, 26), "c.yaml:2: not valid YAML: ");
  EXPECT_TRUE(
      refused("a:\n\tb: 2\n").ends_with("; is a line indented with a tab? YAML takes spaces"));
}

TEST(Yaml, LimitsNesting) {
  const auto nested = [](size_t depth) {
    return "a: " + std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_EQ(refused(nested(kMaxYamlDepth - 1)), "accepted");
  EXPECT_EQ(refused(nested(kMaxYamlDepth)), "c.yaml:1: nested deeper than 32 levels");
  EXPECT_EQ(refused(nested(100'000)), "c.yaml:1: nested deeper than 32 levels");
}

TEST(Yaml, LimitsSize) {
  EXPECT_EQ(refused(std::string(kMaxConfigBytes, '\n')), "accepted");
  EXPECT_EQ(refused(std::string(kMaxConfigBytes + 1, '\n')),
            "c.yaml: has 1048577 bytes, allowed are 1048576");
}

// yaml-cpp alone ends the file at byte 4 and drops the rest.
TEST(Yaml, RefusesControlCharactersAndBrokenText) {
  const std::string why = "holds a control character or is not UTF-8, allowed is UTF-8 text";
  EXPECT_EQ(refused("a: 1\n\x04\nb: 2\n"), "c.yaml:2: " + why);
  EXPECT_EQ(refused(std::string("a: 1\nb: \0", 9)), "c.yaml:2: " + why);
  EXPECT_EQ(refused("a: \xC3\n"), "c.yaml:1: " + why);
  EXPECT_EQ(refused("a: \xC0\x80\n"), "c.yaml:1: " + why);          // overlong
  EXPECT_EQ(refused("a: \xED\xA0\x80\n"), "c.yaml:1: " + why);      // surrogate
  EXPECT_EQ(refused("a: \xF4\x90\x80\x80\n"), "c.yaml:1: " + why);  // past U+10FFFF
  EXPECT_EQ(refused("a: \xC2\x85\n"), "c.yaml:1: " + why);          // U+0085, a line end to some
  EXPECT_EQ(refused("a: \xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80\n"), "accepted");
  EXPECT_EQ(refused("\xEF\xBB\xBF"
                    "a: 1\r\n"),
            "accepted");
}

TEST(Yaml, QuotedTextReadsBack) {
  for (const std::string text :
       {"plain", "runs/a-b_c.1",   "",    "no",  "Off", "null",    "~",  "1.5", "it's",
        "a: b",  "a #b",           " a ", "#",   "*x",  "&x",      "!x", "[1]", "{a}",
        "- a",   "127.0.0.1:9464", "\"",  "\\n", "%a",  "\xC3\xA9"}) {
    const YamlNode root = read_yaml("a: " + quote_yaml(text) + "\n", "c.yaml");
    ASSERT_EQ(root.items.at(0).kind, YamlNode::Kind::kScalar) << text;
    EXPECT_EQ(root.items.at(0).text, text);
  }
}

}  // namespace
}  // namespace fathom::launcher
