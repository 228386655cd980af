// Checkpoints made to do harm, judged in a child process, and the three commands on checkpoints.
#include "checkpoint/verify.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>

#include <gmock/gmock.h>

#include "core/base/error.h"
#include "launcher/commands/checkpoint.h"
#include "tests/checkpoint/support.h"

namespace fathom::checkpoint {
namespace {

using ::testing::HasSubstr;

TEST(Verify, AcceptsAWholeCheckpoint) {
  TemporaryDirectory directory;
  EXPECT_EQ(verify(save_small(directory.path(), 7)), "");
}

TEST(Verify, PassesTheReasonOn) {
  TemporaryDirectory directory;
  const fs::path path = save_small(directory.path(), 7);
  fs::resize_file(path / kStateName, 100);
  EXPECT_THAT(verify(path), HasSubstr("state.h5 has 100 bytes, expected"));
}

TEST(Verify, CallsACrashOfTheReaderDamage) {
  TemporaryDirectory directory;
  const fs::path program = directory.path() / "crash";
  write_text(program, "#!/bin/sh\nkill -SEGV $$\n");
  fs::permissions(program, fs::perms::owner_all);
  EXPECT_THAT(verify("x", program), HasSubstr("damaged: its reader was ended by signal 11"));
  write_text(program, "#!/bin/sh\nexit 42\n");
  EXPECT_THAT(verify("x", program), HasSubstr("its reader ended with exit code 42"));
}

TEST(Verify, FailsWhereNoChildCanBeStarted) {
  EXPECT_THAT(message_of<IoError>([] { static_cast<void>(verify("x", "/no/such/program")); }),
              HasSubstr("starting /no/such/program: No such file or directory"));
}

TEST(Verify, RefusesEveryHostileFile) {
  if (std::system("/usr/bin/python3 -c 'import h5py, ctypes; ctypes.CDLL(\"libxxhash.so.0\")' "
                  "2>/dev/null") != 0)
    GTEST_SKIP() << "needs python3 with h5py and libxxhash";
  TemporaryDirectory directory;
  const std::string command = "/usr/bin/python3 " TEST_DIRECTORY "/make_hostile.py " FORMAT_DOCUMENT
                              " " +
                              directory.path().string();
  ASSERT_EQ(std::system(command.c_str()), 0);
  EXPECT_EQ(verify(directory.path() / "plain"), "");

  const std::map<std::string, std::string> expected = {
      {"soft-link", "model/b is a soft link"},
      {"external-link", "model/b is an external link"},
      {"group-link", "model is an external link"},
      {"hard-link", "linked more than once"},
      {"cycle", "is not in the manifest"},
      {"external-storage", "model/b has external storage"},
      {"virtual", "model/b is not contiguous"},
      {"gzip", "model/b is not contiguous"},
      {"chunked", "model/b is not contiguous"},
      {"compact", "model/b is not contiguous"},
      {"attribute", "model/b has attributes"},
      {"extra", "model/extra is not in the manifest"},
      {"missing", "model/b is missing"},
      {"shape", "model/b is (3, 4), the manifest says (4, 3)"},
      {"rank", "model/b has 1 axes, the manifest says (4, 3)"},
      {"dtype", "model/b is not little-endian f32"},
      {"big-endian", "model/b is not little-endian f32"},
      {"named-type", "is not in the manifest"},
      {"group-for-array", "model/b is a group"},
      {"huge", "model/b has 1 axes, the manifest says (4, 3)"},
      {"huge-in-both", "stores 0 bytes, its shape needs"},
      {"null-space", "model/b has 0 axes"},
      {"user-block", "user block"},
      {"not-hdf5", "state.h5: opening: "},
      {"nan", "model/b element 5 is not finite"},
  };
  for (const auto& [name, message] : expected)
    EXPECT_THAT(verify(directory.path() / name), HasSubstr(message)) << name;
  size_t made = 0;
  for (const auto& entry : fs::directory_iterator(directory.path())) made += entry.is_directory();
  EXPECT_EQ(made, expected.size() + 1);
}

class Commands : public ::testing::Test {
 protected:
  template <class F>
  std::string output_of(F command) {
    ::testing::internal::CaptureStdout();
    code_ = command();
    std::fflush(stdout);
    return ::testing::internal::GetCapturedStdout();
  }
  TemporaryDirectory directory_;
  int code_ = -1;
};

TEST_F(Commands, InspectShowsProvenanceValuesAndArrays) {
  const fs::path path = save_small(directory_.path(), 7);
  const std::string text = output_of([&] { return launcher::checkpoint_inspect({path.string()}); });
  EXPECT_EQ(code_, 0);
  for (const char* part :
       {"step           7\n", "run            run-1\n", "config_hash    abc\n",
        "state          step = 7\n", "state          early_stopping/best = inf\n",
        "model/encoder.1.fc1.weight                (40, 60)  f32   1.02",
        "4 arrays, 4861 elements"})
    EXPECT_THAT(text, HasSubstr(part));
}

TEST_F(Commands, VerifyPrintsALineEachAndFailsIfOneIsDamaged) {
  const fs::path root = directory_.path() / "checkpoints";
  fs::create_directory(root);
  save_small(root, 7);
  const fs::path newer = save_small(root, 8);
  std::string text =
      output_of([&] { return launcher::checkpoint_verify({directory_.path().string()}); });
  EXPECT_EQ(code_, 0);
  EXPECT_EQ(text, newer.string() + ": valid\n" + (root / step_name(7)).string() + ": valid\n");

  fs::remove(newer / kStateName);
  text = output_of([&] { return launcher::checkpoint_verify({directory_.path().string()}); });
  EXPECT_EQ(code_, 4);
  EXPECT_THAT(text, HasSubstr("state.h5 is missing"));
  EXPECT_THAT(text, HasSubstr("step-00000007: valid\n"));
}

TEST_F(Commands, DiffIgnoresProvenanceAndSeesEveryBit) {
  SmallState state(7);
  const auto save = [&](const std::string& name, const std::string& provenance) {
    SavingArchive archive;
    state.visit(archive);
    SaveInfo info = info_of(7);
    info.provenance = provenance;
    info.attempt = int64_t(name.size());
    return write_checkpoint(directory_.path() / name, archive, info).path.string();
  };
  const std::string a = save("a", "{}"), same = save("same", R"({"host": "other"})");
  state.scale[0] = 0.0f;  // was -0
  state.bias[3] += 0.5f;
  state.bias[4] += 0.25f;
  state.step = 8;
  const std::string b = save("b", "{}");

  EXPECT_EQ(output_of([&] { return launcher::checkpoint_diff(a, same); }), "identical\n");
  EXPECT_EQ(code_, 0);
  EXPECT_EQ(output_of([&] { return launcher::checkpoint_diff(a, b); }),
            "model/encoder.1.fc1.bias: 2 of 60 elements differ, largest difference 0.5\n"
            "model/scale: 1 of 1 elements differ, largest difference 0\n"
            "step: 7 against 8\ndifferent: arrays 2, values 1\n");
  EXPECT_EQ(code_, 1);
}

TEST_F(Commands, DiffNamesWhatOneSideLacks) {
  float x = 1, y = 2;
  double nan = std::nan(""), wide = 1;
  const int64_t one[] = {1};
  SavingArchive first, second;
  first.array("model/x", {}, std::span(&x, 1));
  first.array("model/y", {}, std::span(&y, 1));
  first.array("model/z", {}, std::span(&y, 1));
  first.value("nan", nan);
  second.array("model/x", one, std::span(&x, 1));
  second.array("model/w", {}, std::span(&y, 1));
  second.array("model/z", {}, std::span(&wide, 1));
  second.value("nan", nan);
  second.value("more", nan);
  const std::string a = write_checkpoint(directory_.path() / "a", first, info_of(1)).path.string();
  const std::string b = write_checkpoint(directory_.path() / "b", second, info_of(1)).path.string();

  EXPECT_EQ(output_of([&] { return launcher::checkpoint_diff(a, b); }),
            "model/x: shape () against (1)\nmodel/y: only in the first\n"
            "model/z: type f32 against f64\nmodel/w: only in the second\n"
            "more: nothing against nan\ndifferent: arrays 4, values 1\n");
  EXPECT_EQ(code_, 1);
}

TEST_F(Commands, DiffOfManyArraysShowsTheFirstAndCountsAll) {
  SavingArchive first, second;
  std::vector<float> zeros(25), ones(25, 1);
  for (size_t i = 0; i < 25; ++i) {
    first.array("model/x" + std::to_string(100 + i), {}, std::span(&zeros[i], 1));
    second.array("model/x" + std::to_string(100 + i), {}, std::span(&ones[i], 1));
  }
  const std::string a = write_checkpoint(directory_.path() / "a", first, info_of(1)).path.string();
  const std::string b = write_checkpoint(directory_.path() / "b", second, info_of(1)).path.string();

  const std::string text = output_of([&] { return launcher::checkpoint_diff(a, b); });
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 22);
  EXPECT_TRUE(text.ends_with("... and 5 more arrays\ndifferent: arrays 25, values 0\n")) << text;
  EXPECT_EQ(code_, 1);
}

}  // namespace
}  // namespace fathom::checkpoint

// verify() starts this very program.
int main(int argc, char** argv) {
  if (argc == 4 && std::string(argv[2]) == "verify-child")
    return fathom::checkpoint::verify_child_main(argv[3]);
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
