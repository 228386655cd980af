#include "launcher/train/start_record.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "launcher/train/start_sink.h"
#include "tests/launcher/train/sample_records.h"
#include "tests/support/temporary_directory.h"

namespace fathom::launcher {
namespace {

TEST(StartRecord, NamesPathsWhereverTheStartWasMade) {
  for (const char* word : {"auto", "never", "require"})
    EXPECT_TRUE(record_of({.resume = word}).is_empty());
  const StartRecord record = record_of({.resume = "a/../b", .init_from = "c", .overwrite = true});
  EXPECT_EQ(record.resume, (std::filesystem::current_path() / "b").string());
  EXPECT_EQ(record.init_from, (std::filesystem::current_path() / "c").string());
  EXPECT_TRUE(record.overwrites);
  EXPECT_FALSE(record.is_done);
}

TEST(StartRecord, IsReadAsItWasWritten) {
  const support::TemporaryDirectory run;
  EXPECT_TRUE(read_start(run.path()).is_empty());

  write_start(run.path(), {.resume = "/a",
                           .resume_command = "c.yaml\n--resume a",
                           .is_done = true,
                           .init_from = "/b",
                           .overwrites = true,
                           .overwrite_command = "c.yaml\nx=\"1\""});

  const StartRecord record = read_start(run.path());
  EXPECT_EQ(record.resume, "/a");
  EXPECT_EQ(record.resume_command, "c.yaml\n--resume a");
  EXPECT_EQ(record.init_from, "/b");
  EXPECT_EQ(record.overwrite_command, "c.yaml\nx=\"1\"");
  EXPECT_TRUE(record.overwrites);
  EXPECT_TRUE(record.is_done);
  support::write_text(run / "start.json", "{\"resume\": 7");
  EXPECT_TRUE(read_start(run.path()).is_empty());
}

TEST(StartSink, RecordsThatABranchHoldsWithItsFirstSave) {
  const support::TemporaryDirectory run;
  const StartRecord branch = {.resume = "/a", .init_from = "/b"};
  write_start(run.path(), branch);
  StartSink sink(run.path(), branch);
  EXPECT_FALSE(read_start(run.path()).is_done);

  sink.saved(sample_save());

  EXPECT_TRUE(read_start(run.path()).is_done);
  EXPECT_EQ(read_start(run.path()).init_from, "/b");
}

TEST(StartSink, WritesNothingInARunThatIsNoBranch) {
  const support::TemporaryDirectory run;
  StartSink sink(run.path(), {.overwrites = true});

  sink.saved(sample_save());

  EXPECT_FALSE(std::filesystem::exists(run / "start.json"));
}

}  // namespace
}  // namespace fathom::launcher
