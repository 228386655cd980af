#include "core/data/lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include "tests/core/data/data_support.h"

namespace fathom::data {
namespace {

using ::testing::AllOf;
using testing::error_of;
using ::testing::HasSubstr;
using testing::TemporaryDirectory;

std::vector<std::string> lines_of(const Text& text) {
  std::vector<std::string> lines;
  for (int64_t i = 0; i < text.size(); ++i) lines.emplace_back(text.line(i));
  return lines;
}

void write_gzip(const std::string& path, std::string_view bytes) {
  gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, bytes.data(), unsigned(bytes.size()));
  gzclose(file);
}

using Lines = std::vector<std::string>;

TEST(Text, SplitsOnLineFeedAlone) {
  using namespace std::string_literals;
  EXPECT_EQ(lines_of(Text("t", "a\u2028b\u0085c\rd\ve\n\0f\n"s)),
            (Lines{"a\u2028b\u0085c\rd\ve", "\0f"s}));
}

TEST(Text, CountsALastLineWithoutLineFeedAndEmptyLines) {
  EXPECT_EQ(lines_of(Text("t", "a\nb")), (Lines{"a", "b"}));
  EXPECT_EQ(lines_of(Text("t", "a\nb\n")), (Lines{"a", "b"}));
  EXPECT_EQ(lines_of(Text("t", "a\nb\n\n")), (Lines{"a", "b", ""}));
  EXPECT_EQ(lines_of(Text("t", "\n")), (Lines{""}));
  EXPECT_EQ(lines_of(Text("t", "")), (Lines{}));
}

TEST(Text, SurvivesAMove) {
  Text text("t", "a\nb");  // short enough to live inside the string object

  const Text moved = std::move(text);

  EXPECT_EQ(lines_of(moved), (Lines{"a", "b"}));
}

TEST(Text, NamesThePlaceOfAFault) {
  using namespace std::string_literals;
  const Text text("x.de", "gut\nna\xFFja\nzwei\r\nn\0l\n"s);

  EXPECT_EQ(text.fault(0), LineFault::kNone);
  EXPECT_EQ(text.describe_fault(1), "x.de:2:3: byte 0xFF is not UTF-8 here (byte 6 of the file)");
  EXPECT_EQ(text.describe_fault(2),
            "x.de:3:5: carriage return before the line feed (Windows line "
            "ends) (byte 14 of the file)");
  EXPECT_EQ(text.describe_fault(3), "x.de:4:2: NUL byte (byte 17 of the file)");
}

TEST(Text, RemovesAByteOrderMarkButCountsItInOffsets) {
  const Text text("x", "\xEF\xBB\xBFna\xFF\n\xFF");

  EXPECT_TRUE(text.had_byte_order_mark());
  EXPECT_EQ(text.line(0), "na\xFF");
  EXPECT_THAT(text.describe_fault(0), AllOf(HasSubstr("x:1:6:"), HasSubstr("byte 5 of the file")));
  EXPECT_THAT(text.describe_fault(1), AllOf(HasSubstr("x:2:1:"), HasSubstr("byte 7 of the file")));
}

TEST(Text, MarksALineOfTenMegabytes) {
  const Text text("x", "a\n" + std::string(10'000'000, 'b') + "\nc\n");

  EXPECT_EQ(text.size(), 3);
  EXPECT_EQ(text.fault(1), LineFault::kTooLong);
  EXPECT_THAT(text.describe_fault(1), HasSubstr("line of 10000000 bytes, the most is 1048576"));
}

TEST(Repaired, HasNoFault) {
  using namespace std::string_literals;
  EXPECT_EQ(repaired("a\r"), "a");
  EXPECT_EQ(repaired("a\0b"s), "a b");
  EXPECT_EQ(repaired("a\xFFz\xE2\x82"), "a\uFFFDz\uFFFD\uFFFD");
  EXPECT_EQ(repaired("schön"), "schön");

  const std::string cut = repaired(std::string(1'048'575, 'a') + "ö");
  EXPECT_EQ(cut, std::string(1'048'575, 'a'));  // never half a character
}

TEST(ReadText, ReadsPlainAndGzipAndPrefersPlain) {
  const TemporaryDirectory dir;
  write_gzip(dir / "a.de.gz", "aus gzip\n");

  EXPECT_EQ(lines_of(read_text(dir / "a.de")), (Lines{"aus gzip"}));
  EXPECT_EQ(lines_of(read_text(dir / "a.de.gz")), (Lines{"aus gzip"}));
  dir.write("a.de", "einfach\n");
  EXPECT_EQ(lines_of(read_text(dir / "a.de")), (Lines{"einfach"}));
}

TEST(ReadText, NamesBothPathsWhenThereIsNoFile) {
  const TemporaryDirectory dir;

  EXPECT_THAT(error_of<DataError>([&] { (void)read_text(dir / "a.de"); }),
              AllOf(HasSubstr("neither " + (dir / "a.de") + " nor " + (dir / "a.de.gz")),
                    HasSubstr("data.train")));
}

// Whatever the number of lines that such bytes seem to have.
TEST(ReadText, SaysWhatBytesAreThatAreNoText) {
  using namespace std::string_literals;
  const TemporaryDirectory dir;
  const auto said = [&](const std::string& name) {
    return error_of<DataError>([&] { (void)read_text(dir / name); });
  };
  write_gzip(dir / "zipped.de", "eins\nzwei\n");
  dir.write("little.de",
            "\xFF\xFE"
            "e\0i\0n\0s\0\n\0"s);
  dir.write("big.de", "\xFE\xFF\0e\0i\0n\0s\0\n"s);
  dir.write("wide.de", "\xFF\xFE\0\0e\0\0\0"s);
  dir.write("bare.de", "e\0i\0n\0s\0\n\0z\0w\0e\0i\0\n\0"s);
  dir.write("xz.de",
            "\xFD"
            "7zXZ\0"s);
  dir.write("zstd.de", "\x28\xB5\x2F\xFD rest");
  write_gzip(dir / "inside.de.gz",
             "\xFF\xFE"
             "e\0"s);

  EXPECT_EQ(said("zipped.de"), "text: " + dir / "zipped.de" +
                                   " is a gzip file; add .gz to its name, or unpack it: gunzip");
  for (const char* name : {"little.de", "big.de"})
    EXPECT_THAT(said(name), HasSubstr(" is UTF-16 (byte order mark ")) << name;
  EXPECT_THAT(said("little.de"), HasSubstr("convert it: iconv -f UTF-16 -t UTF-8"));
  EXPECT_THAT(said("wide.de"), HasSubstr(" is UTF-32 (byte order mark FF FE 00 00)"));
  EXPECT_THAT(said("bare.de"), HasSubstr(" is UTF-16; convert it: iconv -f UTF-16LE"));
  EXPECT_THAT(said("xz.de"), HasSubstr(" is an xz file; unpack it"));
  EXPECT_THAT(said("zstd.de"), HasSubstr(" is a zstd file; unpack it"));
  EXPECT_THAT(said("inside.de.gz"), HasSubstr(" holds what is UTF-16"));
}

TEST(ReadText, TakesTextThatIsOnlyUnusual) {
  using namespace std::string_literals;
  for (const std::string& text : {"a\0b\n"s, "\0\0\0\0\0\0\0\0\0\0\0\0"s, "PK is a name\n"s,
                                  "\xFFz\n"s, "BZ\n"s, ""s, "\xEF\xBB\xBFmark\n"s})
    EXPECT_EQ(describe_foreign_bytes(text), "") << text;
}

TEST(ReadText, SaysThatAPrefixIsNoList) {
  EXPECT_THAT(error_of<DataError>([] { (void)read_text("a,b.de"); }),
              AllOf(HasSubstr("neither a,b.de nor a,b.de.gz exists"),
                    HasSubstr("one prefix each, not a list: join the texts with cat")));
  EXPECT_THAT(error_of<DataError>([] { (void)read_text("ab.de"); }),
              ::testing::Not(HasSubstr("list")));
}

TEST(ReadText, RefusesADamagedGzipFile) {
  const TemporaryDirectory dir;
  write_gzip(dir / "whole.gz", testing::sentences(2000, true));
  const std::string whole = testing::read_text(dir / "whole.gz");
  std::string flipped = whole;
  flipped[whole.size() / 2] = char(flipped[whole.size() / 2] ^ 0x55);

  const std::string cut = dir.write("cut.gz", whole.substr(0, whole.size() / 2));
  const std::string short_of_its_sum = dir.write("sum.gz", whole.substr(0, whole.size() - 3));
  const std::string changed = dir.write("changed.gz", flipped);
  const std::string plain = dir.write("plain.gz", "hello\n");

  EXPECT_THAT(error_of<DataError>([&] { (void)read_text(cut); }),
              HasSubstr(cut + " is a damaged gzip file (cut off)"));
  EXPECT_THAT(error_of<DataError>([&] { (void)read_text(short_of_its_sum); }),
              HasSubstr("is a damaged gzip file"));
  EXPECT_THAT(error_of<DataError>([&] { (void)read_text(changed); }),
              HasSubstr("is a damaged gzip file"));
  EXPECT_THAT(error_of<DataError>([&] { (void)read_text(plain); }),
              HasSubstr("is not in gzip format"));
}

TEST(ReadText, TakesEveryMemberOfAGzipFileAndNothingElse) {
  const TemporaryDirectory dir;
  const std::string flat(300'000, 'a');  // a few hundred bytes unpack to several buffers
  write_gzip(dir / "one.gz", flat + "\n");
  write_gzip(dir / "two.gz", "zwei\n");
  write_gzip(dir / "none.gz", "");
  const std::string one = testing::read_text(dir / "one.gz"),
                    two = testing::read_text(dir / "two.gz");

  const std::string both = dir.write("both.gz", one + testing::read_text(dir / "none.gz") + two);
  const std::string padded = dir.write("padded.gz", two + std::string(512, '\0'));
  const std::string empty = dir.write("empty.gz", "");
  EXPECT_EQ(lines_of(read_text(both)), (Lines{flat, "zwei"}));
  EXPECT_EQ(lines_of(read_text(padded)), (Lines{"zwei"}));
  EXPECT_EQ(lines_of(read_text(dir / "none.gz")), Lines{});
  EXPECT_EQ(lines_of(read_text(empty)), Lines{});

  for (const std::string& tail : {std::string("drei\n"), one.substr(1), std::string("\0x", 2)}) {
    const std::string bad = dir.write("tail.gz", two + tail);
    EXPECT_THAT(error_of<DataError>([&] { (void)read_text(bad); }),
                HasSubstr(bad + " is a damaged gzip file ("));
  }
}

TEST(ReadText, RefusesADirectory) {
  const TemporaryDirectory dir;
  std::filesystem::create_directory(dir / "a.de");

  EXPECT_THAT(error_of<IoError>([&] { (void)read_text(dir / "a.de"); }),
              HasSubstr("is a directory"));
}

}  // namespace
}  // namespace fathom::data
