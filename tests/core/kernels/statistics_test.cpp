#include <limits>

#include <gtest/gtest.h>

#include "tests/core/kernels/kernel_support.h"
#include "tests/support/tolerance.h"

namespace fathom::kernels {
namespace {

using support::element;
using support::normal;
using support::zeros;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
const double kNan = std::nan("");

// Three parameters in 40,048 elements, the second in three chunks, the first declared last.
const std::vector<std::array<int32_t, 3>> kChunks = {
    {2502, 3, 0}, {0, 16384, 1}, {1024, 16384, 1}, {2048, 7000, 1}, {2501, 16, 2}};
constexpr int64_t kElements = 2503 * 16;

TEST(SquaredNorms, AreThoseOfEveryChunk) {
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kBF16}) {
    for (const auto& device : devices_for(dtype)) {
      const Tensor x = normal(1, kElements, dtype, 1);
      const Tensor sums = random_bits(1, int64_t(kChunks.size()), DType::kF64, 2);

      device->compute().run(&Kernels::squared_norms,
                            {.x = x, .chunks = chunk_table(kChunks), .sums = sums});

      for (size_t k = 0; k < kChunks.size(); ++k) {
        double want = 0;
        for (int32_t i = 0; i < kChunks[k][1]; ++i) {
          const double v = element(x, 0, kChunks[k][0] * 16 + i);
          want += v * v;
        }
        EXPECT_NEAR(sums.data<double>()[k], want, 1e-13 * want) << device->name() << k;
      }
    }
  }
}

TEST(CountValues, CountsZerosAndWhatIsNotFinite) {
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kBF16}) {
    for (const auto& device : devices_for(dtype)) {
      const Tensor x = normal(1, kElements, dtype, 1);
      const auto set = [&](int64_t i, double value) { store(x, 0, i, value); };
      for (const int64_t i : {0, 17, 16383, 16384}) set(i, 0);
      set(5, -0.0);
      set(6, 1e-38);  // small, but not zero
      set(7, 3e38);   // large, but finite
      set(100, kNan);
      set(101, kInfinity);
      set(32768 + 6999, -kInfinity);
      set(32768 + 7000, kNan);  // of no chunk
      set(2502 * 16 + 2, kNan);
      const Tensor counts = random_bits(int64_t(kChunks.size()), 2, DType::kF64, 2);

      device->compute().run(&Kernels::count_values,
                            {.x = x, .chunks = chunk_table(kChunks), .counts = counts});

      const double want[][2] = {{0, 1}, {4, 2}, {1, 0}, {0, 1}, {0, 0}};
      for (int64_t k = 0; k < counts.rows(); ++k) {
        EXPECT_EQ(counts.row<double>(k)[0], want[k][0]) << device->name() << " " << x << " " << k;
        EXPECT_EQ(counts.row<double>(k)[1], want[k][1]) << device->name() << " " << x << " " << k;
      }
    }
  }
}

TEST(SumChunks, AddsTheChunksOfAParameterInOrder) {
  for (const auto& device : support::host_devices()) {
    for (const int64_t F : {1, 2}) {
      const Tensor values = normal(int64_t(kChunks.size()), F, DType::kF64, 1);
      // 1e16 + 1 = 1e16 in f64: only this order loses the 1.
      values.row<double>(1)[0] = 1;
      values.row<double>(2)[0] = 1e16;
      values.row<double>(3)[0] = -1e16;
      const Tensor totals = random_bits(4, F, DType::kF64, 2);  // the last has no chunks

      device->compute().run(&Kernels::sum_chunks,
                            {.values = values, .chunks = chunk_table(kChunks), .totals = totals});

      for (int64_t p = 0; p < 4; ++p) {
        for (int64_t f = 0; f < F; ++f) {
          double want = 0;
          for (size_t k = 0; k < kChunks.size(); ++k)
            if (kChunks[k][2] == p) want += values.row<double>(int64_t(k))[f];
          EXPECT_EQ(totals.row<double>(p)[f], want) << p;
        }
      }
      EXPECT_EQ(totals.row<double>(1)[0], 0);
    }
  }
}

TEST(SumLosses, AddsARangeInOrder) {
  for (const DType dtype : {DType::kF32, DType::kF64}) {
    for (const auto& device : devices_for(dtype)) {
      const Tensor first = normal(1, 50, dtype, 1), second = normal(1, 50, dtype, 2);
      const Tensor sums = zeros(3, 2, DType::kF64);
      sums.row<double>(1)[0] = 100;
      sums.row<double>(1)[1] = -7;
      double want[] = {100, -7};
      for (const auto& [begin, count] : {std::pair{3, 20}, {49, 1}, {10, 0}}) {
        for (int t = begin; t < begin + count; ++t) {
          want[0] += element(first, 0, t);
          want[1] += element(second, 0, t);
        }

        device->compute().run(&Kernels::sum_losses, {.first = first,
                                                     .second = second,
                                                     .sums = sums.row_range(1, 1),
                                                     .begin = begin,
                                                     .count = count});

        EXPECT_NEAR(sums.row<double>(1)[0], want[0], 1e-13);
        EXPECT_NEAR(sums.row<double>(1)[1], want[1], 1e-13);
      }
      for (const int64_t row : {0, 2})
        for (const int64_t column : {0, 1}) EXPECT_EQ(sums.row<double>(row)[column], 0);
    }
  }
}

struct Row {
  std::vector<double> x;

