#include "checkpoint/retention.h"

#include <gmock/gmock.h>

namespace fathom::checkpoint {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Manifest at(int64_t step, std::optional<Metric> metric = {}) {
  Manifest m;
  m.step = step;
  m.metric = std::move(metric);
  return m;
}

Metric loss(double value) { return {"validation_loss", value, Better::kLower}; }
Metric bleu(double value) { return {"bleu", value, Better::kHigher}; }

std::vector<int64_t> ranking(const std::vector<Manifest>& manifests) {
  std::vector<int64_t> steps;
  for (const Manifest* m : rank_by_metric(manifests)) steps.push_back(m->step);
  return steps;
}

const std::vector<Manifest> kRun = {at(500, loss(3)), at(400, loss(2)), at(300), at(200, loss(1)),
                                    at(100, loss(2))};

TEST(RankByMetric, PutsTheBestFirstAndOfEqualsTheNewer) {
  EXPECT_THAT(ranking(kRun), ElementsAre(200, 400, 100, 500));
  EXPECT_THAT(ranking({at(300, bleu(25)), at(200, bleu(30)), at(100, bleu(20))}),
              ElementsAre(200, 300, 100));
  EXPECT_THAT(ranking({at(2), at(1)}), IsEmpty());
}

TEST(RankByMetric, ComparesByTheMetricOfTheNewest) {
  EXPECT_THAT(ranking({at(400), at(300, bleu(20)), at(200, loss(1)), at(100, bleu(25))}),
              ElementsAre(100, 300));
}

TEST(StepsToKeep, AreThoseThatAnyRuleKeeps) {
  EXPECT_THAT(steps_to_keep(kRun, {.keep_last = 0, .keep_best = 0}), IsEmpty());
  EXPECT_THAT(steps_to_keep(kRun, {.keep_last = 2, .keep_best = 0}), ElementsAre(400, 500));
  EXPECT_THAT(steps_to_keep(kRun, {.keep_last = 0, .keep_best = 2}), ElementsAre(200, 400));
  EXPECT_THAT(steps_to_keep(kRun, {.keep_last = 1, .keep_best = 1, .keep_every = 150}),
              ElementsAre(200, 300, 500));
  EXPECT_THAT(steps_to_keep(kRun, {.keep_last = 9, .keep_best = 9}),
              ElementsAre(100, 200, 300, 400, 500));
}

TEST(StepsToKeep, CountNoMultipleInStepZero) {
  EXPECT_THAT(
      steps_to_keep(std::vector{at(10), at(0)}, {.keep_last = 0, .keep_best = 0, .keep_every = 10}),
      ElementsAre(10));
}

}  // namespace
}  // namespace fathom::checkpoint
