#include "launcher/json_members.h"

#include <gtest/gtest.h>

namespace fathom::launcher {
namespace {

TEST(JsonMembers, AreReadByNameAndType) {
  const std::string json = R"({"text": "a", "count": -3, "flag": true})";
  EXPECT_EQ(text_member(json, "text"), "a");
  EXPECT_EQ(integer_member(json, "count"), -3);
  EXPECT_TRUE(flag_member(json, "flag"));
}

TEST(JsonMembers, AreEmptyWhereTheyAreMissingOrOfAnotherType) {
  for (const char* json : {"", "{", "[1]", "null", "{}", R"({"a": null})", R"({"a": 1.5})",
                           R"({"a": {"a": "b"}})", "\xff\xfe"}) {
    EXPECT_EQ(text_member(json, "a"), "") << json;
    EXPECT_EQ(integer_member(json, "a"), 0) << json;
    EXPECT_FALSE(flag_member(json, "a")) << json;
  }
}

}  // namespace
}  // namespace fathom::launcher
