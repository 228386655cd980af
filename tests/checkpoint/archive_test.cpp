#include "checkpoint/archive.h"

#include <cmath>

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "core/base/error.h"
#include "tests/checkpoint/file_calls.h"
#include "tests/checkpoint/support.h"

namespace fathom::checkpoint {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Archive, RestoresEveryBit) {
  TemporaryDirectory directory;
  const fs::path path = save_small(directory.path(), 7);

  const Checkpoint checkpoint = Checkpoint::open(path);
  SmallState loaded(99);
  LoadingArchive archive(checkpoint);
  loaded.visit(archive);
  archive.finish();

  EXPECT_EQ(loaded, SmallState(7));
  EXPECT_TRUE(std::signbit(loaded.scale[0]));
  EXPECT_EQ(checkpoint.manifest().step, 7);
  EXPECT_EQ(checkpoint.manifest().run_id, "run-1");
  EXPECT_EQ(checkpoint.manifest().attempt, 2);
  EXPECT_THAT(names_in(path), ElementsAre("manifest.json", "state.h5"));
}

TEST(Archive, SavesEqualStatesAsEqualBytes) {
  TemporaryDirectory directory;
  fs::create_directory(directory.path() / "a");
  fs::create_directory(directory.path() / "b");
  const fs::path a = save_small(directory.path() / "a", 7),
                 b = save_small(directory.path() / "b", 7);

  EXPECT_EQ(read_text(a / kStateName), read_text(b / kStateName));
  EXPECT_EQ(read_text(a / kManifestName), read_text(b / kManifestName));
}

TEST(Archive, KeepsValuesOfEveryKind) {
  TemporaryDirectory directory;
  int64_t low = std::numeric_limits<int64_t>::min(), high = std::numeric_limits<int64_t>::max();
  double third = 1.0 / 3, tiny = 5e-324, minus = -std::numeric_limits<double>::infinity();
  double zero = -0.0, nan = std::nan("");
  std::string text = std::string("a\0b\n\x7f", 5);
  const auto visit = [&](Archive& archive) {
    archive.value("low", low);
    archive.value("high", high);
    archive.value("third", third);
    archive.value("tiny", tiny);
    archive.value("minus", minus);
    archive.value("zero", zero);
    archive.value("nan", nan);
    archive.value("text", text);
  };
  SavingArchive saving;
  visit(saving);
  const SaveReport saved = write_checkpoint(directory.path() / "c", saving, info_of(0));

  low = high = 0;
  third = tiny = minus = zero = nan = 1;
  text = "";
  const Checkpoint checkpoint = Checkpoint::open(saved.path);
  LoadingArchive loading(checkpoint);
  visit(loading);

  EXPECT_EQ(low, std::numeric_limits<int64_t>::min());
  EXPECT_EQ(high, std::numeric_limits<int64_t>::max());
  EXPECT_EQ(third, 1.0 / 3);
  EXPECT_EQ(tiny, 5e-324);
  EXPECT_EQ(minus, -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(zero == 0 && std::signbit(zero));
  EXPECT_TRUE(std::isnan(nan));
  EXPECT_EQ(text, std::string("a\0b\n\x7f", 5));
}

TEST(Archive, KeepsEmptyArrays) {
  TemporaryDirectory directory;
  std::vector<float> none;
  const int64_t shape[] = {0, 5};
  SavingArchive saving;
  saving.array("model/none", shape, std::span(none));
  const SaveReport saved = write_checkpoint(directory.path() / "c", saving, info_of(0));

  const Checkpoint checkpoint = Checkpoint::open(saved.path);
  LoadingArchive loading(checkpoint);
  loading.array("model/none", shape, std::span(none));
  loading.finish();
  EXPECT_EQ(checkpoint.manifest().arrays.at(0).shape, (std::vector<int64_t>{0, 5}));
}

TEST(Archive, LoadsWeightsAlone) {
  TemporaryDirectory directory;
  const Checkpoint checkpoint = Checkpoint::open(save_small(directory.path(), 7));
  SmallState loaded(99);
  LoadingArchive archive(checkpoint, "model/");
  loaded.visit(archive);
  archive.finish();

  EXPECT_EQ(loaded.weight, SmallState(7).weight);
  EXPECT_EQ(loaded.moment, SmallState(99).moment);
  EXPECT_EQ(loaded.step, 99);
}

TEST(SavingArchive, RefusesBadNamesAndShapes) {
  SavingArchive archive;
  std::vector<float> data(6);
  const int64_t shape[] = {2, 3}, other[] = {4};
  for (const char* name : {"", "/a", "a/", "a//b", "..", "a/../b", "a b", "a\n", "\u00e9"})
    EXPECT_THAT(message_of<InvalidArgument>([&] { archive.array(name, shape, std::span(data)); }),
                HasSubstr("is not made of words"))
        << name;
  EXPECT_THAT(message_of<InvalidArgument>([&] { archive.array("a", other, std::span(data)); }),
              HasSubstr("a has shape (4) but 6 elements"));
  archive.array("a", shape, std::span(data));
  EXPECT_THAT(message_of<InvalidArgument>([&] { archive.array("a", shape, std::span(data)); }),
              HasSubstr("array a was given twice"));
  int64_t v = 1;
  archive.value("v", v);
  EXPECT_THAT(message_of<InvalidArgument>([&] { archive.value("v", v); }),
              HasSubstr("value v was given twice"));
}

TEST(LoadingArchive, NamesWhatDoesNotFit) {
  TemporaryDirectory directory;
  const Checkpoint checkpoint = Checkpoint::open(save_small(directory.path(), 7));
  LoadingArchive archive(checkpoint);
  std::vector<float> data(60);
  std::vector<double> wide(60);
  const int64_t row[] = {60}, column[] = {60, 1};
  int64_t integer = 0;
  double number = 0;

  EXPECT_THAT(message_of<CheckpointError>([&] { archive.array("model/no", row, std::span(data)); }),
              HasSubstr("model/no is not in step-00000007, but the model has it with shape (60)"));
  EXPECT_THAT(message_of<CheckpointError>(
                  [&] { archive.array("model/encoder.1.fc1.bias", column, std::span(data)); }),
              HasSubstr("model/encoder.1.fc1.bias is (60) in step-00000007, but the model has "
                        "(60, 1); was it written with another"));
  EXPECT_THAT(message_of<CheckpointError>(
                  [&] { archive.array("model/encoder.1.fc1.bias", row, std::span(wide)); }),
              HasSubstr("is f32 in step-00000007, but the model has f64"));
  EXPECT_THAT(message_of<CheckpointError>([&] { archive.value("epoch", integer); }),
              HasSubstr("value epoch is not in step-00000007"));
  EXPECT_THAT(message_of<CheckpointError>([&] { archive.value("step", number); }),
              HasSubstr("value step in step-00000007 is not a double"));
}

TEST(LoadingArchive, NamesWhatNobodyAskedFor) {
  TemporaryDirectory directory;
  const Checkpoint checkpoint = Checkpoint::open(save_small(directory.path(), 7));
  LoadingArchive all(checkpoint), weights(checkpoint, "model/s");

  EXPECT_THAT(message_of<CheckpointError>([&] { all.finish(); }),
              HasSubstr("step-00000007 holds 7 names the model does not have: "
                        "model/encoder.1.fc1.weight, "));
  EXPECT_THAT(message_of<CheckpointError>([&] { weights.finish(); }),
              HasSubstr("holds 1 name the model does not have: model/scale;"));
}

TEST(Writer, RefusesWhatIsNotFinite) {
  TemporaryDirectory directory;
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    SmallState state(7);
    state.weight[2399] = bad;
    state.bias[3] = bad;
    SavingArchive archive;
    state.visit(archive);
    EXPECT_THAT(message_of<TrainingError>([&] {
                  static_cast<void>(write_checkpoint(directory.path() / "c", archive, info_of(7)));
                }),
                HasSubstr("model/encoder.1.fc1.weight element 2399 is not finite at step 7"));
  }
  SmallState state(7);
  state.moment[17] = std::numeric_limits<double>::quiet_NaN();
  SavingArchive archive;
  state.visit(archive);
  EXPECT_THAT(message_of<TrainingError>([&] {
                static_cast<void>(write_checkpoint(directory.path() / "c", archive, info_of(7)));
              }),
              HasSubstr("optimizer/m/encoder.1.fc1.weight element 17 is not finite"));
  EXPECT_TRUE(fs::is_empty(directory.path()));
}

