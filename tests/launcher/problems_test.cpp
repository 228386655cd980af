#include "launcher/problems.h"

#include <gtest/gtest.h>

namespace fathom::launcher {
namespace {

TEST(Problems, NotesAnErrorAndGoesOn) {
  Problems problems;
  EXPECT_EQ(problems.code(), ExitCode::kDone);
  EXPECT_TRUE(problems.attempt([] {}));
  EXPECT_TRUE(problems.empty());

  EXPECT_FALSE(problems.attempt([] { fail<DataError>("first"); }));
  EXPECT_FALSE(problems.attempt([] { fail("second"); }));

  ASSERT_EQ(problems.errors().size(), 2u);
  EXPECT_STREQ(problems.errors()[0].what(), "first");
  EXPECT_STREQ(problems.errors()[1].what(), "second");
}

TEST(Problems, LetsPassWhatIsNoError) {
  Problems problems;
  EXPECT_THROW((void)problems.attempt([] { throw std::bad_alloc(); }), std::bad_alloc);
  EXPECT_TRUE(problems.empty());
}

TEST(Problems, BlameTheConfigBeforeTheDataBeforeTheRest) {
  Problems problems;
  problems.add(IoError("disk"));
  EXPECT_EQ(problems.code(), ExitCode::kIo);
  problems.add(DataError("text"));
  EXPECT_EQ(problems.code(), ExitCode::kData);
  problems.add(InvalidArgument("key"));
  EXPECT_EQ(problems.code(), ExitCode::kUsage);
}

}  // namespace
}  // namespace fathom::launcher
