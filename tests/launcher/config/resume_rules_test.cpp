#include "launcher/config/resume_rules.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/launcher/config/support.h"

namespace fathom::launcher {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr const char* kRemedy = "; put it back, or start a new run in another run.directory";

// Keys that were let through, or the refusal.
std::string resume(const std::vector<std::string>& before, const std::vector<std::string>& after,
                   const std::string& allowed = "") {
  try {
    std::string keys;
    for (const Difference& d :
         check_resume(parse("", before), parse("", after), parse_allowed_changes(allowed)))
      keys += d.key + " " + d.old_value + " " + d.new_value + "\n";
    return keys;
  } catch (const InvalidArgument& e) {
    return e.what();
  }
}

TEST(Resume, LetsOperationChangeFreely) {
  EXPECT_EQ(resume({}, {"train.max_steps=9000", "dist.overlap=off", "run.directory=b",
                        "checkpoint.keep_last=9", "monitoring.listen=off"}),
            "");
  EXPECT_EQ(resume({}, {"train.validate_every=7", "train.patience=3", "train.best_metric=bleu",
                        "verdict.after=9", "verdict.action=off", "data.test=t", "data.directory=d",
                        "batch.micro_tokens=9000", "model.recompute_activations=true"}),
            "");
}

TEST(Resume, LeavesPathsOfTextsToTheTexts) {
  EXPECT_EQ(resume({"data.train=a"}, {"data.train=b", "data.valid=c"}), "");
}

TEST(Resume, NamesAChangedKeyAndBothValues) {
  EXPECT_EQ(resume({}, {"model.topology=pre-ln"}),
            join("resume: model.topology: got pre-ln, but the checkpoint was made with residual",
                 kRemedy));
  EXPECT_EQ(resume({}, {"dist.reduction=fast"}),
            join("resume: dist.reduction: got fast, but the checkpoint was made with tree", kRemedy,
                 ", or go on with it: --allow-change dist.reduction"));
}

TEST(Resume, NamesAKeyThatNeverChangesBeforeOneThatMay) {
  EXPECT_EQ(
      resume({}, {"run.seed=7", "optimizer.learning_rate=0.001", "model.width=512"}, "run.seed"),
      join("resume: model.width: got 512, but the checkpoint was made with 256", kRemedy));
}

TEST(Resume, AdvisesEveryKeyThatMustBeAllowed) {
  const std::vector<std::string> after = {"run.seed=7", "model.dropout=0.5", "train.max_steps=7",
                                          "optimizer.learning_rate=0.001"};
  EXPECT_EQ(resume({}, after, "run.seed"),
            join("resume: model.dropout: got 0.5, but the checkpoint was made with 0.1", kRemedy,
                 ", or go on with it: --allow-change ",
                 "run.seed,model.dropout,optimizer.learning_rate"));
  EXPECT_EQ(resume({}, after, "run.seed,model.dropout,optimizer.learning_rate"),
            "run.seed 1 7\nmodel.dropout 0.1 0.5\noptimizer.learning_rate 0.0005 0.001\n");
}

TEST(Resume, TakesKeysThatDoNotChange) {  // a repeated command line
  EXPECT_EQ(resume({"run.seed=7"}, {"run.seed=7"}, "run.seed,train.max_steps"), "");
}

TEST(Resume, AsksForMoreStepsWhereTheLearningRateEndsWithThem) {
  for (const std::string schedule : {"cosine", "linear"}) {
    const std::string key = "optimizer.schedule=" + schedule;
    EXPECT_EQ(resume({key, "train.max_steps=20000"}, {key, "train.max_steps=30000"}),
              join("resume: train.max_steps: got 30000, but the checkpoint was made with 20000",
                   kRemedy, ", or go on with it: --allow-change train.max_steps"));
    EXPECT_EQ(
        resume({key, "train.max_steps=20000"}, {key, "train.max_steps=30000"}, "train.max_steps"),
        "train.max_steps 20000 30000\n");
  }
}

TEST(Resume, GoesBetweenFp32AndBf16ButNotFp64) {
  const auto with = [](const std::string& precision) -> std::vector<std::string> {
    return {"train.device=reference", "train.precision=" + precision};
  };
  EXPECT_EQ(resume(with("fp32"), with("bf16"), "train.precision"), "train.precision fp32 bf16\n");
  EXPECT_EQ(resume(with("bf16"), with("fp32"), "train.precision"), "train.precision bf16 fp32\n");
  for (const std::string other : {"fp32", "bf16"}) {
    EXPECT_EQ(resume(with("fp64"), with(other), "train.precision"),
              join("resume: train.precision: got ", other,
                   ", but the checkpoint was made with fp64", kRemedy));
    EXPECT_EQ(resume(with(other), with("fp64"), "train.precision"),
              join("resume: train.precision: got fp64, but the checkpoint was made with ", other,
                   kRemedy));
  }
}

std::string allowed(const std::string& list) {
  try {
    (void)parse_allowed_changes(list);
    return "accepted";
  } catch (const InvalidArgument& e) {
    return e.what();
  }
}

TEST(AllowedChanges, AreAListOfKeys) {
  EXPECT_THAT(parse_allowed_changes(""), IsEmpty());
  EXPECT_THAT(parse_allowed_changes("run.seed"), ElementsAre("run.seed"));
  EXPECT_THAT(parse_allowed_changes("run.seed,train.threads"),
              ElementsAre("run.seed", "train.threads"));
}

TEST(AllowedChanges, RefuseWhatIsNoKey) {
  EXPECT_EQ(allowed("run.sed"),
            "--allow-change: got 'run.sed', which is no key; did you mean run.seed");
  EXPECT_EQ(allowed("run.seed,"),
            "--allow-change: got '', which is no key; fathom config keys lists them");
  EXPECT_EQ(allowed("run.seed, train.threads").substr(0, 38),
            "--allow-change: got ' train.threads', ");
  EXPECT_EQ(allowed(",").substr(0, 24), "--allow-change: got '', ");
}

TEST(AllowedChanges, RefuseWhatNoResumeMayChange) {
  EXPECT_EQ(
      allowed("run.seed,model.width"),
      "--allow-change: model.width never changes in a run: it belongs to the model's shape or "
      "the training text; start a new run in another run.directory");
}

}  // namespace
}  // namespace fathom::launcher
