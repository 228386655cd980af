#include "checkpoint/validation_file.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>

#include "core/base/error.h"
#include "core/base/hash.h"
#include "tests/checkpoint/support.h"

namespace fathom::checkpoint {
namespace {

using ::testing::HasSubstr;

constexpr double kInf = std::numeric_limits<double>::infinity();

class ValidationFile : public ::testing::Test {
 protected:
  ValidationFile() {
    SavingArchive archive;
    state_.visit(archive);
    static_cast<void>(write_checkpoint(path_, archive, info_of(7)));
    manifest_ = read_manifest(path_);
  }
  void write(const std::string& text) const { write_text(path_ / kValidationName, text); }
  [[nodiscard]] std::string refusal() const {
    return message_of<CheckpointError>(
        [&] { static_cast<void>(read_validation(path_, manifest_)); });
  }

  TemporaryDirectory directory_;
  SmallState state_{7};
  fs::path path_ = directory_ / "step-00000007";
  Manifest manifest_;
  ValidationResult result_ = {.data = "hash of the set",
                              .metric = Metric{"bleu", 30.25, Better::kHigher},
                              .figures = {{"loss", 0.1}, {"gain", std::nan("")}, {"high", kInf}}};
};

TEST_F(ValidationFile, IsReadAsItWasWritten) {
  EXPECT_FALSE(read_validation(path_, manifest_).has_value());
  write(to_json(result_, manifest_));

  const auto read = read_validation(path_, manifest_);

  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->data, "hash of the set");
  EXPECT_EQ(read->metric->name, "bleu");
  EXPECT_EQ(read->metric->value, 30.25);
  EXPECT_EQ(read->metric->better, Better::kHigher);
  EXPECT_EQ(read->figures.at("loss"), 0.1);
  EXPECT_TRUE(std::isnan(read->figures.at("gain")));
  EXPECT_EQ(read->figures.at("high"), kInf);
  EXPECT_NO_THROW(static_cast<void>(Checkpoint::open(path_)));
}

TEST_F(ValidationFile, OfALossThatIsNotFiniteHasNoMetric) {
  result_.metric.reset();
  write(to_json(result_, manifest_));
  EXPECT_FALSE(read_validation(path_, manifest_)->metric.has_value());
}

TEST_F(ValidationFile, OfOtherWeightsIsRefused) {
  Manifest other = manifest_;
  other.state_hash = xxh3_128(std::string_view("other"));
  write(to_json(result_, other));
  EXPECT_THAT(refusal(), HasSubstr("it is of other weights than those beside it"));
  other = manifest_;
  other.step = 8;
  write(to_json(result_, other));
  EXPECT_THAT(refusal(), HasSubstr("it is of other weights than those beside it"));
}

TEST_F(ValidationFile, IsRefusedWithAnyOfItsBytesChanged) {
  const std::string whole = to_json(result_, manifest_);
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string text = whole;
    text[i] = char(text[i] ^ 1);
    write(text);
    EXPECT_THAT(refusal(), HasSubstr("validation.json: ")) << i;
  }
  for (const size_t size : {size_t{0}, whole.size() / 2, whole.size() - 3}) {
    write(whole.substr(0, size));
    EXPECT_THAT(refusal(), HasSubstr("remove it, the validation is made again")) << size;
  }
}

TEST_F(ValidationFile, ThatIsALinkIsRefused) {
  write_text(directory_ / "elsewhere", to_json(result_, manifest_));
  fs::create_symlink(directory_ / "elsewhere", path_ / kValidationName);
  EXPECT_THAT(refusal(), HasSubstr("validation.json is a symbolic link"));
}

// What it says of the checkpoint beside it: nothing.
TEST_F(ValidationFile, ThatIsDamagedLeavesTheCheckpointWhole) {
  write("{");
  EXPECT_NO_THROW(static_cast<void>(Checkpoint::open(path_)));
}

}  // namespace
}  // namespace fathom::checkpoint
