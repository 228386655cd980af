#include "launcher/config/scalar.h"

#include <gtest/gtest.h>

namespace fathom::launcher {
namespace {

TEST(Scalar, IntegersAreDecimalDigitsOnly) {
  EXPECT_EQ(parse_integer("0"), 0);
  EXPECT_EQ(parse_integer("+12"), 12);
  EXPECT_EQ(parse_integer("-3"), -3);
  EXPECT_EQ(parse_integer("9223372036854775807"), 9223372036854775807);
  for (const char* text : {"", "-", "+", "--1", "+-1", "-+1", "1.0", "1e3", "0x10", "010", "1_000",
                           "1,000", " 1", "1 ", "9223372036854775808", "one"})
    EXPECT_EQ(parse_integer(text), std::nullopt) << text;
}

TEST(Scalar, NumbersAreFiniteDecimals) {
  EXPECT_EQ(parse_number("0.5"), 0.5);
  EXPECT_EQ(parse_number("1e-7"), 1e-7);
  EXPECT_EQ(parse_number("+5."), 5.0);
  EXPECT_EQ(parse_number(".5"), 0.5);
  for (const char* text : {"", "nan", "NaN", "inf", "-inf", "infinity", ".inf", ".nan", "1e400",
                           "-1e400", "1e-400", "0x1p3", "0,5", "1.5x", " 1", "1 ", "--1"})
    EXPECT_EQ(parse_number(text), std::nullopt) << text;
}

TEST(Scalar, BooleansAreTrueAndFalseOnly) {
  EXPECT_EQ(parse_boolean("true"), true);
  EXPECT_EQ(parse_boolean("false"), false);
  for (const char* text : {"", "yes", "no", "on", "off", "True", "1", "0"})
    EXPECT_EQ(parse_boolean(text), std::nullopt) << text;
}

TEST(Scalar, NumbersPrintShortAndReadBackToTheSameBits) {
  EXPECT_EQ(format_number(0), "0");
  EXPECT_EQ(format_number(256), "256");
  EXPECT_EQ(format_number(0.0005), "0.0005");
  EXPECT_EQ(format_number(1e-7), "1.0e-07");
  EXPECT_EQ(format_number(1.5e-9), "1.5e-09");
  EXPECT_EQ(format_number(1e20), "1.0e+20");
  EXPECT_EQ(format_number(*parse_number("-0")), "0");
  for (const double value : {0.1, 1.0 / 3, 1e-5, 9.999999e-6, 1e15, 123456789.125, 5e-324, 1e308})
    EXPECT_EQ(parse_number(format_number(value)), value) << format_number(value);
}

}  // namespace
}  // namespace fathom::launcher
