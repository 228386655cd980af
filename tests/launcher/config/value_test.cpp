#include "launcher/config/value.h"

#include <gtest/gtest.h>

namespace fathom::launcher {
namespace {

YamlNode plain(const std::string& text) { return {.kind = YamlNode::Kind::kScalar, .text = text}; }

YamlNode quoted(const std::string& text) {
  return {.kind = YamlNode::Kind::kScalar, .text = text, .quoted = true};
}

YamlNode list(std::vector<YamlNode> items) {
  return {.kind = YamlNode::Kind::kList, .items = std::move(items)};
}

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

TEST(Integer, IsDecimalDigitsOnly) {
  const auto integers = integer(-kMost, kMost);
  EXPECT_EQ(integers.parse(plain("0")), 0);
  EXPECT_EQ(integers.parse(plain("+12")), 12);
  EXPECT_EQ(integers.parse(plain("-3")), -3);
  EXPECT_EQ(integers.parse(plain("9223372036854775807")), kMost);
  for (const char* text : {"", "-", "+", "--1", "+-1", "-+1", "1.0", "0x10", "010", "1,000", " 1",
                           "1 ", "9223372036854775808", "one"})
    EXPECT_EQ(integers.parse(plain(text)), std::nullopt) << text;
  EXPECT_EQ(integers.parse(quoted("1")), std::nullopt);
  EXPECT_EQ(integers.parse(list({plain("1")})), std::nullopt);
  EXPECT_EQ(integers.format(-12), "-12");
}

TEST(Integer, MayBeWrittenShortIfItIsExact) {
  const auto integers = integer(-kMost, kMost);
  for (const auto& [text, value] :
       std::vector<std::pair<std::string, int64_t>>{{"1e3", 1000},
                                                    {"1E3", 1000},
                                                    {"1e+3", 1000},
                                                    {"-2e2", -200},
                                                    {"2.5e3", 2500},
                                                    {"1.0e3", 1000},
                                                    {"0.5e1", 5},
                                                    {"5e0", 5},
                                                    {"1_000", 1000},
                                                    {"+12_345", 12345},
                                                    {"1_000_000", 1000000},
                                                    {"9e18", 9 * int64_t(1e18)},
                                                    {"1_000e3", 1000000}})
    EXPECT_EQ(integers.parse(plain(text)), value) << text;
  for (const char* text :
       {"1e",    "e3",     "1e-1",       "10e-1", "1.55e1", "1.e3",  ".5e1",  "1e3.0",
        "1e1e1", "01e3",   "1__000",     "_1",    "1_",     "1_00",  "12_34", "_100",
        "100_",  "1_0000", "1_000.5e1x", "1e19",  "1e99",   "1e999", "1e 3",  "1_e3"})
    EXPECT_EQ(integers.parse(plain(text)), std::nullopt) << text;
  EXPECT_EQ(integers.parse(quoted("1e3")), std::nullopt);
  EXPECT_EQ(integer(1, 10).parse(plain("1e3")), std::nullopt);
}

TEST(Integer, IsWithinBothEnds) {
  const auto few = integer(2, 4);
  EXPECT_EQ(few.allowed, "integer in [2, 4]");
  EXPECT_EQ(few.parse(plain("1")), std::nullopt);
  EXPECT_EQ(few.parse(plain("2")), 2);
  EXPECT_EQ(few.parse(plain("4")), 4);
  EXPECT_EQ(few.parse(plain("5")), std::nullopt);
}

TEST(Number, IsAFiniteDecimal) {
  const auto numbers = number({});
  EXPECT_EQ(numbers.allowed, "number");
  EXPECT_EQ(numbers.parse(plain("0.5")), 0.5);
  EXPECT_EQ(numbers.parse(plain("1e-7")), 1e-7);
  EXPECT_EQ(numbers.parse(plain("+5.")), 5.0);
  EXPECT_EQ(numbers.parse(plain(".5")), 0.5);
  for (const char* text : {"", "nan", "NaN", "inf", "-inf", "infinity", ".inf", ".nan", "1e400",
                           "-1e400", "1e-400", "0x1p3", "0,5", "1.5x", " 1", "1 ", "--1"})
    EXPECT_EQ(numbers.parse(plain(text)), std::nullopt) << text;
  EXPECT_EQ(numbers.parse(quoted("1")), std::nullopt);
}

TEST(Number, PrintsShortAndReadsBackToTheSameBits) {
  const auto numbers = number({});
  EXPECT_EQ(numbers.format(0), "0");
  EXPECT_EQ(numbers.format(256), "256");
  EXPECT_EQ(numbers.format(0.0005), "0.0005");
  EXPECT_EQ(numbers.format(1e-7), "1.0e-07");
  EXPECT_EQ(numbers.format(1.5e-9), "1.5e-09");
  EXPECT_EQ(numbers.format(1e20), "1.0e+20");
  EXPECT_EQ(numbers.format(*numbers.parse(plain("-0"))), "0");
  for (const double value : {0.1, 1.0 / 3, 1e-5, 9.999999e-6, 1e15, 123456789.125, 5e-324, 1e308})
    EXPECT_EQ(numbers.parse(plain(numbers.format(value))), value) << numbers.format(value);
}

TEST(Number, EndsAreOpenOrClosed) {
  const auto half_open = number({.low = 0, .high = 1, .open_high = true});
  EXPECT_EQ(half_open.allowed, "number in [0, 1)");
  EXPECT_EQ(half_open.parse(plain("0")), 0);
  EXPECT_EQ(half_open.parse(plain("1")), std::nullopt);
  const auto other_half = number({.low = 0, .high = 1, .open_low = true});
  EXPECT_EQ(other_half.allowed, "number in (0, 1]");
  EXPECT_EQ(other_half.parse(plain("0")), std::nullopt);
  EXPECT_EQ(other_half.parse(plain("1")), 1);
  EXPECT_EQ(number({.low = 0}).allowed, "number >= 0");
}

TEST(NumberOrAuto, HasAWordForNone) {
  const auto limits = number_or_auto({.low = 0, .high = 1, .open_low = true});
  EXPECT_EQ(limits.allowed, "auto, or number in (0, 1]");
  ASSERT_TRUE(limits.parse(plain("auto")).has_value());
  EXPECT_EQ(*limits.parse(plain("auto")), std::nullopt);
  EXPECT_EQ(limits.parse(plain("0.5")), std::optional(0.5));
  for (const char* text : {"0", "2", "Auto", "off", "", "nan"})
    EXPECT_EQ(limits.parse(plain(text)), std::nullopt) << text;
  EXPECT_EQ(limits.format(std::nullopt), "auto");
  EXPECT_EQ(limits.format(256), "256");
}

TEST(TwoNumbers, AreEachWithinTheRange) {
  const auto pairs = two_numbers({.low = 0, .high = 1, .open_high = true});
  EXPECT_EQ(pairs.allowed, "two numbers in [0, 1)");
  EXPECT_EQ(pairs.parse(list({plain("0.5"), plain("0")})), (std::array<double, 2>{0.5, 0}));
  EXPECT_EQ(pairs.parse(list({plain("0.5"), plain("1")})), std::nullopt);
  EXPECT_EQ(pairs.parse(list({plain("1"), plain("0.5")})), std::nullopt);
  EXPECT_EQ(pairs.parse(list({plain("0.5")})), std::nullopt);
  EXPECT_EQ(pairs.parse(plain("0.5")), std::nullopt);
  EXPECT_EQ(pairs.format({0.5, 1e-7}), "[0.5, 1.0e-07]");
}

TEST(Boolean, IsTrueOrFalseOnly) {
  EXPECT_EQ(boolean().parse(plain("true")), true);
  EXPECT_EQ(boolean().parse(plain("false")), false);
  for (const char* text : {"", "yes", "no", "on", "off", "True", "1", "0"})
    EXPECT_EQ(boolean().parse(plain(text)), std::nullopt) << text;
  EXPECT_EQ(boolean().parse(quoted("true")), std::nullopt);
}

TEST(Text, IsPrintableAndPassesItsRule) {
  const auto short_text = text("short", [](const std::string& t) { return t.size() < 4; });
  EXPECT_EQ(short_text.parse(plain("abc")), "abc");
  EXPECT_EQ(short_text.parse(quoted("12")), "12");
  EXPECT_EQ(short_text.parse(plain("abcd")), std::nullopt);
  for (const char* bad : {"a\n", "\x7F", "\xFF"})
    EXPECT_EQ(short_text.parse(plain(bad)), std::nullopt);
  EXPECT_EQ(short_text.format("no"), "'no'");
}

TEST(Choice, IsAWordForAValue) {
  const auto sizes = choice<int>({{"small", 1}, {"off", 2}});
  EXPECT_EQ(sizes.allowed, "one of small, off");
  EXPECT_EQ(sizes.words, (std::vector<std::string>{"small", "off"}));
  EXPECT_EQ(sizes.parse(plain("off")), 2);
  EXPECT_EQ(sizes.parse(quoted("off")), 2);
  EXPECT_EQ(sizes.parse(plain("Small")), std::nullopt);
  EXPECT_EQ(sizes.parse(list({})), std::nullopt);
  EXPECT_EQ(sizes.format(2), "'off'");
}

}  // namespace
}  // namespace fathom::launcher
