#include "core/model/config.h"

#include <gtest/gtest.h>

namespace fathom::model {
namespace {

TEST(ModelConfig, ByDefaultContradictsNothing) {
  EXPECT_TRUE(contradictions({}).empty());
  EXPECT_TRUE(contradictions({.kind = ModelKind::kDecoder, .encoder_layers = 0}).empty());
}

TEST(ModelConfig, HasEncoderLayersExactlyWhenItHasAnEncoder) {
  EXPECT_EQ(contradictions({.encoder_layers = 0}).at(0).key, "model.encoder_layers");
  EXPECT_EQ(contradictions({.kind = ModelKind::kDecoder}).at(0).allowed, "0 in a decoder");
}

TEST(ModelConfig, WidthIsEvenAndAMultipleOfTheHeads) {
  EXPECT_EQ(contradictions({.width = 9, .heads = 3}).at(0).key, "model.width");
  const auto found = contradictions({.width = 12, .heads = 5});
  ASSERT_EQ(found.size(), 1u);
  const Contradiction* wrong = found.data();
  EXPECT_EQ(wrong->key, "model.heads");
  EXPECT_EQ(wrong->value, 5);
  EXPECT_EQ(wrong->allowed, "a divisor of model.width (12)");
  EXPECT_EQ(wrong->other, "model.width");
  EXPECT_EQ(wrong->other_allowed, "a multiple of model.heads (5)");
}

TEST(ModelConfig, TellsEveryContradiction) {
  const auto found = contradictions({.encoder_layers = 0, .width = 9, .heads = 2});
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].key, "model.encoder_layers");
  EXPECT_EQ(found[1].key, "model.width");
  EXPECT_EQ(found[2].key, "model.heads");
}

}  // namespace
}  // namespace fathom::model
