#include "core/model/config.h"

#include <gtest/gtest.h>

namespace fathom::model {
namespace {

TEST(ModelConfig, ByDefaultContradictsNothing) {
  EXPECT_FALSE(find_contradiction({}));
  EXPECT_FALSE(find_contradiction({.kind = ModelKind::kDecoder, .encoder_layers = 0}));
}

TEST(ModelConfig, HasEncoderLayersExactlyWhenItHasAnEncoder) {
  EXPECT_EQ(find_contradiction({.encoder_layers = 0})->key, "model.encoder_layers");
  EXPECT_EQ(find_contradiction({.kind = ModelKind::kDecoder})->allowed, "0 in a decoder");
}

TEST(ModelConfig, WidthIsEvenAndAMultipleOfTheHeads) {
  EXPECT_EQ(find_contradiction({.width = 9, .heads = 3})->key, "model.width");
  const auto wrong = find_contradiction({.width = 12, .heads = 5});
  ASSERT_TRUE(wrong);
  EXPECT_EQ(wrong->key, "model.heads");
  EXPECT_EQ(wrong->value, 5);
  EXPECT_EQ(wrong->allowed, "a divisor of model.width (12)");
  EXPECT_EQ(wrong->other, "model.width");
  EXPECT_EQ(wrong->other_allowed, "a multiple of model.heads (5)");
}

}  // namespace
}  // namespace fathom::model
