// What a save needs beyond the arrays. Alone in its program: a process has only one peak.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "core/base/error.h"
#include "tests/checkpoint/support.h"

namespace fathom::checkpoint {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

int64_t peak_bytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return int64_t{1024} * usage.ru_maxrss;
}

TEST(SaveMemory, IsWithinItsBoundBeyondTheArrays) {
  constexpr int64_t kLarge = 4, kSmall = 3000;
  TemporaryDirectory directory;
  std::vector<float> elements(size_t{32} << 20, 1.5f);
  SavingArchive archive;
  const int64_t matrix[] = {4096, 2048}, row[] = {8};
  for (int64_t i = 0; i < kLarge; ++i)
    archive.array(join("model/large.", i), matrix,
                  std::span(elements).subspan(size_t(i) << 23, 1 << 23));
  for (int64_t i = 0; i < kSmall; ++i)
    archive.array(join("optimizer/m/encoder.", i, ".self_attention.qkv.bias"), row,
                  std::span(elements).first(8));
  const int64_t before = peak_bytes();

  const SaveReport saved = write_checkpoint(directory.path() / "c", archive, info_of(7));

  EXPECT_GT(saved.bytes, 128 * kMiB);
  EXPECT_LE(peak_bytes() - before, save_overhead_bytes(kLarge + kSmall));
  EXPECT_LE(save_overhead_bytes(kLarge + kSmall), 64 * kMiB);
}

}  // namespace
}  // namespace fathom::checkpoint
