#include "monitoring/history.h"

#include <cmath>
#include <csignal>
#include <fstream>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "core/base/error.h"
#include "tests/support/temporary_directory.h"

namespace fathom::monitoring {
namespace {

using support::read_text;
using support::TemporaryDirectory;
using support::write_text;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Json, KeepsOrderAndEscapesText) {
  const Object line = {{"step", 3},
                       {"text", "a \"quoted\" \\ line\n"},
                       {"ok", true},
                       {"timing", Object{{"data", 0.25}, {"none", Object{}}}},
                       {"list", Array{1, "two", 3.5}}};

  EXPECT_EQ(to_json(line), R"({"step":3,"text":"a \"quoted\" \\ line\n","ok":true,)"
                           R"("timing":{"data":0.25,"none":{}},"list":[1,"two",3.5]})");
}

TEST(Json, DoublesHaveTheFewestDigitsThatReadBack) {
  const auto text = [](double x) { return to_json(Value(x)); };

  EXPECT_EQ(text(0.1), "0.1");
  EXPECT_EQ(text(1.0), "1.0");
  EXPECT_EQ(text(-0.0), "-0.0");
  EXPECT_EQ(text(5e-324), "5e-324");
  EXPECT_EQ(text(1e300), "1e+300");
  EXPECT_EQ(text(1e22), "1e+22");
  EXPECT_EQ(text(1e-4), "1e-04");  // a learning rate
  EXPECT_EQ(text(1e5), "1e+05");
  EXPECT_EQ(text(0.00025), "0.00025");
  EXPECT_EQ(text(4.707521324902324), "4.707521324902324");  // nlohmann: 4.7075213249023236
  EXPECT_EQ(text(9007199254740993.0), "9007199254740992.0");
  for (const double x : {1.0 / 3, 2.0 / 3 * 1e-7, 123456789.123456789, 1.7976931348623157e308})
    EXPECT_EQ(std::stod(text(x)), x);
}

TEST(Json, NonFiniteNumbersAreStrings) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();

  EXPECT_EQ(to_json(Array{std::nan(""), kInfinity, -kInfinity}),
            R"(["NaN","Infinity","-Infinity"])");
}

TEST(Json, BytesThatAreNotUtf8AreReplaced) {
  EXPECT_EQ(to_json(Value("a\xff")), "\"a\xEF\xBF\xBD\"");
}

TEST(JsonlWriter, EachLineIsInTheFileWhenAppendReturns) {
  const TemporaryDirectory directory;
  JsonlWriter writer(directory / "metrics.jsonl");

  writer.append({{"step", 1}, {"loss", 0.5}});
  EXPECT_EQ(read_text(directory / "metrics.jsonl"), "{\"step\":1,\"loss\":0.5}\n");
  writer.append({{"step", 2}, {"loss", std::nan("")}});

  EXPECT_THAT(read_effective(directory / "metrics.jsonl"),
              ElementsAre(R"({"step":1,"loss":0.5})", R"({"step":2,"loss":"NaN"})"));
  EXPECT_NO_THROW(writer.sync());
}

TEST(JsonlWriter, TruncatesATornLastLineAtStart) {
  const TemporaryDirectory directory;
  const auto path = directory / "metrics.jsonl";
  // Longer than a block of the backward search, and nothing but a torn line.
  const std::string torn = "{\"step\":2,\"x\":\"" + std::string(10000, 'x');
  for (const std::string& whole : {std::string("{\"step\":1}\n"), std::string()}) {
    write_text(path, whole + torn);

    JsonlWriter(path).append({{"step", 2}});

    EXPECT_EQ(read_text(path), whole + "{\"step\":2}\n");
  }
}

TEST(JsonlWriter, ResumeSupersedesRedoneSteps) {
  const TemporaryDirectory directory;
  const auto path = directory / "metrics.jsonl";
  {
    JsonlWriter first(path);
    for (int step = 1; step <= 4; ++step) first.append({{"step", step}, {"try", 1}});
  }
  {
    JsonlWriter second(path);
    second.rewind_to(2);
    second.append({{"step", 3}, {"try", 2}});
  }
  JsonlWriter third(path);
  third.rewind_to(2);
  third.append({{"step", 3}, {"try", 3}});
  third.append({{"step", 4}, {"try", 3}});

  EXPECT_THAT(read_effective(path), ElementsAre(R"({"step":1,"try":1})", R"({"step":2,"try":1})",
                                                R"({"step":3,"try":3})", R"({"step":4,"try":3})"));
  EXPECT_THAT(read_text(path), HasSubstr("{\"marker\":\"resumed\",\"step\":2}\n"));
  EXPECT_THAT(read_text(path), HasSubstr(R"({"step":4,"try":1})"));  // kept for people
}

