#include "checkpoint/h5_layout.h"

#include <list>

#include <gmock/gmock.h>

#include "core/base/error.h"
#include "core/base/text.h"
#include "tests/checkpoint/core_driver_image.h"
#include "tests/checkpoint/support.h"

namespace fathom::checkpoint {
namespace {

std::string bytes_of(const StateLayout& layout) {
  std::string bytes;
  for (const FilePiece& piece : layout.pieces()) bytes += as_text(piece.bytes);
  return bytes;
}

// Arrays whose elements are not zero, so that a misplaced one shows.
class Arrays {
 public:
  template <class T>
  void add(const std::string& name, std::vector<int64_t> shape, std::list<std::vector<T>>& data) {
    std::vector<T>& elements = data.emplace_back(size_t(element_count(shape)));
    for (T& element : elements) element = T(++next_);
    archive_.array(name, shape, std::span(elements));
  }
  void f32(const std::string& name, std::vector<int64_t> shape) { add(name, shape, f32_); }
  void f64(const std::string& name, std::vector<int64_t> shape) { add(name, shape, f64_); }
  [[nodiscard]] const std::vector<ArrayView>& views() const { return archive_.arrays(); }

 private:
  SavingArchive archive_;
  std::list<std::vector<float>> f32_;
  std::list<std::vector<double>> f64_;
  int next_ = 0;
};

TEST(StateLayout, OfNothingIsAnEmptyFile) {
  const StateLayout layout({});
  EXPECT_EQ(bytes_of(layout), core_driver_image({}));
}

// Around the sizes at which the library changes how it allocates or buffers.
TEST(StateLayout, HasTheBytesOfTheCoreDriverForEverySize) {
  Arrays arrays;
  for (const int64_t count : {0, 1, 2, 127, 128, 511, 512, 513, 16383, 16384, 16385, 300000}) {
    arrays.f32(join("model/f32/", count), {count});
    arrays.f64(join("model/f64/", count), {count, 1});
  }
  arrays.f32("scalar", {});
  arrays.f32("deep/a/b/c/d/e/f/g/h", {2, 1, 3, 1, 2, 1, 1, 2});
  arrays.f32("last", {100000});

  const StateLayout layout(arrays.views());

  EXPECT_EQ(size_t(layout.bytes()), bytes_of(layout).size());
  EXPECT_TRUE(bytes_of(layout) == core_driver_image(arrays.views()));
}

TEST(StateLayout, HasTheBytesOfTheCoreDriverForManyArrays) {
  Arrays arrays;
  for (int layer = 1; layer <= 300; ++layer)
    for (const char* part : {"norm.gain", "qkv.weight", "qkv.bias"})
      for (const char* group : {"model", "optimizer/m", "optimizer/v"})
        arrays.f32(join(group, "/encoder.", layer, ".", part), {layer, *part == 'n' ? 1 : 8});

  const StateLayout layout(arrays.views());

  EXPECT_TRUE(bytes_of(layout) == core_driver_image(arrays.views()));
}

TEST(StateLayout, RefersToTheArraysAndCopiesNone) {
  Arrays arrays;
  arrays.f32("a", {5});
  arrays.f32("none", {0});
  arrays.f64("b", {100000});

  const StateLayout layout(arrays.views());

  std::vector<int64_t> found;
  for (const FilePiece& piece : layout.pieces()) {
    if (piece.array < 0) continue;
    found.push_back(piece.array);
    const std::span<const std::byte> elements = arrays.views().at(size_t(piece.array)).bytes;
    EXPECT_EQ(piece.bytes.data(), elements.data());
    EXPECT_EQ(piece.bytes.size(), elements.size());
  }
  EXPECT_THAT(found, ::testing::UnorderedElementsAre(0, 2));
}

}  // namespace
}  // namespace fathom::checkpoint
