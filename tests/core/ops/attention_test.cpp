#include "core/ops/attention.h"

#include <gtest/gtest.h>

#include "tests/support/devices.h"
#include "tests/support/expect_error.h"
#include "tests/support/tolerance.h"

namespace fathom::ops {
namespace {

using support::normal;
using support::Rows;
using support::zeros;

struct Attended {
  Tensor y, lse;
};

Attended attend(Device& device, const Tensor& q, const Tensor& k, const Tensor& v,
                const data::Segments& queries, const data::Segments& keys, int64_t heads,
                bool causal) {
  Attended out = {zeros(q.rows(), q.cols(), q.dtype()), zeros(q.rows(), heads, q.dtype())};
  device.compute().run(&kernels::Kernels::attention_forward, {.q = q,
                                                              .k = k,
                                                              .v = v,
                                                              .y = out.y,
                                                              .lse = out.lse,
                                                              .queries = support::view(queries),
                                                              .keys = support::view(keys),
                                                              .heads = heads,
                                                              .causal = causal});
  return out;
}

TEST(Attention, OnTheCpuEqualsTheReferenceElementByElement) {
  const auto reference = tensor::make_reference_device();
  const auto cpu = tensor::make_cpu_device(1);
  for (const int64_t d : {1, 5, 8, 16, 20, 64}) {
    for (const bool causal : {false, true}) {
      const int64_t heads = 2, C = heads * d;
      const Rows rows({1, 31, 33, 200});
      const Tensor qkv = rows.normal(3 * C, DType::kF32, 1);
      const auto run = [&](Device& device) {
        return attend(device, qkv.columns(0, C), qkv.columns(C, C), qkv.columns(2 * C, C),
                      rows.segments, rows.segments, heads, causal);
      };

      const Attended want = run(*reference), got = run(*cpu);

      EXPECT_TRUE(support::is_near(got.y, want.y)) << "head width " << d;
      EXPECT_TRUE(support::is_near(got.lse, want.lse)) << "head width " << d;
    }
  }
}

TEST(Attention, ToASingleKeyIsItsValue) {
  for (const auto& device : support::host_devices()) {
    const data::Segments queries = data::Segments::from_lengths(std::vector<int32_t>{2, 3});
    const data::Segments keys = data::Segments::from_lengths(std::vector<int32_t>{1, 1});
    const Tensor v = normal(2, 6, DType::kF32, 3);

    const Attended out = attend(*device, normal(5, 6, DType::kF32, 1), normal(2, 6, DType::kF32, 2),
                                v, queries, keys, 2, false);

    for (int64_t r = 0; r < 5; ++r)
      EXPECT_TRUE(support::is_near(out.y.row_range(r, 1), v.row_range(r < 2 ? 0 : 1, 1)));
  }
}

TEST(Attention, OfZeroQueriesAveragesTheValuesItMaySee) {
  for (const auto& device : support::host_devices()) {
    const data::Segments rows = data::Segments::from_lengths(std::vector<int32_t>{3, 10});
    const Tensor v = support::filled(13, 4, DType::kF32, [](auto r, auto) { return double(r); });

    const Attended out = attend(*device, zeros(13, 4, DType::kF32), normal(13, 4, DType::kF32, 2),
                                v, rows, rows, 1, true);

    for (int64_t r = 0; r < 13; ++r) {
      const double first = r < 3 ? 0 : 3;
      EXPECT_NEAR(out.y.row<float>(r)[1], (first + double(r)) / 2, 1e-5) << r;
      EXPECT_NEAR(out.lse.row<float>(r)[0], std::log(double(r) - first + 1), 1e-5) << r;
    }
  }
}

TEST(Attention, ScalesScoresByTheRootOfTheHeadWidth) {
  for (const auto& device : support::host_devices()) {
    const int64_t d = 16;
    const data::Segments query = data::Segments::from_lengths(std::vector<int32_t>{1});
    const data::Segments keys = data::Segments::from_lengths(std::vector<int32_t>{2});
    const Tensor q = support::filled(1, d, DType::kF32, [](auto, auto) { return 0.5; });
    const Tensor k =
        support::filled(2, d, DType::kF32, [](auto r, auto) { return r == 0 ? 0.5 : 0; });
    const Tensor v =
        support::filled(2, d, DType::kF32, [](auto r, auto) { return r == 0 ? 1 : 0; });

    const Attended out = attend(*device, q, k, v, query, keys, 1, false);

    EXPECT_NEAR(out.y.data<float>()[0], 1 / (1 + std::exp(-1.0)), 1e-6);  // 16 / 4 / sqrt 16 = 1
  }
}

TEST(Attention, SurvivesScoresFarOutsideTheRangeOfExp) {
  for (const auto& device : support::host_devices()) {
    const Rows rows({9});
    const Tensor big = normal(9, 8, DType::kF32, 1, 100);

    const Attended out = attend(*device, big, big, big, rows.segments, rows.segments, 1, false);

    // Each query's own key wins by far.
    EXPECT_TRUE(support::is_near(out.y, big));
  }
}

// In a cache, segments have room between them and the rows there are unwritten.
TEST(Attention, ReadsNoRowOutsideTheSegments) {
  for (const auto& device : support::host_devices()) {
    const Tensor q = normal(2, 6, DType::kF32, 1), kv = normal(10, 12, DType::kF32, 2);
    const data::Segments queries = data::Segments::from_lengths(std::vector<int32_t>{1, 1});
    data::Segments keys;
    keys.begin = {0, 5};
    keys.length = {3, 2};
    const Attended want =
        attend(*device, q, kv.columns(0, 6), kv.columns(6, 6), queries, keys, 2, false);
    for (const int64_t r : {3, 4, 7, 8, 9})
      for (int64_t c = 0; c < 12; ++c) kv.row<float>(r)[c] = std::nanf("");

    const Attended got =
        attend(*device, q, kv.columns(0, 6), kv.columns(6, 6), queries, keys, 2, false);

    EXPECT_TRUE(support::has_same_bits(got.y, want.y));
  }
}

TEST(Attention, RefusesShapesThatDoNotFit) {
  const auto device = tensor::make_reference_device();
  Tape tape(*device, DType::kF64, {});
  const data::Segments five = data::Segments::from_lengths(std::vector<int32_t>{2, 3});
  const data::Segments one = data::Segments::from_lengths(std::vector<int32_t>{5});
  const data::Segments six = data::Segments::from_lengths(std::vector<int32_t>{2, 4});
  const Var q = tape.constant(normal(5, 6, DType::kF64, 1));
  const Var kv = tape.constant(normal(5, 12, DType::kF64, 1));
  const auto refuses = [&](const std::string& part, const Var& keys, AttentionShape shape) {
    return support::throws_with<InvalidArgument>(part,
                                                 [&] { (void)cross_attention(q, keys, shape); });
  };

  EXPECT_TRUE(refuses("attention: width 6 is not a multiple of 4 heads", kv,
                      {.queries = support::view(five), .keys = support::view(five), .heads = 4}));
  EXPECT_TRUE(refuses("attention: 2 query sentences, but 1 key sentences", kv,
                      {.queries = support::view(five), .keys = support::view(one), .heads = 2}));
  EXPECT_TRUE(refuses("attention: segments cover 5 and 6 rows of 5 and 5", kv,
                      {.queries = support::view(five), .keys = support::view(six), .heads = 2}));
  EXPECT_TRUE(refuses("cross_attention: q is f64 (5, 6), kv is f64 (5, 6)", q,
                      {.queries = support::view(five), .keys = support::view(five), .heads = 2}));
}

}  // namespace
}  // namespace fathom::ops
