// Whatever the bytes, loading gives a Config or InvalidArgument; and a Config it gives can be shown
// and loaded again.
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "core/base/philox.h"
#include "launcher/config/schema.h"
#include "launcher/config/show.h"
#include "tests/launcher/config/support.h"

namespace fathom::launcher {
namespace {

// A source of small numbers; the same ones in every run.
class Chance {
 public:
  explicit Chance(uint64_t seed) : stream_(seed, "config fuzz") {}
  size_t below(size_t n) { return size_t(stream_.bits(next_++) % n); }

 private:
  PhiloxStream stream_;
  uint64_t next_ = 0;
};

std::string mutated(std::string text, Chance& chance) {
  static const std::vector<std::string> kPieces = {":",
                                                   ": ",
                                                   "\n",
                                                   "\n  ",
                                                   "- ",
                                                   "[",
                                                   "]",
                                                   "{",
                                                   "}",
                                                   "'",
                                                   "\"",
                                                   "#",
                                                   "&a",
                                                   "*a",
                                                   "!!int ",
                                                   "? ",
                                                   "|",
                                                   ">",
                                                   "%YAML 9.9\n",
                                                   "---\n",
                                                   "...\n",
                                                   "\t",
                                                   "~",
                                                   "null",
                                                   "nan",
                                                   "1e400",
                                                   "-1",
                                                   "0",
                                                   ",",
                                                   "<<: ",
                                                   "\\",
                                                   "\x04",
                                                   "\xFF",
                                                   "\xEF\xBB\xBF",
                                                   "\xC2\x85",
                                                   "\r",
                                                   std::string(1, '\0'),
                                                   "99999999999999999999",
                                                   "model:\n",
                                                   "@",
                                                   "`"};
  for (size_t edits = 1 + chance.below(4); edits > 0 && !text.empty(); --edits) {
    const size_t at = chance.below(text.size());
    switch (chance.below(5)) {
      case 0:
        text[at] = char(chance.below(256));
        break;
      case 1:
        text.erase(at, 1 + chance.below(20));
        break;
      case 2:
        text.insert(at, kPieces[chance.below(kPieces.size())]);
        break;
      case 3:
        text.insert(at, text.substr(chance.below(text.size()), chance.below(80)));
        break;
      default:
        text.resize(at);
    }
  }
  return text;
}

// True if it was accepted. Anything but InvalidArgument leaves the test.
bool loads(const std::string& text, const std::vector<std::string>& overrides = {}) {
  try {
    const Config config = parse(text, overrides);
    const std::string shown = to_yaml(config);
    EXPECT_EQ(to_yaml(parse(shown)), shown);
    return true;
  } catch (const InvalidArgument& e) {
    const std::string_view message = e.what();
    EXPECT_TRUE(message.starts_with("c.yaml") || message.starts_with("command line")) << message;
    EXPECT_EQ(message.find('\n'), message.npos) << message;
    return false;
  }
}

TEST(Fuzz, MutatedFilesLoadOrAreRefused) {
  const std::string valid = to_yaml(parse("data: {train: a, valid: b}"));
  Chance chance(1);
  int accepted = 0, refused = 0;
  for (int i = 0; i < 4000; ++i) {
    const std::string text = mutated(valid, chance);
    SCOPED_TRACE(text);
    (loads(text) ? accepted : refused)++;
    ASSERT_FALSE(HasFailure());
  }
  EXPECT_GT(accepted, 100);
  EXPECT_GT(refused, 1000);
}

TEST(Fuzz, MutatedValuesOfEveryKeyLoadOrAreRefused) {
  const Config config = parse("");
  Chance chance(2);
  int accepted = 0, refused = 0;
  for (const Key& key : schema()) {
    const std::string value = key.get(config).value_or("E6D6");
    for (int i = 0; i < 40; ++i) {
      const std::string word = key.name + "=" + mutated(value, chance);
      SCOPED_TRACE(word);
      (loads("", {word}) ? accepted : refused)++;
      ASSERT_FALSE(HasFailure());
    }
  }
  EXPECT_GT(accepted, 100);
  EXPECT_GT(refused, 1000);
}

// Shapes that make naive readers slow or deep, at the largest size that is read.
TEST(Fuzz, LargeHostileFilesAreRefused) {
  const auto filled = [](const std::string& piece) {
    std::string text;
    while (text.size() + piece.size() <= kMaxConfigBytes) text += piece;
    return text;
  };
  for (const std::string piece : {"[", "{", "[[", "{a: ", "- ", "? ", "a: ", "a:\n", "&a ", "'",
                                  "\"", "- - ", "|\n", "a", ",", "[],", "!"}) {
    SCOPED_TRACE(piece);
    EXPECT_FALSE(loads(filled(piece)));
  }
}

}  // namespace
}  // namespace fathom::launcher
