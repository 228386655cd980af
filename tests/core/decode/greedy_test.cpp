// What the greedy strategy decodes equals its definition.
#include "core/decode/greedy.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "tests/core/decode/decode_support.h"
#include "tests/core/model/learning_support.h"

namespace fathom::decode {
namespace {

using Sequences = std::vector<Tokens>;

// One half-trained model for all tests of decoding: it makes mistakes and ends at various lengths.
class GreedySearch : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { model_ = model::trained({}, 120, model::reversed); }
  static void TearDownTestSuite() { model_.reset(); }
  static model::Transformer& model() { return model_->transformer; }
  static Sequences sources() {
    Sequences all;
    for (data::TokenPair& p : model::random_pairs(70, model::kFirst, model::kVocabulary, 1, 9, 77))
      all.push_back(p.source);
    return all;
  }
  static Sequences decoded(const Sequences& all, const LengthLimit& limit = {}) {
    const auto device = tensor::make_cpu_device(1);
    return translate(model(), *device, Greedy(), all, {.batch_tokens = 1000, .limit = limit});
  }
  // The definition: the best token after every prefix.
  static Tokens naive(const Tokens& source, int64_t limit) {
    const auto device = tensor::make_cpu_device(1);
    Tokens target;
    while (int64_t(target.size()) < limit) {
      const std::vector<double> z = uncached_logits(model(), *device, source, target);
      const int32_t best = int32_t(std::max_element(z.begin(), z.end()) - z.begin());
      if (best == data::kEndOfSentence) break;
      target.push_back(best);
    }
    return target;
  }

 private:
  static inline std::unique_ptr<model::Model> model_;
};

TEST_F(GreedySearch, IsTheBestTokenAfterEveryPrefix) {
  const Sequences outputs = decoded(sources());

  std::set<size_t> lengths;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const int64_t source_length = int64_t(sources()[i].size()) + 1;
    EXPECT_EQ(outputs[i], naive(sources()[i], int64_t(1.2 * double(source_length)) + 10)) << i;
    lengths.insert(outputs[i].size());
  }
  EXPECT_GT(lengths.size(), 3u) << "outputs of few lengths prove little";
}

TEST_F(GreedySearch, DoesNotDependOnTheBatch) {
  Sequences order = sources();
  const Sequences together = decoded(order);
  std::reverse(order.begin(), order.end());

  Sequences backwards = decoded(order);
  std::reverse(backwards.begin(), backwards.end());

  EXPECT_EQ(backwards, together);
  for (size_t i = 0; i < order.size(); ++i) EXPECT_EQ(decoded({sources()[i]})[0], together[i]) << i;
}

TEST_F(GreedySearch, StopsAtTheLimitOfLength) {
  for (const LengthLimit bound : {LengthLimit{0.5, 1}, LengthLimit{0, 3}, LengthLimit{1, 0}}) {
    const Sequences outputs = decoded(sources(), bound);

    size_t at_limit = 0;
    for (size_t i = 0; i < outputs.size(); ++i) {
      const int64_t limit = int64_t(bound.a * double(sources()[i].size() + 1)) + bound.b;
      EXPECT_LE(int64_t(outputs[i].size()), limit) << i;
      EXPECT_EQ(outputs[i], naive(sources()[i], limit)) << i;
      at_limit += int64_t(outputs[i].size()) == limit;
    }
    EXPECT_GT(at_limit, 0u);
  }
}

TEST_F(GreedySearch, OfNoTokensAtAllIsEmpty) {
  EXPECT_EQ(decoded({{2, 3}, {4}}, {0, 0}), (Sequences{{}, {}}));
}

}  // namespace
}  // namespace fathom::decode