TEST(Writer, RefusesProvenanceThatIsNotAnObject) {
  TemporaryDirectory directory;
  SavingArchive archive;
  for (const char* text : {"[]", "{", R"({"a": 1, "a": 2})", R"({"manifest_xxh3_128": "0"})"}) {
    SaveInfo info = info_of(7);
    info.provenance = text;
    EXPECT_THAT(message_of<InvalidArgument>([&] {
                  static_cast<void>(write_checkpoint(directory.path() / "c", archive, info));
                }),
                HasSubstr("manifest of step 7 cannot be written"))
        << text;
  }
  EXPECT_TRUE(fs::is_empty(directory.path()));
}

TEST(Writer, ReplacesACheckpointOfTheSameStep) {
  TemporaryDirectory directory;
  const fs::path path = save_small(directory.path(), 7);
  SmallState other(8);
  SavingArchive archive;
  other.visit(archive);
  static_cast<void>(write_checkpoint(path, archive, info_of(7)));

  const Checkpoint checkpoint = Checkpoint::open(path);
  LoadingArchive loading(checkpoint);
  SmallState loaded(0);
  loaded.visit(loading);
  EXPECT_EQ(loaded, other);
  EXPECT_THAT(names_in(directory.path()), ElementsAre("step-00000007"));
}

TEST(Writer, IsPrivateUntilItIsVisible) {
  TemporaryDirectory directory;
  fs::permissions(directory.path(), fs::perms(0750));
  SmallState state(7);
  SavingArchive archive;
  state.visit(archive);
  fs::perms during{};
  std::optional<FileCallWatcher> watcher([&](const FileCall& call) {
    if (call.function == "write")
      for (const auto& entry : fs::directory_iterator(directory.path()))
        during = entry.status().permissions();
    return 0;
  });
  const SaveReport saved = write_checkpoint(directory.path() / "c", archive, info_of(7));
  watcher.reset();

  EXPECT_EQ(during, fs::perms(0700));
  EXPECT_EQ(fs::status(saved.path).permissions(), fs::perms(0750));
}

}  // namespace
}  // namespace fathom::checkpoint
