// Slices of a store's flat buffers, and that Adam and the statistics of parameters give the same
// bits slice by slice as over everything.
#include "core/autograd/parameter_slices.h"

#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

#include "core/observe/parameter_probe.h"
#include "tests/support/devices.h"
#include "tests/support/expect_error.h"
#include "tests/support/tolerance.h"

namespace fathom::autograd {
namespace {

using support::throws_with;
using Rows = std::vector<int32_t>;

Rows rows_of(const Tensor& chunks) {
  return {chunks.data<int32_t>(), chunks.data<int32_t>() + chunks.numel()};
}

// Laid out in reverse: bias [0, 16), matrix [16, 75024) in three chunks, gain [75024, 75040).
struct Model {
  std::unique_ptr<Device> device;
  ParameterStore store;

  explicit Model(DType dtype)
      : device(dtype == DType::kF32 ? tensor::make_cpu_device(2) : tensor::make_reference_device()),
        store(*device, dtype) {
    store.add("gain", Role::kNormGain, {7});
    store.add("matrix", Role::kQuery, {300, 250}, 250, 300);
    store.add("bias", Role::kBias, {3});
    store.freeze();
    device->compute().copy(store.weights(), support::normal(1, store.size(), store.wide(), 1));
    store.refresh_working();
  }
};

const std::vector<Slice> kEven = {{.offset = 0, .count = 16 + 32768},
                                  {.offset = 16 + 65536, .count = 9472}},
                         kOdd = {{.offset = 16 + 32768, .count = 32768},
                                 {.offset = 75024, .count = 16}};

TEST(ParameterSlices, AreAllOfTheStoreOrTheChunksOfTheirRanges) {
  const Model model(DType::kF32);
  const ParameterSlices whole(model.store), slices(model.store, kEven);

  EXPECT_EQ(whole.size(), model.store.size());
  EXPECT_EQ(rows_of(whole.chunks()), rows_of(model.store.chunks()));
  EXPECT_EQ(slices.size(), 16 + 32768 + 9472);
  EXPECT_EQ(rows_of(slices.chunks()), (Rows{0, 3, 2, 1, 32768, 1, 4097, 9464, 1}));
  EXPECT_EQ(rows_of(slices.chunks_of(0)), (Rows{0, 3, 2, 1, 32768, 1}));
  EXPECT_EQ(rows_of(slices.chunks_of(1)), (Rows{0, 9464, 1}));
  EXPECT_EQ(slices.rows_of(1), (Slice{.offset = 2, .count = 1}));
}

TEST(ParameterSlices, MayBeNone) {
  const Model model(DType::kF32);
  const ParameterSlices none(model.store, {});

  EXPECT_EQ(none.size(), 0);
  EXPECT_EQ(none.chunks().rows(), 0);
  optim::Adam adam({}, none);
  adam.step(support::zeros(1, model.store.size(), DType::kF32), support::update_control(), 1e-3);
}

TEST(ParameterSlices, RefuseRangesThatSplitAChunkOrTouchEachOther) {
  const Model model(DType::kF32);
  const auto make = [&](std::vector<Slice> ranges) {
    return [&model, ranges] { ParameterSlices(model.store, ranges); };
  };
  EXPECT_TRUE(throws_with<InvalidArgument>("cuts the chunk of 32768",
                                           make({{.offset = 0, .count = 1000}})));
  EXPECT_TRUE(
      throws_with<InvalidArgument>("cuts the chunk", make({{.offset = 32, .count = 32768}})));
  EXPECT_TRUE(throws_with<InvalidArgument>("ascending", make({kEven[1], kEven[0]})));
  EXPECT_TRUE(
      throws_with<InvalidArgument>("a buffer of 75040", make({{.offset = 0, .count = 80000}})));
  EXPECT_TRUE(throws_with<InvalidArgument>("ascending", make({{.offset = 0, .count = 0}})));
}

void expect_same_bytes(const Tensor& a, const Tensor& b) {
  ASSERT_EQ(a.bytes(), b.bytes());
  EXPECT_EQ(0, std::memcmp(a.address(), b.address(), size_t(a.bytes())));
}

TEST(ParameterStore, KeepsTheMastersOfSlicesWhereTheyAreApartFromTheWorkingWeights) {
  const Model whole(DType::kBF16);
  Model half(DType::kBF16);
  half.store.keep_masters(kOdd);

  EXPECT_FALSE(half.store.has_whole_masters());
  EXPECT_EQ(half.store.weights().cols(), 32768 + 16);
  EXPECT_EQ(half.store.flat_bytes(), whole.store.flat_bytes());
  for (const auto& p : half.store.all()) {
    const Parameter& expected = whole.store.find(p->name);
    EXPECT_EQ(p->value.rows(), expected.value.rows());
    EXPECT_EQ(p->value.cols(), expected.value.cols());
    EXPECT_TRUE(support::has_same_bits(p->value, expected.value)) << p->name;
  }
  EXPECT_EQ(half.store.vectors().cols(), 32);  // bias, gain, each padded to 16
  EXPECT_EQ(half.store.vectors_before(0), 0);
  EXPECT_EQ(half.store.vectors_before(16), 16);
  EXPECT_EQ(half.store.vectors_before(75024), 16);
  EXPECT_EQ(half.store.vectors_before(75040), 32);
  EXPECT_THROW(half.store.keep_masters(kOdd), InvalidArgument);
}

TEST(ParameterStore, KeepsAllMastersWhereTheyAreTheWorkingWeights) {
  Model model(DType::kF32);
  model.store.keep_masters(kOdd);

  EXPECT_TRUE(model.store.has_whole_masters());
  EXPECT_EQ(model.store.weights().cols(), model.store.size());
}

// As AdamAndStatisticsGiveTheBitsOfTheWhole, with two stores of half the masters each.
TEST(ParameterSlices, OfKeptMastersGiveTheBitsOfTheWhole) {
  const Model whole(DType::kBF16);
  const Tensor gradient = support::normal(1, whole.store.size(), DType::kF32, 2);
  const Tensor control = support::update_control(0.5);
  optim::Adam adam({}, whole.store);
  adam.step(gradient, control, 1e-3);
  adam.count_update();
  observe::ParameterProbe probe((ParameterSlices(whole.store)));
  const Tensor sums = support::zeros(1, probe.count(), DType::kF64);
  probe.measure(gradient, &adam, 1e-3, sums);

  const Tensor both = support::zeros(1, probe.count(), DType::kF64);
  for (const std::vector<Slice>& ranges : {kEven, kOdd}) {
    Model half(DType::kBF16);
    half.store.keep_masters(ranges);
    const ParameterSlices slices(half.store, ranges);
    optim::Adam own(optim::OptimizerConfig{}, slices);
    own.step(gradient, control, 1e-3);
    own.count_update();

    int64_t at = 0;
    for (size_t r = 0; r < ranges.size(); ++r) {
      expect_same_bytes(half.store.weights().columns(at, ranges[r].count),
                        whole.store.weights().columns(ranges[r].offset, ranges[r].count));
      expect_same_bytes(slices.masters_of(r), half.store.weights().columns(at, ranges[r].count));
      expect_same_bytes(half.store.working().columns(ranges[r].offset, ranges[r].count),
                        whole.store.working().columns(ranges[r].offset, ranges[r].count));
      at += ranges[r].count;
    }
    // Its own rows in their places and zeros in the others': as one rank of two would have them.
    observe::ParameterProbe half_probe(slices, [&](const Tensor& own_rows, const Tensor& all) {
      half.device->compute().run(&kernels::Kernels::fill, {.y = all, .value = 0});
      half.device->compute().synchronise();
      const int32_t *mine = slices.chunks().data<int32_t>(),
                    *every = half.store.chunks().data<int32_t>();
      for (int64_t i = 0; i < own_rows.rows(); ++i)
        for (int64_t k = 0; k < all.rows(); ++k)
          if (mine[3 * i] == every[3 * k])
            for (int64_t c = 0; c < all.cols(); ++c)
              all.data<double>()[k * all.cols() + c] = own_rows.data<double>()[i * all.cols() + c];
    });
    const Tensor half_sums = support::zeros(1, probe.count(), DType::kF64);
    half_probe.measure(gradient, &own, 1e-3, half_sums);
    for (int64_t i = 0; i < both.cols(); ++i) both.data<double>()[i] += half_sums.data<double>()[i];
  }
  // Of the matrix each half has some chunks, so these sums are equal up to their order.
  for (int64_t i = 0; i < both.cols(); ++i)
    EXPECT_NEAR(both.data<double>()[i], sums.data<double>()[i],
                1e-12 * std::abs(sums.data<double>()[i]))
        << "sum " << i;
}

class Sliced : public ::testing::TestWithParam<DType> {};

std::vector<double> elements(const Tensor& t) {
  return {t.data<double>(), t.data<double>() + t.numel()};
}

// Both halves' updates of one model against one update of everything.
TEST_P(Sliced, AdamAndStatisticsGiveTheBitsOfTheWhole) {
  const Model whole(GetParam()), halves(GetParam());
  const Tensor gradient = support::normal(1, whole.store.size(), whole.store.wide(), 2);
  const optim::OptimizerConfig config = {.weight_decay = 1e-2};
  optim::Adam adam(config, whole.store);
  const ParameterSlices even(halves.store, kEven), odd(halves.store, kOdd);
  optim::Adam adam_even(config, even), adam_odd(config, odd);
  const Tensor control = support::update_control(0.5);
  for (const double rate : {1e-3, 2e-3})
    for (optim::Adam* one : {&adam, &adam_even, &adam_odd}) {
      one->step(gradient, control, rate);
      one->count_update();
    }

  expect_same_bytes(whole.store.weights(), halves.store.weights());
  if (!whole.store.working().is_empty())
    expect_same_bytes(whole.store.working(), halves.store.working());
  int64_t at = 0;
  for (const Slice& range : kOdd) {
    expect_same_bytes(adam.second().columns(range.offset, range.count),
                      adam_odd.second().columns(at, range.count));
    at += range.count;
  }

  // gather() of the first half's probe adds the rows of the second: as a group of two would.
  const Tensor own_sums = support::zeros(1, 3 * observe::kParameterSums, DType::kF64),
               sums = support::zeros(1, 3 * observe::kParameterSums, DType::kF64);
  std::vector<std::vector<double>> of_odd;
  observe::ParameterProbe probe_odd(
      odd, [&](const Tensor& own, const Tensor&) { of_odd.push_back(elements(own)); });
  probe_odd.measure(gradient, &adam_odd, 2e-3, own_sums);
  size_t call = 0;
  observe::ParameterProbe probe_even(even, [&](const Tensor& own, const Tensor& all) {
    const int64_t places[] = {4, 1, 3}, odd_places[] = {2, 0};  // gain, matrix (3), bias
    for (int64_t f = 0; f < own.cols(); ++f) {
      for (int64_t k = 0; k < 3; ++k) all.row<double>(places[k])[f] = own.row<double>(k)[f];
      for (int64_t k = 0; k < 2; ++k)
        all.row<double>(odd_places[k])[f] = of_odd[call][size_t(k * own.cols() + f)];
    }
    ++call;
  });
  probe_even.measure(gradient, &adam_even, 2e-3, own_sums);
  observe::ParameterProbe(whole.store).measure(gradient, &adam, 2e-3, sums);

  EXPECT_EQ(call, 4u);
  expect_same_bytes(own_sums, sums);
  for (const double square : elements(sums.columns(0, 9))) EXPECT_GT(square, 0);
}

INSTANTIATE_TEST_SUITE_P(Types, Sliced, ::testing::Values(DType::kF32, DType::kF64, DType::kBF16));

}  // namespace
}  // namespace fathom::autograd
