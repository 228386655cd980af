#include "checkpoint/strict_json.h"

#include <gmock/gmock.h>

#include "core/base/error.h"
#include "tests/checkpoint/support.h"

namespace fathom::checkpoint {
namespace {

using ::testing::HasSubstr;

std::string refusal_of(const std::string& text) {
  return message_of<InvalidArgument>([&] { static_cast<void>(parse_strictly(text)); });
}

TEST(ParseStrictly, RefusesWhatAnotherParserWouldOverlook) {
  EXPECT_THAT(refusal_of(R"({"a": {"b": 1, "b": 1}})"), HasSubstr("key 'b' appears twice"));
  EXPECT_NO_THROW(static_cast<void>(parse_strictly(R"({"a": {"b": 1}, "c": {"b": 1}})")));
  const auto nested = [](size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_NO_THROW(static_cast<void>(parse_strictly(nested(32))));
  EXPECT_THAT(refusal_of(nested(40)), HasSubstr("nested deeper than 32"));
  EXPECT_THAT(refusal_of("{"), HasSubstr("parse error"));
  EXPECT_THAT(refusal_of("[1e999]"), HasSubstr("number overflow"));
}

TEST(ObjectReader, TakesMembersOfTheTypeThatIsAskedFor) {
  const Json json = parse_strictly(
      R"({"low": -9223372036854775808, "high": 9223372036854775807, "yes": true, "text": "t"})");
  ObjectReader members(json, "here");
  EXPECT_EQ(members.integer("low"), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(members.count("high"), std::numeric_limits<int64_t>::max());
  EXPECT_THAT(message_of<InvalidArgument>([&] { members.finish(); }),
              HasSubstr("here: unknown key 'yes'"));
  EXPECT_TRUE(members.boolean("yes"));
  EXPECT_EQ(members.text("text"), "t");
  EXPECT_NO_THROW(members.finish());
}

TEST(ObjectReader, NamesWhatIsMissingOrOfAnotherType) {
  const Json json = parse_strictly(
      R"({"minus": -1, "half": 0.5, "large": 9223372036854775808, "one": 1, "text": "t"})");
  ObjectReader members(json, "here");
  const auto message = [](auto read) { return message_of<InvalidArgument>(read); };
  EXPECT_EQ(message([&] { members.take("none"); }), "here: 'none' is missing");
  EXPECT_EQ(message([&] { members.integer("half"); }), "here: 'half' is not a 64-bit integer");
  EXPECT_EQ(message([&] { members.integer("large"); }), "here: 'large' is not a 64-bit integer");
  EXPECT_EQ(message([&] { members.count("minus"); }), "here: 'minus' is -1, must not be negative");
  EXPECT_EQ(message([&] { members.boolean("one"); }), "here: 'one' is neither true nor false");
  EXPECT_EQ(message([&] { members.text("one"); }), "here: 'one' is not a string");
  EXPECT_EQ(message([&] { ObjectReader(json["one"], "there"); }), "there is not an object");
}

}  // namespace
}  // namespace fathom::checkpoint
