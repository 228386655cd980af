#include "core/base/text.h"

#include <string>

#include <gtest/gtest.h>

namespace fathom {
namespace {

using namespace std::string_view_literals;

TEST(Utf8, AcceptsTheEdgesAndRefusesWhatIsBeyond) {
  for (const std::string_view good :
       {"\x7F"sv, "\0"sv, "\xC2\x80"sv, "\xDF\xBF"sv, "\xE0\xA0\x80"sv, "\xED\x9F\xBF"sv,
        "\xEE\x80\x80"sv, "\xF0\x90\x80\x80"sv, "\xF4\x8F\xBF\xBF"sv}) {
    EXPECT_EQ(utf8_length(good, 0), good.size());
    EXPECT_EQ(find_invalid_utf8(good), std::string_view::npos);
  }
  for (const std::string_view bad :
       {"\x80", "\xC0\x80", "\xC1\xBF", "\xC2", "\xC2\x41", "\xE0\x9F\xBF", "\xE2\x82",
        "\xED\xA0\x80", "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF"}) {
    EXPECT_EQ(utf8_length(bad, 0), 0u) << bad;
    EXPECT_EQ(find_invalid_utf8("a" + std::string(bad)), 1u) << bad;
  }
}

// Table 3-7 itself, over all pairs of first bytes.
TEST(Utf8, AgreesWithTheTable) {
  const auto length_by_table = [](unsigned first, unsigned second) -> size_t {
    const auto within = [&](unsigned low, unsigned high) {
      return second >= low && second <= high;
    };
    if (first < 0x80) return 1;
    if (first < 0xC2 || first > 0xF4) return 0;
    if (first < 0xE0) return within(0x80, 0xBF) ? 2 : 0;
    if (first < 0xF0)
      return within(first == 0xE0 ? 0xA0 : 0x80, first == 0xED ? 0x9F : 0xBF) ? 3 : 0;
    return within(first == 0xF0 ? 0x90 : 0x80, first == 0xF4 ? 0x8F : 0xBF) ? 4 : 0;
  };
  for (unsigned first = 0; first < 256; ++first)
    for (unsigned second = 0; second < 256; ++second) {
      const std::string text = {'x', char(first), char(second), '\x80', '\xBF', 'x'};
      ASSERT_EQ(utf8_length(text, 1), length_by_table(first, second)) << first << " " << second;
    }
}

TEST(Utf8, NeverLooksBeyondTheEnd) {
  const std::string text = "\xF0\x9F\x98\x80";
  for (size_t size = 1; size < 4; ++size)
    EXPECT_EQ(find_invalid_utf8(std::string_view(text).substr(0, size)), 0u);
  EXPECT_EQ(utf8_length(text, 4), 0u);
  EXPECT_EQ(find_invalid_utf8(""), std::string_view::npos);
}

TEST(Printable, IsEverythingButControlCharactersAndBrokenBytes) {
  EXPECT_EQ(find_unprintable(" ~\xC2\xA0\xC3\xA9\xF0\x9F\x98\x80"), std::string_view::npos);
  EXPECT_EQ(find_unprintable(""), std::string_view::npos);
  for (const std::string_view bad :
       {"\0"sv, "\t"sv, "\x1F"sv, "\x7F"sv, "\xC2\x80"sv, "\xC2\x9F"sv, "\xC2"sv, "\xFF"sv})
    EXPECT_EQ(find_unprintable("a" + std::string(bad) + "b"), 1u) << bad;
  EXPECT_EQ(find_unprintable("a\tb\n\x7F", "\n\t"), 4u);
}

TEST(Printable, TextOfAMessageIsShort) {
  EXPECT_EQ(printable("a\nb\x1b[31m\xFF"), "a?b?[31m?");
  EXPECT_EQ(printable("\xC2\x85\xC3\xA9"), "?\xC3\xA9");
  EXPECT_EQ(printable(std::string(60, 'x')), std::string(60, 'x'));
  EXPECT_EQ(printable(std::string(61, 'x')), std::string(60, 'x') + "...");
  EXPECT_EQ(printable(std::string(59, 'x') + "\xC3\xA9"), std::string(59, 'x') + "...");
}

TEST(AsText, IsTheSameBytes) {
  const std::string text("a\0b", 3);
  EXPECT_EQ(as_text(std::as_bytes(std::span(text))), text);
}

}  // namespace
}  // namespace fathom
