// Every kind of damage to a checkpoint's files must be refused, and never by accident of position.
#include <gmock/gmock.h>
#include <unistd.h>

#include "core/base/error.h"
#include "core/base/hash.h"
#include "tests/checkpoint/support.h"

namespace fathom::checkpoint {
namespace {

using ::testing::HasSubstr;

std::string refusal(const fs::path& path) {
  return message_of<CheckpointError>([&] { static_cast<void>(Checkpoint::open(path)); });
}

class Damage : public ::testing::Test {
 protected:
  TemporaryDirectory directory_;
  fs::path path_ = save_small(directory_.path(), 7);
};

TEST_F(Damage, OfNothingIsNotReported) {
  EXPECT_NO_THROW(static_cast<void>(Checkpoint::open(path_)));
}

TEST_F(Damage, ByTruncationIsRefused) {
  for (const char* name : {kManifestName, kStateName}) {
    const std::string whole = read_text(path_ / name);
    for (const double share : {0.0, 0.3, 0.9, 0.999}) {
      write_text(path_ / name, whole.substr(0, size_t(double(whole.size()) * share)));
      refusal(path_);
    }
    write_text(path_ / name, whole.substr(0, whole.size() - 1));
    refusal(path_);
    write_text(path_ / name, whole + "\n");
    refusal(path_);
    write_text(path_ / name, whole);
  }
  fs::resize_file(path_ / kStateName, 1000);
  EXPECT_THAT(refusal(path_), HasSubstr("state.h5 has 1000 bytes, expected "));
}

TEST_F(Damage, ByAFlippedBitIsRefused) {
  for (const char* name : {kManifestName, kStateName}) {
    const std::string whole = read_text(path_ / name);
    for (size_t at = 0; at < whole.size(); at += 997) {
      std::string damaged = whole;
      damaged[at] = char(damaged[at] ^ (1 << (at % 8)));
      write_text(path_ / name, damaged);
      refusal(path_);
    }
    write_text(path_ / name, whole);
  }
}

// The manifest is short: every bit of it.
TEST_F(Damage, ByAnyFlippedBitOfTheManifestIsRefused) {
  const std::string whole = read_text(path_ / kManifestName);
  for (size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string damaged = whole;
    damaged[bit / 8] = char(damaged[bit / 8] ^ (1 << (bit % 8)));
    ASSERT_THROW(static_cast<void>(parse_manifest(damaged, "x")), CheckpointError) << bit;
  }
}

TEST_F(Damage, ByAMissingFileIsRefused) {
  fs::remove(path_ / kStateName);
  EXPECT_THAT(refusal(path_), HasSubstr("state.h5 is missing"));
  fs::remove(path_ / kManifestName);
  EXPECT_THAT(refusal(path_), HasSubstr("manifest.json is missing"));
  fs::remove(path_);
  EXPECT_THAT(refusal(path_), HasSubstr("No such file or directory"));
}

TEST_F(Damage, ByAnExtraFileIsRefused) {
  write_text(path_ / "state-2.h5", "x");
  EXPECT_THAT(refusal(path_), HasSubstr("state-2.h5 does not belong there"));
}

TEST_F(Damage, BySwappedDirectoriesIsRefused) {
  const fs::path other = save_small(directory_.path(), 8);
  fs::rename(other, directory_.path() / "aside");
  fs::rename(path_, other);
  EXPECT_THAT(refusal(other), HasSubstr("its manifest is of step 7"));
}

TEST_F(Damage, BySwappedFilesIsRefused) {
  const fs::path other = save_small(directory_.path(), 8);
  fs::copy_file(other / kStateName, path_ / kStateName, fs::copy_options::overwrite_existing);
  EXPECT_THAT(refusal(path_), HasSubstr("the manifest says"));
}

TEST_F(Damage, ByLinksAndPipesIsRefused) {
  fs::rename(path_ / kStateName, directory_.path() / "elsewhere");
  fs::create_symlink(directory_.path() / "elsewhere", path_ / kStateName);
  EXPECT_THAT(refusal(path_), HasSubstr("state.h5 is a symbolic link"));
  fs::remove(path_ / kStateName);
  fs::create_directory(path_ / kStateName);
  EXPECT_THAT(refusal(path_), HasSubstr("state.h5 is not a regular file"));
  fs::create_directory_symlink(path_, directory_.path() / "step-00000009");
  refusal(directory_.path() / "step-00000009");
}

// A manifest sealed with its own hash again, as a forger or another program would.
std::string sealed(std::string text) {
  const std::string key = "\"manifest_xxh3_128\": \"";
  const size_t at = text.find(key) + key.size();
  text.replace(at, 32, 32, '0');
  return text.replace(at, 32, xxh3_128(std::as_bytes(std::span(text))));
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST_F(Damage, ByAForgedManifestIsNamed) {
  const std::string whole = read_text(path_ / kManifestName);
  ASSERT_NO_THROW(static_cast<void>(parse_manifest(sealed(whole), "x")));
  const struct {
    std::string from, to, message;
  } cases[] = {
      {"\"version\": 2", "\"version\": 3", "format version is 3, this program reads 1 and 2"},
      {"\"version\": 2", "\"version\": 1", "'metric' is missing"},
      {"fathom-checkpoint", "other", "format is 'other'"},
      {"\"step\": 7", "\"step\": -7", "'step' is -7"},
      {"\"step\": 7", "\"step\": 7.5", "'step' is not a 64-bit integer"},
      {"\"step\": 7", "\"step\": 9223372036854775808", "'step' is not a 64-bit integer"},
      {"\"step\": 7", "\"step\": 1e999", "manifest.json: "},
      {"\"step\": 7", "\"step\": 7, \"step\": 7", "key 'step' appears twice"},
      {"\"step\": 7", "\"step\": 7, \"more\": 7", "unknown key 'more'"},
      {"\"run\":", "\"ran\":", "'run' is missing"},
      {"\"run-1\"", "5", "'run' is not a string"},
      {"\"f64\": \"inf\"", "\"f64\": \"1.5x\"", "'1.5x' is not a hexadecimal"},
      {"\"f32\"", "\"f16\"", "dtype 'f16' is not f32 or f64"},
      {"\"model/scale\"", "\"model/../scale\"", "array name 'model/../scale' is not allowed"},
      {"\"model/scale\"", "\"model/encoder.1.fc1.bias\"", "bias appears twice"},
      {"\"shape\": []", "\"shape\": [72057594037927936, 2]", "has more than 2^56 elements"},
      {"\"shape\": []", "\"shape\": [-1]", "an extent is not an integer from 0 to 2^56"},
      {"\"shape\": []", "\"shape\": [1,1,1,1,1,1,1,1,1]", "shape is not a list of up to 8"},
      {"\"state.h5\"", "\"../../etc/passwd\"", "'name' is '../../etc/passwd'"},
      {"\"config_hash\": \"abc\"", "\"a\": " + std::string(40, '[') + std::string(40, ']'),
       "nested deeper than 32"},
      {"\"version\": 2",
       "\"version\": 1, \"metric\": {\"name\": \"x\", \"value\": 1, \"better\": \"no\"}",
       "'better' is 'no'"},
  };
  for (const auto& c : cases) {
    write_text(path_ / kManifestName, sealed(replaced(whole, c.from, c.to)));
    EXPECT_THAT(refusal(path_), HasSubstr(c.message)) << c.to;
  }
  write_text(
      path_ / kManifestName,
      sealed(replaced(whole, "\"version\": 2", "\"version\": 2" + std::string(17 << 20, ' '))));
  EXPECT_THAT(refusal(path_), HasSubstr("bytes, allowed are 16777216"));
  write_text(path_ / kManifestName, replaced(whole, "\"step\": 7", "\"step\": 8"));
  EXPECT_THAT(refusal(path_), HasSubstr("its own hash is "));
}

TEST_F(Damage, ByAShapeTheFileDoesNotHaveIsNamed) {
  const std::string whole = read_text(path_ / kManifestName);
  write_text(path_ / kManifestName,
             sealed(replaced(whole, "\"shape\": []", "\"shape\": [1152921504606]")));
  EXPECT_THAT(refusal(path_),
              HasSubstr("model/scale has 0 axes, the manifest says (1152921504606)"));
  write_text(path_ / kManifestName, sealed(replaced(whole, "   40,\n    60", "   60,\n    40")));
  EXPECT_THAT(refusal(path_), HasSubstr("is (40, 60), the manifest says (60, 40)"));
  write_text(path_ / kManifestName, sealed(replaced(whole, "model/scale", "model/scales")));
  EXPECT_THAT(refusal(path_), HasSubstr("model/scale is not in the manifest"));
}

TEST_F(Damage, ByAnotherArrayHashIsNamed) {
  std::string text = read_text(path_ / kManifestName);
  const size_t at = text.find("\"xxh3_128\"", text.find("\"arrays\"")) + 13;
  text[at] = text[at] == '0' ? '1' : '0';
  write_text(path_ / kManifestName, sealed(text));
  EXPECT_THAT(refusal(path_), HasSubstr("model/encoder.1.fc1.weight has hash "));
}

}  // namespace
}  // namespace fathom::checkpoint
