#include "launcher/commands/score.h"

#include <cmath>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <zlib.h>

#include "core/base/error.h"
#include "tests/support/temporary_directory.h"

namespace fathom::launcher {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class ScoreTest : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) {
    const std::string path = (directory_ / name).string();
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }

  // Standard output of the command, given `input` on standard input.
  static std::string run(const ScoreCommand& command, const std::string& input = "") {
    std::istringstream in(input);
    std::ostringstream out;
    std::streambuf* const old_in = std::cin.rdbuf(in.rdbuf());
    std::streambuf* const old_out = std::cout.rdbuf(out.rdbuf());
    std::cin.clear();
    int code = -1;
    std::exception_ptr error;
    try {
      code = score(command);
    } catch (...) {
      error = std::current_exception();
    }
    std::cin.rdbuf(old_in);
    std::cout.rdbuf(old_out);
    std::cin.clear();
    if (error) std::rethrow_exception(error);
    EXPECT_EQ(code, 0);
    return out.str();
  }

  template <class Kind>
  static std::string message_of(const ScoreCommand& command) {
    try {
      run(command);
    } catch (const Kind& error) {
      return error.what();
    }
    return "nothing was thrown";
  }

  support::TemporaryDirectory directory_;
};

TEST_F(ScoreTest, PrintsAllScoresAsOneJsonObject) {
  const std::string hypothesis = write("hyp", "The cat sat on the mat.\nYes.\n");
  const std::string reference = write("ref", "The cat sat on a mat.\nYes.");

  const auto json =
      nlohmann::json::parse(run({.hypothesis = hypothesis, .references = {reference}}));

  // 8 of 9 words, 5 of 7 bigrams, 2 of 5 trigrams, 1 of 4 four-grams; their geometric mean.
  EXPECT_EQ(json["lines"], 2);
  EXPECT_EQ(json["hypothesis_length"], 9);
  EXPECT_EQ(json["reference_length"], 9);
  EXPECT_THAT(json["bleu_line"].get<std::string>(), StartsWith("BLEU = 50.20 88.9/71.4/40.0/25.0"));
  EXPECT_NEAR(json["bleu"].get<double>(), 100 * std::pow(80.0 / 1260, 0.25), 1e-10);
  EXPECT_THAT(json["signature"].get<std::string>(),
              StartsWith("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:fathom-"));
  EXPECT_THAT(json["chrf2_line"].get<std::string>(), StartsWith("chrF2 = "));
  EXPECT_THAT(json["chrf2++_line"].get<std::string>(), StartsWith("chrF2++ = "));
  EXPECT_THAT(json["chrf2++_signature"].get<std::string>(), HasSubstr("|nw:2|"));
}

TEST_F(ScoreTest, ReadsStandardInputAndObeysItsOptions) {
  const std::string reference = write("ref", "A B C D\n");

  const auto json = nlohmann::json::parse(run({.hypothesis = "-",
                                               .references = {reference, reference},
                                               .lowercase = true,
                                               .tokenizer = "char",
                                               .smoothing = "floor"},
                                              "a b c d\n"));

  EXPECT_EQ(json["precisions"], nlohmann::json({100.0, 100.0, 100.0, 100.0}));
  EXPECT_THAT(json["signature"].get<std::string>(),
              StartsWith("nrefs:2|case:lc|eff:no|tok:char|smooth:floor[0.10]|"));
  EXPECT_THAT(json["chrf2_signature"].get<std::string>(), HasSubstr("|case:lc|"));
}

TEST_F(ScoreTest, EndsLinesAtLineFeedOnly) {
  const std::string text = "a\rb\u2028c\u0085 d\n\ne\n";

  const auto json = nlohmann::json::parse(
      run({.hypothesis = write("hyp", text), .references = {write("ref", "a b c d\nx\ne")}}));

  EXPECT_EQ(json["lines"], 3);
  EXPECT_EQ(json["hypothesis_length"], 5);
}

TEST_F(ScoreTest, NamesAFileThatCannotBeRead) {
  const std::string there = write("there", "a\n"), missing = (directory_ / "missing").string();

  EXPECT_EQ(message_of<IoError>({.hypothesis = missing, .references = {there}}),
            missing + ": cannot open: No such file or directory");
  EXPECT_THAT(
      message_of<IoError>({.hypothesis = there, .references = {directory_.path().string()}}),
      HasSubstr("is a directory, expected a text file"));
}

TEST_F(ScoreTest, ReadsGzipByItsName) {
  const std::string path = (directory_ / "packed.gz").string();
  gzFile file = gzopen(path.c_str(), "wb");
  gzputs(file, "a b c d\n");
  gzclose(file);
  const std::string plain = write("plain", "a b c d\n");
  EXPECT_EQ(run({.hypothesis = plain, .references = {path}}),
            run({.hypothesis = plain, .references = {plain}}));
}

TEST_F(ScoreTest, NamesBothFilesWhenTheirLineCountsDiffer) {
  const std::string two = write("two", "a\nb\n"), three = write("three", "a\nb\n\n");

  EXPECT_EQ(
      message_of<DataError>({.hypothesis = two, .references = {three}}),
      "score: " + two + " has 2 lines, but " + three + " has 3; both need one line per sentence");
}

TEST_F(ScoreTest, NamesTheLineThatIsNotUtf8) {
  const std::string good = write("good", "a\nb\n"), bad = write("bad", "a\nb\xFF\n");

  EXPECT_EQ(message_of<DataError>({.hypothesis = bad, .references = {good}}),
            bad + ":2: byte 2 of the line is not UTF-8; convert the file first");
}

TEST_F(ScoreTest, RefusesWrongArguments) {
  const std::string file = write("file", "a\n");

  EXPECT_THAT(message_of<InvalidArgument>({.hypothesis = "-", .references = {file, "-"}}),
              HasSubstr("2 inputs are '-'"));
  EXPECT_THAT(message_of<InvalidArgument>({.hypothesis = file, .references = {}}),
              HasSubstr("got no reference file"));
  EXPECT_THAT(
      message_of<InvalidArgument>({.hypothesis = file, .references = {file}, .tokenizer = "zh"}),
      HasSubstr("got tokenizer 'zh', expected 13a, intl, char or none"));
}

}  // namespace
}  // namespace fathom::launcher
