#include "launcher/train/validator.h"

#include <cmath>
#include <limits>

#include "tests/core/data/data_support.h"
#include "tests/launcher/train/training_support.h"

namespace fathom::launcher {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

ValidationRecord at_loss(double nll, int64_t step = 1) {
  return {.step = step, .result = {.nll = nll, .source_gain = 0.5, .tokens = 10}};
}

ValidationRecord at_bleu(double bleu, int64_t step = 1) {
  ValidationRecord record = at_loss(2, step);
  record.bleu = bleu;
  return record;
}

TEST(MetricOf, IsTheLossWhereNothingWasTranslated) {
  const std::optional<checkpoint::Metric> metric = metric_of(at_loss(2.5));

  ASSERT_TRUE(metric.has_value());
  EXPECT_EQ(metric->name, "validation_loss");
  EXPECT_EQ(metric->value, 2.5);
  EXPECT_EQ(metric->better, checkpoint::Better::kLower);
}

TEST(MetricOf, IsBleuOfWhichMoreIsBetter) {
  const std::optional<checkpoint::Metric> metric = metric_of(at_bleu(31));

  ASSERT_TRUE(metric.has_value());
  EXPECT_EQ(metric->name, "validation_bleu");
  EXPECT_EQ(metric->value, 31);
  EXPECT_EQ(metric->better, checkpoint::Better::kHigher);
}

TEST(MetricOf, IsNothingWhereTheLossIsNotFinite) {
  EXPECT_FALSE(metric_of(at_loss(kNaN)));
  EXPECT_FALSE(metric_of(at_loss(kInfinity)));
}

TEST(TrackBest, CountsValidationsWithoutAStrictlyBetterValue) {
  TrainState state;

  track_best(at_loss(3, 10), state);
  EXPECT_EQ(state.best_step, 10);
  EXPECT_EQ(state.validations_without_gain, 0);

  track_best(at_loss(3, 20), state);  // equal
  track_best(at_loss(kNaN, 30), state);
  track_best(at_loss(3.5, 40), state);
  EXPECT_EQ(state.best_step, 10);
  EXPECT_EQ(state.best_value, 3);
  EXPECT_EQ(state.validations_without_gain, 3);

  track_best(at_loss(2.9, 50), state);
  EXPECT_EQ(state.best_step, 50);
  EXPECT_EQ(state.best_value, 2.9);
  EXPECT_EQ(state.validations_without_gain, 0);
  EXPECT_EQ(state.validations, 5);
}

TEST(TrackBest, KeepsTheHighestBleu) {
  TrainState state;

  track_best(at_bleu(10, 1), state);
  track_best(at_bleu(12, 2), state);
  track_best(at_bleu(12, 3), state);
  track_best(at_bleu(11, 4), state);

  EXPECT_EQ(state.best_step, 2);
  EXPECT_EQ(state.best_value, -12);
  EXPECT_EQ(state.validations_without_gain, 2);
}

TEST(Judge, TellsTheSourceGainWhereThereIsOne) {
  const score::VerdictOptions options = {.unigram_entropy = 6, .after = 1};
  ValidationRecord record = at_loss(1, 5);

  score::VerdictMonitor monitor(options);
  record.result.source_gain = 0.05;
  judge(record, monitor);
  ASSERT_TRUE(monitor.verdict().has_value());
  EXPECT_EQ(monitor.verdict()->status, score::VerdictStatus::kBlind);
  EXPECT_EQ(monitor.verdict()->step, 5);

  score::VerdictMonitor without_gain(options);
  record.result.source_gain = kNaN;
  judge(record, without_gain);
  EXPECT_FALSE(without_gain.verdict().has_value());

  score::VerdictMonitor on_plateau(options);
  judge(at_loss(5.9, 5), on_plateau);
  ASSERT_TRUE(on_plateau.verdict().has_value());
  EXPECT_EQ(on_plateau.verdict()->status, score::VerdictStatus::kPlateau);
}

class ValidatorTest : public ::testing::Test {
 protected:
  // f(validator) on every one of `ranks` ranks, with a model fresh from the seed.
  template <class F>
  void on(int ranks, const F& f) const {
    dist::run_ranks(ranks, [&](dist::Communicator& group) {
      SmallTraining training(config_, data_.train, group);
      Validator validator(config_, data_, references_, training.model, *training.device, group);
      f(validator);
    });
  }

