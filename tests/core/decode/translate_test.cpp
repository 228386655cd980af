// The loop around a strategy: order, empty sentences, size of a batch, shares.
#include "core/decode/translate.h"

#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

#include "core/decode/greedy.h"
#include "tests/core/decode/decode_support.h"
#include "tests/support/expect_error.h"

namespace fathom::decode {
namespace {

// Greedy, and notes the limits of each batch.
class Watched final : public Strategy {
 public:
  int64_t rows_per_sentence() const override { return 1; }
  std::vector<Tokens> search(DecodingSession& session,
                             std::span<const int32_t> limits) const override {
    batches.emplace_back(limits.begin(), limits.end());
    return Greedy().search(session, limits);
  }
  mutable std::vector<std::vector<int32_t>> batches;
};

class Translate : public ::testing::Test {
 protected:
  // Lengths 1 to 9 in no order, some twice, and empty ones between them.
  static std::vector<Tokens> sources() {
    std::vector<Tokens> all = random_sources(30, 23, 9, 8);
    all.insert(all.begin() + 4, Tokens{});
    all.push_back({});
    return all;
  }
  std::vector<Tokens> run(const std::vector<Tokens>& all, int64_t batch_tokens,
                          BatchShare share = {}) {
    return translate(model_->transformer, *device_, strategy_, all,
                     {.batch_tokens = batch_tokens, .limit = {.a = 1, .b = 0}}, share);
  }

  std::unique_ptr<Device> device_ = tensor::make_cpu_device(1);
  std::unique_ptr<model::Model> model_ = random_model(DType::kF32);
  Watched strategy_;
};

TEST_F(Translate, PutsResultsBackInTheOrderOfTheSources) {
  const std::vector<Tokens> all = sources();

  const std::vector<Tokens> targets = run(all, 40);

  ASSERT_EQ(targets.size(), all.size());
  for (size_t i = 0; i < all.size(); ++i) EXPECT_EQ(targets[i], run({all[i]}, 40)[0]) << i;
  std::vector<Tokens> distinct = targets;
  std::sort(distinct.begin(), distinct.end());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  EXPECT_GT(distinct.size(), 20u) << "equal targets prove nothing about their order";
}

TEST_F(Translate, TurnsEmptySourcesIntoEmptyTargets) {
  const std::vector<Tokens> targets = run({{}, {2, 3}, {}, {4}, {}}, 40);

  EXPECT_EQ(targets, (std::vector<Tokens>{{}, run({{2, 3}}, 40)[0], {}, run({{4}}, 40)[0], {}}));
  EXPECT_TRUE(run({}, 40).empty());
  EXPECT_EQ(run({{}}, 40), std::vector<Tokens>{{}});
}

TEST_F(Translate, GivesTheSameForEverySizeOfABatch) {
  const std::vector<Tokens> expected = run(sources(), 1 << 20);

  for (const int64_t batch_tokens : {1, 7, 10, 33, 200})
    EXPECT_EQ(run(sources(), batch_tokens), expected) << batch_tokens;
}

// With a = 1 and b = 0 the limits are the source's tokens, EOS included.
TEST_F(Translate, DecodesAtMostTheBatchTokensAtOnceAndSimilarLengthsTogether) {
  for (const int64_t batch_tokens : {1, 10, 33, 200}) {
    strategy_.batches.clear();
    (void)run(sources(), batch_tokens);

    std::vector<int32_t> order;
    for (const std::vector<int32_t>& batch : strategy_.batches) {
      const int64_t tokens = std::accumulate(batch.begin(), batch.end(), int64_t{0});
      EXPECT_TRUE(tokens <= batch_tokens || batch.size() == 1) << tokens << " " << batch_tokens;
      order.insert(order.end(), batch.begin(), batch.end());
    }
    EXPECT_EQ(order.size(), 30u);
    EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
  }
}

TEST_F(Translate, OfAllSharesTogetherIsTheWhole) {
  const std::vector<Tokens> all = sources(), expected = run(all, 25);
  std::vector<Tokens> together(all.size());
  for (int64_t rank = 0; rank < 3; ++rank) {
    const std::vector<Tokens> mine = run(all, 25, {.first = rank, .every = 3});
    for (size_t i = 0; i < all.size(); ++i) {
      if (mine[i].empty()) continue;
      EXPECT_TRUE(together[i].empty()) << i << " is in two shares";
      together[i] = mine[i];
    }
  }

  EXPECT_EQ(together, expected);
}

TEST_F(Translate, RefusesAModelWithoutSource) {
  model::Transformer decoder(model::small_config("pre-ln", 0, 1), *device_, DType::kF32);

  EXPECT_TRUE(support::throws_with<InvalidArgument>(
      "translate: a decoder-only model has no source to translate",
      [&] { (void)translate(decoder, *device_, Greedy(), std::vector<Tokens>{{2}}, {}); }));
}

}  // namespace
}  // namespace fathom::decode
