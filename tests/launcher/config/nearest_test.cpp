#include "launcher/config/nearest.h"

#include <gtest/gtest.h>

#include "launcher/config/schema.h"

namespace fathom::launcher {
namespace {

TEST(Nearest, CountsChangedMissingExtraAndSwappedLetters) {
  const std::vector<std::string> candidates = {"width", "heads"};
  for (const char* word : {"widht", "widt", "wwidth", "wodth"})
    EXPECT_EQ(nearest(word, candidates), "width") << word;
  EXPECT_EQ(nearest("haeds", candidates), "heads");
}

TEST(Nearest, IsNothingWhenNoneIsClose) {
  EXPECT_EQ(nearest("zebra", {"width", "heads"}), std::nullopt);
  EXPECT_EQ(nearest("on", {"a", "abc"}), std::nullopt);
  EXPECT_EQ(nearest("width", {}), std::nullopt);
  EXPECT_EQ(nearest(std::string(101, 'a'), {std::string(101, 'a')}), std::nullopt);
}

TEST(NearestKey, IsTheRightNameInTheWrongSectionOrANearOne) {
  EXPECT_EQ(nearest_key("train.dropout"), "model.dropout");
  EXPECT_EQ(nearest_key("model.widht"), "model.width");
  EXPECT_EQ(nearest_key("model.topology_options.alhpa"), "model.topology_options.alpha");
  EXPECT_EQ(nearest_key("modle.widht"), "model.width");
  EXPECT_EQ(nearest_key("batch.zebra"), std::nullopt);
}

}  // namespace
}  // namespace fathom::launcher