TEST(JsonlWriter, LinesWithoutAStepSurviveARewind) {
  const TemporaryDirectory directory;
  JsonlWriter writer(directory / "events.jsonl");
  writer.append({{"event", "started"}});
  writer.append({{"event", "saved"}, {"step", 7}});
  writer.rewind_to(0);

  EXPECT_THAT(read_effective(directory / "events.jsonl"), ElementsAre(R"({"event":"started"})"));
}

TEST(JsonlWriter, AFullDiskIsReportedWithThePath) {
  JsonlWriter writer("/dev/full");

  try {
    writer.append({{"step", 1}});
    FAIL() << "no error";
  } catch (const IoError& error) {
    EXPECT_STREQ(error.what(),
                 "history: /dev/full: appending a line: No space left on device; earlier lines "
                 "are kept, free space and go on");
  }
}

// A limit on the file's size ends a write in the middle, like a full disk.
TEST(JsonlWriter, AHalfWrittenLineIsRemovedAndTheNextOneIsWhole) {
  const TemporaryDirectory directory;
  const auto path = directory / "metrics.jsonl";
  JsonlWriter writer(path);
  writer.append({{"step", 1}});
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit tight{.rlim_cur = 100, .rlim_max = before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &tight);

  EXPECT_THROW(writer.append({{"step", 2}, {"text", std::string(200, 'x')}}), IoError);
  const std::string after_failure = read_text(path);
  writer.append({{"step", 3}});

  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(after_failure, "{\"step\":1}\n");
  EXPECT_EQ(read_text(path), "{\"step\":1}\n{\"step\":3}\n");
}

TEST(JsonlWriter, AFileThatCannotBeOpenedIsNamed) {
  const TemporaryDirectory directory;
  const auto path = directory / "missing" / "metrics.jsonl";

  try {
    const JsonlWriter writer(path);
    FAIL() << "no error";
  } catch (const IoError& error) {
    EXPECT_THAT(error.what(), HasSubstr(path.string() + ": opening it: No such file"));
  }
}

TEST(ReadEffective, IgnoresATornLastLine) {
  const TemporaryDirectory directory;
  write_text(directory / "m.jsonl", "{\"step\":1}\n{\"step\":2");

  EXPECT_THAT(read_effective(directory / "m.jsonl"), ElementsAre("{\"step\":1}"));
}

TEST(ReadEffective, AnEmptyFileHasNoLines) {
  const TemporaryDirectory directory;
  write_text(directory / "m.jsonl", "");

  EXPECT_THAT(read_effective(directory / "m.jsonl"), IsEmpty());
}

TEST(ReadEffective, ADamagedLineIsNamedByNumber) {
  const TemporaryDirectory directory;
  write_text(directory / "m.jsonl", "{\"step\":1}\nnonsense\n{\"step\":3}\n");

  try {
    (void)read_effective(directory / "m.jsonl");
    FAIL() << "no error";
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr("m.jsonl:2: got a line that is no JSON object"));
  }
  EXPECT_THROW((void)read_effective(directory / "none.jsonl"), IoError);
}

TEST(LastStep, IsThatOfTheLastWholeLine) {
  const TemporaryDirectory directory;
  const auto path = directory / "m.jsonl";
  EXPECT_EQ(last_step(path), 0);
  write_text(path, "");
  EXPECT_EQ(last_step(path), 0);
  write_text(path, "{\"step\":7}\n{\"step\":8}\n{\"st");
  EXPECT_EQ(last_step(path), 8);
  write_text(path, "{\"step\":8}\n{\"marker\":\"resumed\",\"step\":3}\n");
  EXPECT_EQ(last_step(path), 3);
  write_text(path, "{\"step\":8}\nrubbish\n");
  EXPECT_EQ(last_step(path), 0);
  write_text(path, std::string(200'000, 'x') + "\n{\"step\":9}\n");
  EXPECT_EQ(last_step(path), 9);
}

}  // namespace
}  // namespace fathom::monitoring
