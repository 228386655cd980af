#include "dist/agreement.h"

#include <mutex>
#include <set>

#include <gtest/gtest.h>

#include "core/base/system.h"
#include "expect_error.h"
#include "rank_threads.h"

namespace fathom::dist {
namespace {

// The message of every rank, as a set: one element when all agree on it.
std::set<std::string> messages(const std::vector<std::vector<AgreementItem>>& per_rank) {
  std::mutex mutex;
  std::set<std::string> texts;
  run_ranks(int(per_rank.size()), [&](Communicator& group) {
    std::string text = "agreed";
    try {
      check_agreement(group, per_rank[size_t(group.rank())]);
    } catch (const InvalidArgument& e) {
      text = e.what();
    }
    const std::lock_guard lock(mutex);
    texts.insert(text);
  });
  return texts;
}

std::vector<std::vector<AgreementItem>> with_values(const std::vector<std::string>& values) {
  std::vector<std::vector<AgreementItem>> per_rank;
  for (const std::string& value : values)
    per_rank.push_back({{.what = "seed", .value = "7"}, {.what = "data hash", .value = value}});
  return per_rank;
}

TEST(Agreement, PassesWhenAllAreEqual) {
  EXPECT_EQ(messages(with_values({"a"})), std::set<std::string>{"agreed"});
  EXPECT_EQ(messages(with_values({"a", "a", "a"})), std::set<std::string>{"agreed"});
  EXPECT_EQ(messages({{}, {}}), std::set<std::string>{"agreed"});
}

TEST(Agreement, NamesTheMinorityWithItsHostOnEveryRank) {
  EXPECT_EQ(messages(with_values({"b", "a", "a", "c"})),
            std::set<std::string>{join(
                "agreement: the ranks differ in data hash: rank 0 on ", host_name(),
                " has 'b', rank 3 on ", host_name(),
                " has 'c', ranks 1, 2 have 'a'; start every rank with the same program, config and "
                "data")});
}

TEST(Agreement, TakesRankZerosValueInATie) {
  const auto texts = messages(with_values({"a", "b"}));
  ASSERT_EQ(texts.size(), 1u);
  EXPECT_NE(texts.begin()->find("rank 1 on " + host_name() + " has 'b', rank 0 has 'a'"),
            std::string::npos);
  EXPECT_NE(messages(with_values({"a", "b", "b", "a"})).begin()->find("ranks 0, 3 have 'a'"),
            std::string::npos);
}

TEST(Agreement, NamesEveryItemThatDiffers) {
  const auto texts = messages({{{.what = "seed", .value = "1"}, {.what = "config", .value = "x"}},
                               {{.what = "seed", .value = "2"}, {.what = "config", .value = "y"}}});
  ASSERT_EQ(texts.size(), 1u);
  EXPECT_NE(texts.begin()->find("differ in seed: rank 1"), std::string::npos);
  EXPECT_NE(texts.begin()->find("; config: rank 1"), std::string::npos);
}

TEST(Agreement, NoticesDifferentLists) {
  const auto texts = messages({{{.what = "seed", .value = "1"}},
                               {{.what = "sead", .value = "1"}},
                               {{.what = "seed", .value = "1"}}});
  ASSERT_EQ(texts.size(), 1u);
  EXPECT_NE(texts.begin()->find("what is compared: rank 1"), std::string::npos);
}

TEST(Agreement, TruncatesLongValues) {
  const auto texts = messages(with_values({std::string(5000, 'a'), std::string(5000, 'b')}));
  ASSERT_EQ(texts.size(), 1u);
  EXPECT_LT(texts.begin()->size(), 600u);
}

}  // namespace
}  // namespace fathom::dist
