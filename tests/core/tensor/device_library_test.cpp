// The reference device from a shared library against the one that is built in, and files that are
// not device libraries.
#include <map>
#include <thread>

#include <gtest/gtest.h>

#include "core/model/transformer.h"
#include "core/observe/parameter_probe.h"
#include "core/optim/adam.h"
#include "tests/support/expect_error.h"

namespace fathom::tensor {
namespace {

constexpr const char* kLibrary = FATHOM_TEST_DEVICE;
constexpr const char* kWithoutTable = FATHOM_TEST_DEVICE_WITHOUT_TABLE;

std::unique_ptr<Device> open_library() { return open_device_library(kLibrary, {}); }

data::PackedBatch batch() {
  std::vector<data::TokenPair> pairs(3);
  for (int32_t i = 0; i < 3; ++i) {
    for (int32_t k = 0; k < 4 + i; ++k) pairs[size_t(i)].source.push_back(3 + (7 * k + i) % 20);
    for (int32_t k = 0; k < 6 - i; ++k) pairs[size_t(i)].target.push_back(3 + (5 * k + i) % 20);
  }
  return data::pack(data::Dataset::from_pairs(pairs, false), std::vector<int64_t>{0, 1, 2});
}

// The bytes of weights, gradient and control of a small Transformer after some steps.
std::vector<std::vector<std::byte>> after_steps(Device& device, DType dtype, int steps) {
  model::ModelConfig config;
  config.encoder_layers = config.decoder_layers = 1;
  config.width = 12;
  config.heads = 3;
  config.ffn_width = 20;
  config.vocabulary_size = 23;
  model::Transformer model(config, device, dtype);
  model.initialise(1);
  ParameterStore& store = model.parameters();
  Context& context = device.compute();
  const Tensor gradient = context.allocate(1, store.size(), store.wide()),
               losses = context.allocate(1, 2, DType::kF64),
               control = context.allocate(1, kernels::kControlValues, DType::kF64);
  store.bind_gradients(gradient);
  optim::Adam adam({.clip_norm = 1}, store);
  observe::ParameterProbe probe(store);
  const data::PackedBatch packed = batch();
  const int64_t tokens = int64_t(packed.target.size());
  for (int step = 1; step <= steps; ++step) {
    for (const Tensor& t : {gradient, losses})
      context.run(&kernels::Kernels::fill, {.y = t, .value = 0});
    Tape tape(device, dtype, {.dropout = {.seed = 1, .step = step}});
    const model::DeviceBatch on_device = model::upload(tape, packed, config.vocabulary_size);
    const ops::TokenLosses loss = model.losses(tape, on_device, 0.1, 1 / double(tokens));
    context.run(&kernels::Kernels::sum_losses,
                {.first = loss.smooth, .second = loss.nll, .sums = losses, .count = tokens});
    tape.backward(loss.loss);
    context.run(&kernels::Kernels::step_control, {.losses = losses,
                                                  .squares = probe.squared_norms(gradient),
                                                  .control = control,
                                                  .tokens = double(tokens),
                                                  .clip_norm = 1});
    adam.step(gradient, control, 1e-2);
    adam.count_update();
  }
  std::vector<std::vector<std::byte>> out;
  for (const Tensor& t : {store.weights(), gradient, control}) {
    out.emplace_back(size_t(t.bytes()));
    context.download(std::span(out.back()), t);
  }
  return out;
}

class DeviceLibrary : public ::testing::TestWithParam<DType> {};

TEST_P(DeviceLibrary, HasTheBitsOfTheBuiltInDeviceInTrainingSteps) {
  const auto built_in = make_reference_device(), plugged_in = open_library();
  EXPECT_NE(&built_in->table(), &plugged_in->table());

  const auto expected = after_steps(*built_in, GetParam(), 3);
  EXPECT_EQ(after_steps(*plugged_in, GetParam(), 3), expected);
  EXPECT_NE(after_steps(*plugged_in, GetParam(), 2), expected);
}

INSTANTIATE_TEST_SUITE_P(Types, DeviceLibrary,
                         ::testing::Values(DType::kF32, DType::kF64, DType::kBF16));

TEST(DeviceLibrary, ReportsTheSameAsTheBuiltInDevice) {
  const auto built_in = make_reference_device(), plugged_in = open_library();
  EXPECT_EQ(plugged_in->name(), built_in->name());
  EXPECT_EQ(plugged_in->numerics(), built_in->numerics());
  EXPECT_EQ(plugged_in->info().compute_types, built_in->info().compute_types);
}

TEST(DeviceLibrary, HasQueuesAndPassesFailuresOn) {
  const auto device = open_library();
  Context& queue = device->communication();
  const Tensor x = queue.allocate(1, 2, DType::kF32);
  queue.run(&kernels::Kernels::fill, {.y = x, .value = 5});
  device->compute().wait(queue.record());
  std::vector<float> values(2);
  device->compute().download(std::span(values), x);
  EXPECT_EQ(values, (std::vector<float>{5, 5}));

  EXPECT_EQ(device->info().is_host_accessible, 0);
  EXPECT_TRUE(support::throws_with<DeviceError>("host functions cannot reach the memory",
                                                [&] { queue.call([] {}); }));
  EXPECT_TRUE(support::throws_with<DeviceError>("reference: 1073741824 MiB cannot be had", [&] {
    (void)device->compute().allocate(1 << 20, 1 << 27, DType::kF64);
  }));
}

// Each open and close by itself: the library is closed with its last device.
TEST(DeviceLibrary, MayBeOpenedManyTimes) {
  const auto first = open_library(), second = open_library();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(open_library()->name(), "reference");
}

TEST(DeviceLibrary, IsRefusedWithItsPathAndTheRemedy) {
  const auto is_refused = [](const std::string& path, const std::string& reason) {
    const auto open = [&] { (void)open_device_library(path, {}); };
    return support::throws_with<DeviceError>("device library " + path + ": " + reason, open);
  };
  EXPECT_TRUE(is_refused("/nowhere/libdevice.so", "cannot be opened: "));
  EXPECT_TRUE(support::throws_with<DeviceError>(
      "No such file or directory; give the path of a device library that was built for this "
      "machine",
      [] { (void)open_device_library("/nowhere/libdevice.so", {}); }));
  EXPECT_TRUE(is_refused("/proc/self/exe", "cannot be opened: "));
  EXPECT_TRUE(
      is_refused("libm.so.6", "exports no fathom_device_table; give the path of a device library"));
  EXPECT_TRUE(
      is_refused(kWithoutTable, join("has no table of version ", kernels::kDeviceTableVersion,
                                     "; build it together with this program")));
}

}  // namespace
}  // namespace fathom::tensor
