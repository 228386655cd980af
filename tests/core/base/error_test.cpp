#include "core/base/error.h"

#include <limits>
#include <locale>

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace fathom {
namespace {

class Grouping : public std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

TEST(Join, WritesNanWithoutItsSign) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(join(nan, ' ', -nan, ' ', float(-nan), ' ', -1.5), "nan nan nan -1.5");
}

TEST(Join, IsTheSameInEveryLocale) {
  const std::locale before = std::locale::global(std::locale(std::locale::classic(), new Grouping));
  const std::string text = join("of ", 1234567, ' ', 0.5, std::string(" bytes"));
  std::locale::global(before);

  EXPECT_EQ(text, "of 1234567 0.5 bytes");
}

TEST(Require, ThrowsTheKindWithItsCodeAndText) {
  require(true, "never");
  EXPECT_TRUE(support::throws_with<InvalidArgument>("got 3", [] { require(false, "got ", 3); }));
  EXPECT_TRUE(support::throws_with<DataError>("why", [] { fail<DataError>("why"); }));
  EXPECT_EQ(IoError("").code(), ExitCode::kIo);
  EXPECT_EQ(CheckpointError("").code(), ExitCode::kCheckpoint);
}

}  // namespace
}  // namespace fathom
