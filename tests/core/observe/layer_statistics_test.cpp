// The table's form, and that records are its rows. What the rows compute is checked in
// parameter_probe_test.cpp and tests/core/theory/layer_probe_test.cpp.
#include "core/observe/layer_statistics.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <gtest/gtest.h>

#include "tests/support/devices.h"
#include "tests/support/layer_statistics.h"

namespace fathom::observe {
namespace {

TEST(LayerStatistics, HaveUniqueNamesAndTexts) {
  std::set<std::string_view> names;
  for (const LayerStatistic& row : layer_statistics()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_EQ(row.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_"), row.name.npos) << row.name;
    EXPECT_FALSE(row.help.empty() || row.help.ends_with('.')) << row.name;
    EXPECT_FALSE(row.formula.empty() || row.unit.empty()) << row.name;
  }
}

TEST(LayerStatistics, AreNanWhereNothingWasSummed) {
  for (const LayerStatistic& row : layer_statistics()) {
    const bool is_norm = row.name == "gradient_norm" || row.name == "weight_norm";
    EXPECT_EQ(std::isnan(row.value({})), !is_norm) << row.name;  // an empty sum of squares is 0
  }
}

TEST(LayerRecords, HaveAValueForEachRowOfEachBlock) {
  const auto device = tensor::make_reference_device();
  ParameterStore store(*device, DType::kF32);
  store.add("embedding.weight", Role::kEmbedding, {3, 2});
  store.add("encoder.1.self_attention.norm.gain", Role::kNormGain, {2});
  store.add("encoder.1.self_attention.norm.bias", Role::kBias, {2});
  store.add("encoder.10.feed_forward.fc1.bias", Role::kBias, {5});
  store.add("encoder.final_norm.gain", Role::kNormGain, {2});
  store.freeze();
  const std::vector<topology::BlockContext> blocks = {
      {.stack = topology::StackKind::kEncoder, .kind = topology::BlockKind::kSelfAttention},
      {.stack = topology::StackKind::kEncoder,
       .layer = 10,
       .kind = topology::BlockKind::kFeedForward}};
  std::vector<ParameterSums> parameters(5);
  for (size_t p = 0; p < 5; ++p) parameters[p].gradient_square = std::pow(10, double(p));
  const std::vector<BlockSums> activations = {{.tokens = 2, .square = 8},
                                              {.tokens = 1, .square = 9}};

  const std::vector<LayerRecord> records = layer_records(store, blocks, activations, parameters);

  ASSERT_EQ(records.size(), 2u);
  const auto value = [&](size_t block, std::string_view name) {
    const auto rows = layer_statistics();
    const auto row = std::ranges::find(rows, name, &LayerStatistic::name);
    return records[block].values.at(size_t(row - rows.begin()));
  };
  for (const LayerRecord& record : records)
    EXPECT_EQ(record.values.size(), layer_statistics().size());
  EXPECT_EQ(topology::name_of(records[1].block), "encoder.10.feed_forward");
  EXPECT_DOUBLE_EQ(value(0, "gradient_norm"), std::sqrt(110));
  EXPECT_DOUBLE_EQ(value(1, "gradient_norm"), std::sqrt(1000));
  EXPECT_DOUBLE_EQ(value(0, "hidden_rms"), 2);
  EXPECT_DOUBLE_EQ(value(1, "hidden_rms"), 3);
}

}  // namespace
}  // namespace fathom::observe
