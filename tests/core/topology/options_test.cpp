#include "core/topology/options.h"

#include <gtest/gtest.h>

#include "core/topology/registry.h"
#include "tests/support/expect_error.h"

namespace fathom::topology {
namespace {

using support::throws_with;

constexpr ModelShape kShape = {
    .encoder_layers = 2, .decoder_layers = 3, .width = 8, .ffn_width = 16};

const std::vector<TopologyOption> kKnown = {
    {.name = "alpha", .default_value = "1", .meaning = "any number"},
    {.name = "scale", .default_value = "0.5", .meaning = "a positive one", .above = 0},
    {.name = "start", .default_value = "zero", .meaning = "a word", .choices = {"zero", "one"}}};

TEST(TopologyOptions, AreTheGivenValuesElseTheDefaults) {
  const TopologyOptions options("t", kKnown, {{"alpha", "-2.5e-1"}, {"start", "one"}});
  EXPECT_EQ(options.number("alpha"), -0.25);
  EXPECT_EQ(options.number("scale"), 0.5);
  EXPECT_EQ(options.choice("start"), "one");
}

TEST(TopologyOptions, RefuseUndeclaredNamesAndValuesThatAreNotAllowed) {
  const auto refuses = [](const std::string& name, const std::string& value,
                          const std::string& text) {
    return throws_with<InvalidArgument>("model.topology_options." + name + ": " + text, [&] {
      TopologyOptions("t", kKnown, {{name, value}});
    });
  };
  EXPECT_TRUE(refuses("beta", "1", "topology t has no such option"));
  for (const char* value : {"", "x", "1x", "nan", "inf", "1e999", "0x1", "1,5", " 1"})
    EXPECT_TRUE(refuses("alpha", value, join("got ", value, ", allowed number")));
  for (const char* value : {"0", "-1", "-0.0"})
    EXPECT_TRUE(refuses("scale", value, join("got ", value, ", allowed number > 0")));
  EXPECT_TRUE(refuses("start", "Zero", "got Zero, allowed one of zero, one"));
}

TEST(Topologies, DeclareDefaultsThatTheyAccept) {
  for (const TopologyInfo& topology : topologies()) {
    EXPECT_FALSE(topology.placement.empty()) << topology.name;
    for (const TopologyOption& option : topology.options) {
      EXPECT_TRUE(option.accepts(option.default_value)) << topology.name << " " << option.name;
      EXPECT_FALSE(option.meaning.empty()) << topology.name << " " << option.name;
    }
    for (const StackKind stack : {StackKind::kEncoder, StackKind::kDecoder})
      EXPECT_NE(make_topology(topology.name, {}, kShape, stack), nullptr) << topology.name;
  }
}

TEST(Topologies, OfAnUnknownNameAreListed) {
  for (const std::string& name : topology_names())
    EXPECT_TRUE(throws_with<InvalidArgument>(
        name, [] { (void)make_topology("postln", {}, kShape, StackKind::kEncoder); }));
}

}  // namespace
}  // namespace fathom::topology