  Config config_ = small_config();
  data::PreparedData data_ = small_data();
  std::vector<std::string> references_;
};

TEST_F(ValidatorTest, IsDueEveryFewSteps) {
  config_.train.validate_every = 3;
  on(1, [](const Validator& validator) {
    EXPECT_FALSE(validator.is_due(1));
    EXPECT_FALSE(validator.is_due(2));
    EXPECT_TRUE(validator.is_due(3));
    EXPECT_FALSE(validator.is_due(4));
    EXPECT_TRUE(validator.is_due(6));
  });
}

TEST_F(ValidatorTest, IsNeverDueWhereNothingIsScheduledOrThereIsNoData) {
  config_.train.validate_every = 0;
  on(1, [](const Validator& validator) {
    EXPECT_TRUE(validator.has_data());
    EXPECT_FALSE(validator.is_due(3));
  });
  config_.train.validate_every = 3;
  data_.valid.reset();
  on(1, [](const Validator& validator) {
    EXPECT_FALSE(validator.has_data());
    EXPECT_FALSE(validator.is_due(3));
  });
}

TEST_F(ValidatorTest, RemembersTheLastOne) {
  on(1, [](Validator& validator) {
    EXPECT_FALSE(validator.last().has_value());
    const double nll = validator.run(7).result.nll;
    EXPECT_EQ(validator.last()->step, 7);
    EXPECT_EQ(validator.last()->result.nll, nll);
    validator.recall({.step = 9});
    EXPECT_EQ(validator.last()->step, 9);
  });
}

// As often on every rank, whatever its share: else ranks would wait for each other indefinitely.
TEST_F(ValidatorTest, AsksBeforeEveryBatchAndEndsWithWhatIsThrown) {
  config_.batch.micro_tokens = 16;
  const auto batches =
      int64_t(data::evaluation_plan(data_.valid->lengths(), config_.batch.micro_tokens).size());
  ASSERT_GT(batches, 3) << "three ranks have to ask twice";
  for (const int ranks : {1, 2, 3})
    on(ranks, [&](Validator& validator) {
      int64_t asked = 0;
      (void)validator.run(1, [&] { ++asked; });
      EXPECT_EQ(asked, (batches + ranks - 1) / ranks);
      asked = 0;
      EXPECT_THROW((void)validator.run(2, [&] { ++asked == 2 ? throw 5 : void(); }), int);
      EXPECT_EQ(asked, 2);
      EXPECT_EQ(validator.last()->step, 1);
    });
}

TEST(ValidationRecord, IsTheSameAfterItWasLaidBesideACheckpoint) {
  ValidationRecord record = {.step = 7, .result = {.nll = 0.1, .source_gain = -3.25, .tokens = 11}};
  record.bleu = 100.0 / 3;
  const checkpoint::ValidationResult result = result_of(record, "hash");
  EXPECT_EQ(result.data, "hash");
  EXPECT_EQ(result.metric->name, "validation_bleu");

  const ValidationRecord back = record_of(result, 7);

  EXPECT_EQ(back.step, 7);
  EXPECT_EQ(back.result.nll, record.result.nll);
  EXPECT_EQ(back.result.source_gain, record.result.source_gain);
  EXPECT_EQ(back.result.tokens, 11);
  EXPECT_EQ(back.bleu, record.bleu);
  EXPECT_THROW((void)record_of({}, 7), CheckpointError);
}

TEST_F(ValidatorTest, FindsTheSameOnAnyNumberOfRanks) {
  Validation alone;
  on(1, [&](Validator& validator) { alone = validator.run(1).result; });
  EXPECT_GT(alone.nll, 1);
  EXPECT_TRUE(std::isfinite(alone.source_gain));

  for (const int ranks : {2, 3})
    on(ranks, [&](Validator& validator) {
      const ValidationRecord& record = validator.run(1);
      EXPECT_EQ(record.result.nll, alone.nll);
      EXPECT_EQ(record.result.source_gain, alone.source_gain);
      EXPECT_EQ(record.result.tokens, alone.tokens);
      EXPECT_FALSE(record.bleu.has_value());
    });
}

// Pairs of these sources, each with a target of its own.
data::Dataset with_sources(const std::vector<std::vector<int32_t>>& sources) {
  std::vector<data::TokenPair> pairs;
  for (size_t i = 0; i < sources.size(); ++i)
    pairs.push_back({sources[i], {int32_t(3 + i % 10), int32_t(4 + i % 7)}});
  return data::Dataset::from_pairs(pairs, false);
}

SourceExchange exchange_of(const data::Dataset& data) {
  return exchange_sources(data, data::evaluation_plan(data.lengths(), 6));
}

TEST(SourceExchange, GivesEachSentenceTheSourceOfTheNextInThePlan) {
  const SourceExchange exchange = exchange_of(with_sources({{5, 5}, {6}, {7, 7}, {8}}));

  EXPECT_TRUE(exchange.is_telling);
  EXPECT_EQ(exchange.pairs, (std::vector<std::vector<int64_t>>{{0, 1}, {2, 3}}));
  EXPECT_EQ(exchange.sources, (std::vector<std::vector<int64_t>>{{1, 2}, {3, 0}}));
}

TEST(SourceExchange, LeavesOutPairsWhoseNextHasTheSameSource) {
  const SourceExchange exchange = exchange_of(with_sources({{5}, {5}, {6}, {5}}));

  EXPECT_TRUE(exchange.is_telling);
  EXPECT_EQ(exchange.pairs, (std::vector<std::vector<int64_t>>{{1}, {2}}));
  EXPECT_EQ(exchange.sources, (std::vector<std::vector<int64_t>>{{2}, {3}}));
}

TEST(SourceExchange, TellsNothingWhereTooFewSourcesDiffer) {
  EXPECT_FALSE(exchange_of(with_sources({{5}})).is_telling);
  EXPECT_FALSE(exchange_of(with_sources({{5}, {5}, {5}, {5}})).is_telling);
  std::vector<std::vector<int32_t>> nearly_equal(20, {5});
  nearly_equal[7] = {6};  // two of twenty pairs
  EXPECT_TRUE(exchange_of(with_sources(nearly_equal)).is_telling);
  nearly_equal.push_back({5});
  EXPECT_FALSE(exchange_of(with_sources(nearly_equal)).is_telling);
}

TEST_F(ValidatorTest, MeasuresTheGainOverThePairsThatWereExchanged) {
  // A set twice over: neighbours in the plan have equal sources, so that every second pair counts,
  // and each of those has the neighbour that it has in the set alone.
  const data::Dataset once = *data_.valid;
  std::vector<data::TokenPair> twice;
  for (int64_t i = 0; i < once.size(); ++i)
    for (int copy = 0; copy < 2; ++copy)
      twice.push_back({{once.source(i).begin(), once.source(i).end()},
                       {once.target(i).begin(), once.target(i).end()}});
  Validation alone;
  on(1, [&](Validator& validator) { alone = validator.run(1).result; });
  data_.valid = data::Dataset::from_pairs(twice, false);

  for (const int ranks : {1, 3})
    on(ranks, [&](Validator& validator) {
      const Validation doubled = validator.run(1).result;
      EXPECT_NEAR(doubled.source_gain, alone.source_gain, 1e-12);
      EXPECT_NEAR(doubled.nll, alone.nll, 1e-12);
      EXPECT_EQ(doubled.tokens, 2 * alone.tokens);
    });
}

TEST_F(ValidatorTest, HasNoSourceGainWhereAllSourcesAreEqual) {
  data_.valid = with_sources({{5, 6}, {5, 6}, {5, 6}});
  on(1,
     [&](Validator& validator) { EXPECT_TRUE(std::isnan(validator.run(1).result.source_gain)); });
}

TEST_F(ValidatorTest, TakesAPairLongerThanAMicroBatch) {
  std::vector<int32_t> long_one(size_t(config_.batch.micro_tokens), 7);
  data_.valid = with_sources({{5, 6}, long_one, {7}});
  on(1, [&](Validator& validator) { EXPECT_GT(validator.run(1).result.nll, 0); });
}

TEST_F(ValidatorTest, TranslatesWhereBleuIsAskedFor) {
  std::vector<std::string> text;
  for (int i = 0; i < 40; ++i) text.push_back(data::testing::sentence(i, false));
  data_.tokenizer = std::make_shared<data::Tokenizer>(
      data::Tokenizer::train(text, text, data::TokenizerKind::kBpe, 60));
  config_.model.vocabulary_size = data_.tokenizer->size();
  config_.train.best_metric = BestMetric::kBleu;
  references_.assign(text.begin(), text.begin() + data_.valid->size());

  for (const int ranks : {1, 2})
    on(ranks, [&](Validator& validator) {
      const ValidationRecord& record = validator.run(1);
      ASSERT_TRUE(record.bleu.has_value());
      EXPECT_EQ(metric_of(record)->name, "validation_bleu");
      EXPECT_GT(record.seconds, 0);
    });
}

}  // namespace
}  // namespace fathom::launcher