  Row(const Tensor& t, int64_t row) {
    for (int64_t c = 0; c < t.cols(); ++c) x.push_back(element(t, row, c));
  }
  [[nodiscard]] double mean() const {
    double sum = 0;
    for (const double v : x) sum += v;
    return sum / double(x.size());
  }
  [[nodiscard]] double mean_square() const {
    double sum = 0;
    for (const double v : x) sum += v * v;
    return sum / double(x.size());
  }
  // Without its mean, at variance 1.
  [[nodiscard]] Row normalised() const {
    Row out = *this;
    for (double& v : out.x) v -= mean();
    const double deviation = std::sqrt(out.mean_square());
    for (double& v : out.x) v /= deviation;
    return out;
  }
  [[nodiscard]] double variance() const {
    Row out = *this;
    for (double& v : out.x) v -= mean();
    return out.mean_square();
  }
};

TEST(RowMoments, AreThoseOfTheRequestedRows) {
  struct Types {
    DType x, o, next;
  };
  for (const Types& types :
       {Types{DType::kF32, DType::kF32, DType::kF32}, Types{DType::kF64, DType::kF64, DType::kF64},
        Types{DType::kF32, DType::kBF16, DType::kF32},
        Types{DType::kBF16, DType::kBF16, DType::kBF16}}) {
    for (const auto& device : devices_for(types.o)) {
      const int64_t T = 12, C = 33;
      const Tensor x = normal(T, C, types.x, 1), o = normal(T, C, types.o, 2, 0.5),
                   next = normal(T, C, types.next, 3, 1.2);
      const Tensor sums = zeros(1, 3 * kRowMoments, DType::kF64);
      for (int64_t i = 0; i < sums.numel(); ++i) sums.data<double>()[i] = double(i);
      std::vector<double> want(sums.data<double>(), sums.data<double>() + sums.numel());
      const int64_t begin = 3, count = 7;
      for (int64_t t = begin; t < begin + count; ++t) {
        const Row rx(x, t), ro(o, t), rn(next, t), nx = rx.normalised(), nn = rn.normalised();
        double change = 0, dot = 0;
        for (size_t c = 0; c < rx.x.size(); ++c) {
          change += (nn.x[c] - nx.x[c]) * (nn.x[c] - nx.x[c]) / double(C);
          dot += rx.x[c] * rn.x[c] / double(C);
        }
        const double row[] = {1,
                              rn.mean_square(),
                              rx.variance(),
                              ro.variance(),
                              change,
                              dot / std::sqrt(rx.mean_square() * rn.mean_square())};
        for (size_t i = 0; i < 6; ++i) want[size_t(kRowMoments) + i] += row[i];
      }

      device->compute().run(&Kernels::row_moments, {.x = x,
                                                    .o = o,
                                                    .next = next,
                                                    .sums = sums.columns(kRowMoments, kRowMoments),
                                                    .begin = begin,
                                                    .count = count});

      for (size_t i = 0; i < want.size(); ++i)
        EXPECT_NEAR(sums.data<double>()[i], want[i], 1e-11) << device->name() << " number " << i;
    }
  }
}

struct Control {
  double loss, nll, norm, scale, skip;
};

Control control_of(Device& device, const std::vector<std::array<double, 2>>& losses,
                   const std::vector<double>& squares, double tokens, double clip) {
  const Tensor l = zeros(int64_t(losses.size()), 2, DType::kF64),
               s = zeros(int64_t(squares.size()), 1, DType::kF64),
               control = random_bits(1, kControlValues, DType::kF64, 1);
  for (size_t i = 0; i < losses.size(); ++i)
    std::copy(losses[i].begin(), losses[i].end(), l.row<double>(int64_t(i)));
  std::copy(squares.begin(), squares.end(), s.data<double>());
  device.compute().run(
      &Kernels::step_control,
      {.losses = l, .squares = s, .control = control, .tokens = tokens, .clip_norm = clip});
  const double* c = control.data<double>();
  return {c[0], c[1], c[2], c[3], c[4]};
}

TEST(StepControl, AveragesTheLossesAndClipsTheNorm) {
  for (const auto& device : support::host_devices()) {
    const auto scale_at = [&](double clip) {
      const Control c = control_of(*device, {{30, 20}, {-10, 4}}, {9, 16}, 8, clip);
      EXPECT_DOUBLE_EQ(c.loss, 2.5);
      EXPECT_DOUBLE_EQ(c.nll, 3);
      EXPECT_DOUBLE_EQ(c.norm, 5);
      EXPECT_EQ(c.skip, 0);
      return c.scale;
    };

    EXPECT_EQ(scale_at(0), 1) << "clipping is off";
    EXPECT_EQ(scale_at(2.5), 0.5);
    EXPECT_EQ(scale_at(5), 1) << "exactly at the norm";
    EXPECT_DOUBLE_EQ(scale_at(4.9), 4.9 / 5);
    EXPECT_EQ(scale_at(10), 1);
  }
}

TEST(StepControl, SkipsAnUpdateWhoseLossOrNormIsNotFinite) {
  for (const auto& device : support::host_devices()) {
    for (const double clip : {0.0, 1.0}) {
      for (const double bad : {kNan, kInfinity, -kInfinity}) {
        EXPECT_EQ(control_of(*device, {{1, 1}, {bad, 1}}, {1}, 2, clip).skip, 1) << bad;
        EXPECT_EQ(control_of(*device, {{1, 1}}, {4, bad, 1}, 2, clip).skip, 1) << bad;
      }
      EXPECT_EQ(control_of(*device, {{1, 1}}, {1e308, 1e308}, 2, clip).skip, 1) << "overflow";
      EXPECT_EQ(control_of(*device, {{1, 1}}, {0, 0}, 2, clip).skip, 0) << "a gradient of zero";
      EXPECT_EQ(control_of(*device, {{1, 1}}, {0, 0}, 2, clip).scale, 1);
    }
  }
}

}  // namespace
}  // namespace fathom::kernels
