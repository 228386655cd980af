#include "launcher/train/agreement.h"

#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/core/data/data_support.h"
#include "tests/launcher/train/training_support.h"
#include "tests/launcher/train/written_state.h"
#include "tests/support/expect_error.h"
#include "tests/support/temporary_directory.h"

namespace fathom::launcher {
namespace {

using support::throws_with;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Start {
  Config config = small_config();
  data::PreparedData data = small_data();
  std::string numerics = "scalar";
};

// Three ranks of which the last one starts otherwise.
void start_ranks(const std::function<void(Start&)>& change) {
  dist::run_ranks(3, [&](dist::Communicator& group) {
    Start start;
    if (group.rank() == 2) change(start);
    check_ranks_agree(start.config, start.data, start.numerics, group);
  });
}

TEST(CheckRanksAgree, AcceptsRanksThatAreAlike) {
  EXPECT_NO_THROW(start_ranks([](Start& /*start*/) {}));
}

TEST(CheckRanksAgree, AcceptsRanksWithOtherThreads) {
  EXPECT_NO_THROW(start_ranks([](Start& start) { start.config.train.threads = 7; }));
}

TEST(CheckRanksAgree, RefusesAnotherConfigDataOrNumericsByName) {
  EXPECT_TRUE(throws_with<InvalidArgument>("the ranks differ in config: rank 2 on ", [] {
    start_ranks([](Start& start) { start.config.optimizer.learning_rate *= 2; });
  }));
  EXPECT_TRUE(throws_with<InvalidArgument>("the ranks differ in data: rank 2 on ", [] {
    start_ranks([](Start& start) { start.data.content_hash = "others"; });
  }));
  EXPECT_TRUE(throws_with<InvalidArgument>("the ranks differ in numerics: rank 2 on ", [] {
    start_ranks([](Start& start) { start.numerics = "vectors"; });
  }));
}

std::shared_ptr<const data::Tokenizer> small_tokenizer() {
  std::vector<std::string> text;
  for (int i = 0; i < 40; ++i) text.push_back(data::testing::sentence(i, false));
  return std::make_shared<data::Tokenizer>(
      data::Tokenizer::train(text, text, data::TokenizerKind::kBpe, 60));
}

class CheckSame : public ::testing::Test {
 protected:
  [[nodiscard]] checkpoint::Checkpoint made_with(const nlohmann::json& provenance) const {
    return written_state(directory_ / "state", {}, provenance.dump());
  }

  support::TemporaryDirectory directory_;
  data::PreparedData data_ = small_data();
  std::ostringstream said_;
  monitoring::Log log_{{}, said_};
};

// A checkpoint whose texts were those of data_ but for `member`, which names another hash.
nlohmann::json but_for(const data::PreparedData& data, const std::string& member) {
  nlohmann::json made = {{"data", "others"},
                         {"tokenizer", xxh3_128(data.tokenizer->bytes())},
                         {"training_tokens", data.train.hash()},
                         {"validation_tokens", data.valid->hash()}};
  made[member] = "others";
  return made;
}

TEST_F(CheckSame, TakesTheSameTexts) {
  EXPECT_FALSE(check_same_data(made_with({{"data", "tokens"}}), data_, {}));
  EXPECT_FALSE(check_same_data(made_with({{"version", "none of data"}}), data_, {}));
  EXPECT_FALSE(check_same_data(made_with({{"data", "tokens"}}), data_, {"data.valid"}));
}

TEST_F(CheckSame, TakesAnotherTestText) {
  data_.tokenizer = small_tokenizer();
  EXPECT_FALSE(check_same_data(made_with(but_for(data_, "test_tokens")), data_, {}));
}

TEST_F(CheckSame, NeverTakesAnotherTrainingText) {
  data_.tokenizer = small_tokenizer();
  for (const char* part : {"tokenizer", "training_tokens"})
    for (const std::vector<std::string>& allowed :
         {std::vector<std::string>{}, std::vector<std::string>{"data.valid"}})
      EXPECT_TRUE(throws_with<DataError>(" has changed; put it back, or start a new run", [&] {
        (void)check_same_data(made_with(but_for(data_, part)), data_, allowed);
      }));
}

TEST_F(CheckSame, TakesAnotherValidationTextWhereThatIsAllowed) {
  data_.tokenizer = small_tokenizer();
  const checkpoint::Checkpoint made = made_with(but_for(data_, "validation_tokens"));

  EXPECT_TRUE(throws_with<DataError>("or go on with it: --allow-change data.valid",
                                     [&] { (void)check_same_data(made, data_, {}); }));
  EXPECT_TRUE(check_same_data(made, data_, {"run.seed", "data.valid"}));
}

TEST_F(CheckSame, CannotTellTheTextsOfAnOldCheckpointApart) {
  EXPECT_TRUE(throws_with<DataError>("resume it unchanged to its next save", [&] {
    (void)check_same_data(made_with({{"data", "others"}}), data_, {"data.valid"});
  }));
}

TEST_F(CheckSame, WarnsOfOtherNumerics) {
  check_same_numerics(made_with({{"numerics", "scalar"}}), "scalar", log_);
  check_same_numerics(made_with({{"version", "none of numerics"}}), "scalar", log_);
  EXPECT_THAT(said_.str(), IsEmpty());

  check_same_numerics(made_with({{"numerics", "vectors"}}), "scalar", log_);
  EXPECT_THAT(said_.str(), HasSubstr("the checkpoint was computed with vectors, this process "
                                     "computes with scalar"));
}

}  // namespace
}  // namespace fathom::launcher
