// The vector loops of the cpu device: the same bits with each instruction set, and no access behind
// the end of a row. That they compute the right thing, the tests of kernels and ops show.
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <new>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <hwy/targets.h>
#include <sys/mman.h>

#include "core/base/hash.h"
#include "core/base/philox.h"
#include "core/kernels/simd_cpu.h"

namespace fathom::kernels::cpu {
namespace {

constexpr int kRows = 6;
constexpr size_t kPage = 4096;

// Rows of random numbers in [-2, 2), the same with every math library. Each ends where the memory that
// may be touched ends.
class Rows {
 public:
  explicit Rows(int64_t count) : bytes_(size_t(count) * sizeof(float)) {
    size_ = (bytes_ + kPage - 1) / kPage * kPage + kPage;
    const PhiloxStream stream(5, "rows");
    for (int r = 0; r < kRows; ++r) {
      void* memory =
          mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (memory == MAP_FAILED) throw std::bad_alloc();
      memory_.push_back(static_cast<char*>(memory));
      mprotect(memory_.back() + size_ - kPage, kPage, PROT_NONE);
      for (int64_t i = 0; i < count; ++i)
        at(r)[i] = float(4 * stream.uniform(uint64_t(i * kRows + r)) - 2);
    }
  }
  ~Rows() {
    for (char* memory : memory_) munmap(memory, size_);
  }
  Rows(const Rows&) = delete;
  Rows& operator=(const Rows&) = delete;

  [[nodiscard]] float* at(int r) const {
    return reinterpret_cast<float*>(memory_[size_t(r)] + size_ - kPage - bytes_);
  }
  [[nodiscard]] std::vector<float> all() const {
    std::vector<float> values;
    for (int r = 0; r < kRows; ++r)
      values.insert(values.end(), at(r), at(r) + bytes_ / sizeof(float));
    return values;
  }

