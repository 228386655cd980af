#include "core/base/hash.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"
#include "tests/support/temporary_directory.h"

namespace fathom {
namespace {

// What `xxhsum -H2` prints.
TEST(Xxh3, GivesTheKnownAnswers) {
  EXPECT_EQ(xxh3_128(""), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(xxh3_128("abc"), "06b05ab6733a618578af5f94892f3950");
  EXPECT_EQ(xxh3_128(std::string(1000, 'x')), "50a1af5a5f2dcf01c0a4877b962cba82");
}

TEST(Xxh3, IsTheSameForBytesAndPieces) {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += char(i * 31 % 251);
  const std::string whole = xxh3_128(text);

  EXPECT_EQ(xxh3_128(std::as_bytes(std::span(text))), whole);
  for (const size_t piece : {1, 7, 240, 1024, 99'999}) {
    Xxh3Stream stream;
    for (size_t at = 0; at < text.size(); at += piece)
      stream.add(std::string_view(text).substr(at, piece));
    EXPECT_EQ(stream.digits(), whole) << piece;
  }
  EXPECT_EQ(Xxh3Stream().digits(), xxh3_128(""));
}

TEST(Xxh3, OfAFileIsThatOfItsBytes) {
  const support::TemporaryDirectory directory;
  const std::string text((size_t{5} << 19) + 3, 'f');
  support::write_text(directory / "file", text);
  support::write_text(directory / "empty", "");

  EXPECT_EQ(xxh3_128_of_file("test", (directory / "file").string()), xxh3_128(text));
  EXPECT_EQ(xxh3_128_of_file("test", (directory / "empty").string()), xxh3_128(""));
  EXPECT_TRUE(support::throws_with<IoError>(
      "test: opening " + (directory / "gone").string() + ": No such file or directory",
      [&] { static_cast<void>(xxh3_128_of_file("test", (directory / "gone").string())); }));
}

// Dropout and initialisation depend on these keys.
TEST(HashName, NeverChanges) {
  EXPECT_EQ(hash_name(""), mix64(0xCBF29CE484222325u));
  EXPECT_EQ(mix64(0), 0xE220A8397B1DCDAFu);
  EXPECT_EQ(hash_name("a"), mix64(0xAF63DC4C8601EC8Cu));
}

}  // namespace
}  // namespace fathom
