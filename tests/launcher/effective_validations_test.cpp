#include "launcher/effective_validations.h"

#include <gtest/gtest.h>

#include "core/base/error.h"

namespace fathom::launcher {
namespace {

std::string event(const char* kind, int64_t step, const char* loss = "0") {
  return join(R"({"event":")", kind, R"(","step":)", step, R"(,"validation_loss":)", loss, "}");
}

TEST(EffectiveValidations, AreTheLastOfEachStepThatWasNotDoneAgain) {
  const std::map<int64_t, std::string> found = effective_validations(
      {event("started", 0), event("validated", 10, "5"), event("saved", 10),
       event("validated", 20, "4"), event("validated", 30, "3"), event("resumed", 20),
       event("validated", 20, "4.5"), event("validated", 40, "2")});

  EXPECT_EQ(found, (std::map<int64_t, std::string>{{10, event("validated", 10, "5")},
                                                   {20, event("validated", 20, "4.5")},
                                                   {40, event("validated", 40, "2")}}));
}

// By a kill before the first save, say.
TEST(EffectiveValidations, OfARunThatBeganAnewAreThoseOfItsLastStart) {
  EXPECT_EQ(effective_validations({event("validated", 10, "5"), event("started", 0)}).size(), 0u);
}

TEST(EffectiveValidations, PassOverWhatIsDamaged) {
  EXPECT_EQ(effective_validations({"{", "[1]", R"({"event":"validated"})",
                                   R"({"event":"validated","step":"10"})", event("validated", 10)})
                .size(),
            1u);
}

}  // namespace
}  // namespace fathom::launcher
