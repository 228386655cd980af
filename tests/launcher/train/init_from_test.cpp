#include "launcher/train/init_from.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "launcher/config/load.h"
#include "launcher/config/show.h"
#include "tests/launcher/train/training_support.h"
#include "tests/launcher/train/written_state.h"
#include "tests/support/expect_error.h"
#include "tests/support/temporary_directory.h"

namespace fathom::launcher {
namespace {

using support::throws_with;

class InitFrom : public ::testing::Test {
 protected:
  InitFrom() {
    (void)written_state(directory_ / "donor", {},
                        nlohmann::json{{"config", to_yaml(theirs_)}}.dump());
  }
  // Opens the donor for a run of another config.
  [[nodiscard]] bool fits(const Config& config) const {
    return open_donor(directory_ / "donor", config).has_value();
  }
  template <class F>
  void expect_refused(const std::string& message, const F& change) const {
    Config ours = theirs_;
    change(ours);
    EXPECT_TRUE(throws_with<InvalidArgument>(message, [&] { (void)fits(ours); }));
  }

  support::TemporaryDirectory directory_;
  Config theirs_ = parse_config("data: {train: text}\nmodel: {topology: hyper-connections}\n",
                                "c.yaml", "theirs", {});
};

TEST_F(InitFrom, OpensADonorWhoseWeightsMeanTheSame) {
  Config ours = theirs_;
  ours.run.seed = 9;
  ours.model.dropout = 0.5;
  ours.optimizer.learning_rate = 1;
  ours.data.train = "other/text";
  ours.data.source = "fr";
  EXPECT_TRUE(fits(ours));
  EXPECT_FALSE(open_donor("", ours).has_value());
  EXPECT_THROW((void)open_donor(directory_ / "none", ours), CheckpointError);
}

TEST_F(InitFrom, RefusesWhatWouldGiveTheWeightsAnotherMeaning) {
  expect_refused("--init-from: model.heads: got 8, but the weights of ",
                 [](Config& c) { c.model.heads = 8; });
  expect_refused("were trained with relu; they would mean something else: set model.activation to",
                 [](Config& c) { c.model.activation = model::Activation::kGelu; });
  expect_refused("model.topology: got pre-ln", [](Config& c) {
    c.model.topology = "pre-ln";
    c.model.topology_options.clear();
  });
  expect_refused("model.topology_options.streams: got 4",
                 [](Config& c) { c.model.topology_options["streams"] = "4"; });
}

TEST_F(InitFrom, RefusesExchangedLanguages) {
  expect_refused("got data.source en and data.target de, but the weights of ",
                 [](Config& c) { std::swap(c.data.source, c.data.target); });
}

TEST_F(InitFrom, RefusesACheckpointWithoutAConfig) {
  (void)written_state(directory_ / "bare", {}, "{}");
  EXPECT_TRUE(throws_with<CheckpointError>(
      "carries no config", [&] { (void)open_donor(directory_ / "bare", theirs_); }));
}

}  // namespace
}  // namespace fathom::launcher
