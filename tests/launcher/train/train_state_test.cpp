#include "launcher/train/train_state.h"

#include <tuple>

#include "core/tensor/device.h"
#include "tests/launcher/train/written_state.h"
#include "tests/support/expect_error.h"
#include "tests/support/temporary_directory.h"

namespace fathom::launcher {
namespace {

// Every field. A new one must be named here, or this does not compile.
template <class State>
auto fields_of(State& state) {
  auto& [step, next, source_tokens, target_tokens, sentences, skipped, validation_due, validations,
         validations_without_gain, best_value, best_step, verdict] = state;
  auto& [epoch, batch] = next;
  auto& [verdict_validations, last_step, best_nll, best_nll_step, raised_validations, raised_since,
         nonfinite_steps, nonfinite_step, nonfinite_value, status, verdict_step, value, reference] =
      verdict;
  return std::tie(step, epoch, batch, source_tokens, target_tokens, sentences, skipped,
                  validation_due, validations, validations_without_gain, best_value, best_step,
                  verdict_validations, last_step, best_nll, best_nll_step, raised_validations,
                  raised_since, nonfinite_steps, nonfinite_step, nonfinite_value, status,
                  verdict_step, value, reference);
}

TrainState reloaded(const TrainState& state) {
  const support::TemporaryDirectory directory;
  const checkpoint::Checkpoint checkpoint = written_state(directory / "state", state);
  TrainState loaded;
  checkpoint::LoadingArchive loading(checkpoint);
  loaded.visit(loading);
  loading.finish();
  return loaded;
}

TEST(TrainState, KeepsEveryFieldInACheckpoint) {
  TrainState state;
  int number = 100;
  std::apply([&](auto&... field) { ((field = ++number), ...); }, fields_of(state));

  TrainState loaded = reloaded(state);

  EXPECT_EQ(fields_of(loaded), fields_of(state));
}

TEST(TrainState, OfAFreshRunHasNoBestValueAlsoInACheckpoint) {
  TrainState fresh;

  EXPECT_EQ(reloaded(fresh).best_value, std::numeric_limits<double>::infinity());
}

class VisitParameters : public ::testing::TestWithParam<DType> {
 protected:
  VisitParameters() {
    store_.add("first", Role::kFeedForwardIn, {3, 5}, 5, 3);
    store_.add("second", Role::kBias, {7});
    store_.freeze();
  }
  std::vector<std::byte> flat(int first) const {
    std::vector<std::byte> out(size_t(store_.weights().bytes()));
    for (size_t i = 0; i < out.size(); ++i) out[i] = std::byte(size_t(first) + i);
    return out;
  }
  void expect_part(const checkpoint::ArrayView& array, const std::string& name,
                   const std::vector<std::byte>& flat) const {
    const Parameter& p = store_.find(array.name.substr(array.name.rfind('/') + 1));
    EXPECT_EQ(array.name, name);
    EXPECT_EQ(array.shape, p.shape);
    EXPECT_EQ(array.bytes.data(), flat.data() + p.offset * size_of(store_.wide()));
    EXPECT_EQ(int64_t(array.bytes.size()), p.numel() * size_of(store_.wide()));
  }

  std::unique_ptr<Device> device_ = tensor::make_reference_device();
  ParameterStore store_{*device_, GetParam()};
};

TEST_P(VisitParameters, NamesEveryParametersPartOfTheFlatWeights) {
  std::vector<std::byte> weights = flat(0);
  checkpoint::SavingArchive archive;

  visit_weights(archive, store_, weights);

  ASSERT_EQ(archive.arrays().size(), 2u);
  expect_part(archive.arrays()[0], "model/first", weights);
  expect_part(archive.arrays()[1], "model/second", weights);
}

TEST_P(VisitParameters, NamesBothMomentsAndTheUpdates) {
  std::vector<std::byte> first = flat(0), second = flat(1);
  int64_t updates = 12;
  checkpoint::SavingArchive archive;

  visit_moments(archive, store_, first, second, updates);

  ASSERT_EQ(archive.arrays().size(), 4u);
  expect_part(archive.arrays()[1], "optimizer/m/second", first);
  expect_part(archive.arrays()[2], "optimizer/v/first", second);
  EXPECT_EQ(std::get<int64_t>(archive.values().at("optimizer/updates")), 12);
}

TEST_P(VisitParameters, RefusesABufferOfAnotherSize) {
  std::vector<std::byte> weights = flat(0);
  weights.pop_back();
  checkpoint::SavingArchive archive;

  EXPECT_TRUE(support::throws_with<InvalidArgument>(
      "train state: ", [&] { visit_weights(archive, store_, weights); }));
}

INSTANTIATE_TEST_SUITE_P(Types, VisitParameters,
                         ::testing::Values(DType::kF32, DType::kF64, DType::kBF16),
                         [](const auto& type) { return std::string(to_string(type.param)); });

}  // namespace
}  // namespace fathom::launcher