 private:
  size_t bytes_, size_ = 0;
  std::vector<char*> memory_;
};

// Every loop on rows of n elements; what it returns, and what it leaves in the rows, is compared.
struct NamedLoop {
  const char* name;
  std::vector<double> (*run)(const SimdLoops& loops, int64_t n, const Rows& x);
};

template <class Args>
Args update() {
  Args a;
  a.rate = 1e-3;
  a.root = 0.9;
  a.decay = 0.01;
  return a;
}

void make_positive(int64_t n, float* x) {
  for (int64_t i = 0; i < n; ++i) x[i] *= x[i];
}

std::vector<double> numbers(const RowSums& row) { return {row.largest, row.shifted, row.exps}; }

// c (7, n) = a b, where a is (7, 5) or the transpose of that.
template <bool kTransposed>
std::vector<double> products(const SimdLoops& loops, int64_t n, const Rows& x) {
  std::vector<float> a(35), c(size_t(7 * n), 0.25f), b;
  std::iota(a.begin(), a.end(), 0.3f);
  for (int r = 0; r < 5; ++r) b.insert(b.end(), x.at(r), x.at(r) + n);
  const View left = kTransposed ? View{a.data(), 5, 7, 7}.transposed() : View{a.data(), 7, 5, 5};
  loops.accumulate_product({c.data(), 7, n, n}, left, {b.data(), 5, n, n});
  std::vector<double> out(c.begin(), c.end());
  loops.set_product({x.at(5), 1, n, n}, left.rows_at(3, 1), {b.data(), 5, n, n});
  loops.set_product({c.data(), 7, n, n}, left, {b.data(), 5, n, n});
  out.insert(out.end(), c.begin(), c.end());
  return out;
}

const std::vector<NamedLoop>& named_loops() {
  using Result = std::vector<double>;
  static const std::vector<NamedLoop> all = {
      {"Add",
       [](const SimdLoops& loops, int64_t n, const Rows& x) {
         loops.add(n, x.at(0), x.at(1));
         return Result{};
       }},
      {"Multiply",
       [](const SimdLoops& loops, int64_t n, const Rows& x) {
         loops.multiply(n, x.at(0), x.at(1), x.at(2));
         loops.multiply(n, x.at(3), x.at(4), x.at(3));
         return Result{};
       }},
      {"Axpy",
       [](const SimdLoops& loops, int64_t n, const Rows& x) {
         loops.axpy(n, 0.3f, x.at(0), x.at(1));
         return Result{};
       }},
      {"Scale",
       [](const SimdLoops& loops, int64_t n, const Rows& x) {
         loops.scale(n, 0.3f, x.at(0), x.at(1));
         return Result{};
       }},
      {"AddScaled",
       [](const SimdLoops& loops, int64_t n, const Rows& x) {
         loops.add_scaled(n, 0.3f, x.at(0), 0.7f, x.at(1), x.at(2));
         return Result{};
       }},
      {"AddProduct",
       [](const SimdLoops& loops, int64_t n, const Rows& x) {
         loops.add_product(n, 0.3f, x.at(0), x.at(1), x.at(2));
         return Result{};
       }},
      {"Dot",
       [](const SimdLoops& loops, int64_t n, const Rows& x) {
         return Result{double(loops.dot(n, x.at(0), x.at(1))), loops.dot_f64(n, x.at(0), x.at(1))};
       }},
      {"CountValues",
       [](const SimdLoops& loops, int64_t n, const Rows& x) {
         x.at(0)[n / 2] = 0;
         x.at(0)[n - 1] = NAN;
         const ValueCounts counts = loops.count_values(n, x.at(0));
         x.at(0)[n - 1] = 1;
         return Result{double(counts.zeros), double(counts.nonfinite)};
       }},
      {"Product", products<false>},
      {"ProductOfTransposed", products<true>},
      {"FinishLinear",
       [](const SimdLoops& loops, int64_t n, const Rows& x) {
         loops.finish_linear(n, x.at(0), true, x.at(1), x.at(2));
         loops.finish_linear(n, nullptr, false, nullptr, x.at(3));
         return Result{};
       }},
      {"ReluGradient",
       [](const SimdLoops& loops, int64_t n, const Rows& x) {
         loops.relu_gradient(n, 1.5f, x.at(0), x.at(1), x.at(2));
         return Result{};
       }},
      {"LayerNorm",
       [](const SimdLoops& loops, int64_t n, const Rows& x) {
         const MeanAndRstd of_sum =
             loops.layer_norm(n, 1e-5f, x.at(0), x.at(1), x.at(2), x.at(3), x.at(4), x.at(5));
         const MeanAndRstd alone =
             loops.layer_norm(n, 1e-5f, x.at(0), nullptr, x.at(2), x.at(3), nullptr, x.at(5));
         return Result{of_sum.mean, of_sum.rstd, alone.mean, alone.rstd};
       }},
      {"LayerNormGradient",
       [](const SimdLoops& loops, int64_t n, const Rows& x) {
         loops.layer_norm_gradient(n, {0.1f, 1.2f}, x.at(0), x.at(1), x.at(2), x.at(3), x.at(4),
                                   x.at(5));
         return Result{};
       }},
      {"ScaleGradient",
       [](const SimdLoops& loops, int64_t n, const Rows& x) {
         loops.scale_gradient(n, x.at(0), x.at(1), x.at(2), x.at(3), x.at(4));
         return Result{};
       }},
      {"RowSums", [](const SimdLoops& loops, int64_t n,
                     const Rows& x) { return numbers(loops.row_sums(n, x.at(0))); }},
      {"LogitGradient",
       [](const SimdLoops& loops, int64_t n, const Rows& x) {
         loops.logit_gradient(n, 0.7f, 0.01f, 1e-3f, x.at(0));
         return Result{};
       }},
      {"Adam",
       [](const SimdLoops& loops, int64_t n, const Rows& x) {
         make_positive(n, x.at(2));
         loops.adam(n, update<Adam>(), 0.5f, x.at(0), x.at(1), x.at(2), x.at(3));
         return Result{};
       }},
      {"UpdateNorm",
       [](const SimdLoops& loops, int64_t n, const Rows& x) {
         make_positive(n, x.at(2));
         return Result{loops.update_norm(n, update<UpdateNorms>(), x.at(0), x.at(1), x.at(2))};
       }},
  };
  return all;
}

// The loops of each instruction set that this processor has, the best first.
std::vector<const SimdLoops*> all_simd() {
  std::vector<const SimdLoops*> all;
  const int64_t supported = hwy::SupportedTargets();
  for (const int64_t target : {HWY_AVX3, HWY_AVX2}) {
    if ((supported & target) == 0) continue;
    hwy::SetSupportedTargetsForTest(target);
    all.push_back(&simd());
  }
  hwy::SetSupportedTargetsForTest(0);
  return all;
}

std::vector<int64_t> sizes() {
  std::vector<int64_t> all(70);
  std::iota(all.begin(), all.end(), 1);
  all.insert(all.end(), {127, 128, 129, 1000, 1021});
  return all;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

TEST(Simd, TakesTheBestInstructionSetOfTheProcessor) {
  const std::string expected = __builtin_cpu_supports("avx512bw") ? "AVX-512" : "AVX2";

  EXPECT_EQ(simd().name, expected);
  EXPECT_EQ(all_simd().front()->name, expected);
  EXPECT_STREQ(all_simd().back()->name, "AVX2");
}

class EveryLoop : public ::testing::TestWithParam<NamedLoop> {};

TEST_P(EveryLoop, GivesTheSameBitsWithEachInstructionSet) {
  const std::vector<const SimdLoops*> all = all_simd();
  for (const int64_t n : sizes()) {
    const Rows expected_rows(n);
    const std::vector<double> expected = GetParam().run(*all.front(), n, expected_rows);
    for (const SimdLoops* loops : all) {
      const Rows rows(n);

      EXPECT_EQ(GetParam().run(*loops, n, rows), expected) << loops->name << ", n = " << n;
      EXPECT_TRUE(same_bits(rows.all(), expected_rows.all())) << loops->name << ", n = " << n;
    }
  }
}

// Hashes of what each loop returns and leaves in the rows, equal on all processors: where there is but
// one instruction set, a difference shows too. Where a loop is meant to give other bits, record the
// hash that the failing test prints.
const std::map<std::string, std::string> kDigests = {
    {"Add", "59b9cb69070acee199ffbc6dba87d60c"},
    {"Multiply", "76c91d5511edc3dc63a57686ecde4943"},
    {"Axpy", "2f84ab50e6adbd4b76a9fc2294149825"},
    {"Scale", "60c10c5b12233f025376e407b913419a"},
    {"AddScaled", "ad0d0598d9c5065370ebd128d20056c9"},
    {"AddProduct", "7e3385832470bb4d3bfde3457349f550"},
    {"Dot", "0b64508d06b0b50305343eefa27fc2c6"},
    {"CountValues", "33e6287dbb189046dc956d8bdd8fa571"},
    {"Product", "9ce8e0d1b3163a3b45c8571d497ddb9b"},
    {"ProductOfTransposed", "7bb65ee50fe653930eaf4060f8166eca"},
    {"FinishLinear", "6c5df1699805821a1b40897345973244"},
    {"ReluGradient", "fe39e37b8a4be842f3cac6cbc90f0bd1"},
    {"LayerNorm", "64b1863711f8d68811c205a3909a2055"},
    {"LayerNormGradient", "1d78df16476ae7edc8caa0424a96d20b"},
    {"ScaleGradient", "df847e52cc3cc70f76458c3a490b253b"},
    {"RowSums", "1306a6b8fac2694321217f63b1415a30"},
    {"LogitGradient", "580461077a87d374580d9bc86efcbf89"},
    {"Adam", "a17d29533c148e2453357b31325c6fa2"},
    {"UpdateNorm", "e3e8c4ab4c4435387fced414dd0a2ee1"},
};

TEST_P(EveryLoop, GivesTheBitsThatEveryProcessorGives) {
  std::string bytes;
  for (const int64_t n : sizes()) {
    const Rows rows(n);
    const std::vector<double> returned = GetParam().run(simd(), n, rows);
    const std::vector<float> left = rows.all();
    bytes.append(reinterpret_cast<const char*>(returned.data()), returned.size() * sizeof(double));
    bytes.append(reinterpret_cast<const char*>(left.data()), left.size() * sizeof(float));
  }
  EXPECT_EQ(xxh3_128(bytes), kDigests.at(GetParam().name)) << simd().name;
}

TEST(EveryLoop, HasADigest) { EXPECT_EQ(kDigests.size(), named_loops().size()); }

INSTANTIATE_TEST_SUITE_P(Simd, EveryLoop, ::testing::ValuesIn(named_loops()),
                         [](const auto& test) { return test.param.name; });

// Rows of scores have memory for a multiple of kScorePadding; what lies there comes out as 0, or
// stays, up to `width`.
TEST(Simd, OfAttentionGivesTheSameBitsWithEachInstructionSet) {
  for (const int64_t n : sizes()) {
    for (const int64_t width : {n, n + 1, n + 19}) {
      for (const bool has_factors : {false, true}) {
        const int64_t padded = (width + kScorePadding - 1) / kScorePadding * kScorePadding;
        std::vector<std::vector<float>> left;
        for (const SimdLoops* loops : all_simd()) {
          const Rows x(padded);
          make_positive(padded, x.at(3));
          const float* factors = has_factors ? x.at(3) : nullptr;
          x.at(2)[padded - 1] = NAN;  // of no row before; must not be seen
          const RowSums sums = loops->softmax(n, width, 0.4f, factors, x.at(0));
          loops->softmax_gradient(n, width, 0.4f, 1.5f, 0.2f, factors, x.at(1), x.at(2));
          std::vector<float> values = {sums.largest, sums.exps};
          for (const int row : {0, 1, 2}) {
            values.insert(values.end(), x.at(row), x.at(row) + width);
            for (int64_t i = n; i < width; ++i) EXPECT_EQ(x.at(row)[i], 0) << "n = " << n;
          }
          left.push_back(std::move(values));
        }
        EXPECT_TRUE(same_bits(left.front(), left.back())) << "n = " << n << ", width " << width;
      }
    }
  }
}

TEST(Simd, OfDropoutGivesTheSameFactorsWithEachInstructionSet) {
  const Dropout dropout = {.threshold = 20000, .key = {12345, 678}};
  for (const int64_t n : sizes()) {
    const int64_t size = (n + kFactorBlock - 1) / kFactorBlock * kFactorBlock;
    std::vector<std::vector<float>> made;
    for (const SimdLoops* loops : all_simd()) {
      const Rows x(size);
      loops->dropout_factors(dropout, 3, 4, 5, n, x.at(0));
      made.push_back(x.all());
    }
    EXPECT_TRUE(same_bits(made.front(), made.back())) << "n = " << n;
  }
}

TEST(Simd, ExpHasARelativeErrorUnderTwoInTenMillionAndKeepsNanAndInfinity) {
  for (const SimdLoops* loops : all_simd()) {
    std::vector<float> x;
    for (double at = -87; at <= 88; at += 1e-3) x.push_back(float(at));
    std::vector<float> y = x;
    loops->logit_gradient(int64_t(y.size()), 0, 1, 0, y.data());
    double worst = 0;
    for (size_t i = 0; i < x.size(); ++i)
      worst = std::max(worst, std::abs(double(y[i]) / std::exp(double(x[i])) - 1));
    EXPECT_LT(worst, 2e-7) << loops->name;

    std::vector<float> edges = {NAN, -INFINITY, -88, 0, -NAN};
    loops->logit_gradient(int64_t(edges.size()), 0, 1, 0, edges.data());
    EXPECT_TRUE(std::isnan(edges[0]) && std::isnan(edges[4])) << loops->name;
    EXPECT_EQ(edges[1], 0) << loops->name;
    EXPECT_EQ(edges[2], 0) << loops->name;
    EXPECT_EQ(edges[3], 1) << loops->name;
  }
}

}  // namespace
}  // namespace fathom::kernels::cpu
