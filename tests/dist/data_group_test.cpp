#include "dist/data_group.h"

#include <future>

#include <gtest/gtest.h>

#include "data_group_checks.h"
#include "expect_error.h"
#include "rank_threads.h"

namespace fathom::dist {
namespace {

class HostDataGroup : public ::testing::TestWithParam<int> {};

TEST_P(HostDataGroup, PerformsEveryOperationOnBothKindsOfContext) {
  run_ranks(GetParam(), expect_every_data_operation);
}

TEST_P(HostDataGroup, GathersShardValuesInShardOrder) {
  for (const int shards : {4, 7})
    run_ranks(GetParam(), [&](Communicator& group) { expect_shard_order(group, shards); });
}

INSTANTIATE_TEST_SUITE_P(Ranks, HostDataGroup, ::testing::Values(1, 2, 3, 4));

TEST(HostDataGroup, ReadsItsCountsBeforeItReturnsAndItsTensorsInTheOrderOfTheQueue) {
  run_ranks(2, [](Communicator& communicator) {
    const std::unique_ptr<Device> device = tensor::make_reference_device();
    Context& queue = device->communication();
    const std::unique_ptr<DataGroup> group = make_data_group(communicator, *device);
    const Tensor all = queue.allocate(1, 2, DType::kF32);
    std::promise<void> is_changed;
    {
      const Tensor mine = queue.allocate(1, 1, DType::kF32);
      std::vector<int64_t> counts = {1, 1};
      queue.call([is_changed = is_changed.get_future().share()] { is_changed.wait(); });
      queue.run(&kernels::Kernels::fill, {.y = mine, .value = double(5 + group->rank())});
      group->all_gather(queue, mine, counts, all);
      counts = {7, 7};
    }
    is_changed.set_value();

    EXPECT_EQ(values_of<float>(queue, all), (std::vector<float>{5, 6}));
  });
}

TEST(HostDataGroup, RefusesOtherThanContiguousF32OrF64) {
  const auto communicator = std::move(make_local_group(1).front());
  const auto device = tensor::make_reference_device();
  Context& context = device->compute();
  const auto group = make_data_group(*communicator, *device);
  const auto refuse = [](auto&& call, const std::vector<std::string>& parts) {
    expect_error<InvalidArgument>(call, parts);
  };
  const Tensor good = context.allocate(4, 4, DType::kF32),
               bf16 = context.allocate(4, 4, DType::kBF16),
               integers = context.allocate(4, 4, DType::kI32),
               f64 = context.allocate(4, 4, DType::kF64), strided = good.columns(1, 2);
  const std::vector<int64_t> sixteen = {16}, eight = {8};

  for (const Tensor& bad : {bf16, integers, strided}) {
    const std::string got = join("data group: got ", bad, ", expected contiguous f32 or f64");
    refuse([&] { group->all_reduce_sum(context, bad); }, {got});
    refuse([&] { group->reduce_scatter_sum(context, bad, sixteen, good); }, {got});
    refuse([&] { group->all_to_all(context, bad, sixteen, good, sixteen); }, {got});
  }
  for (const Tensor& bad : {integers, strided})
    refuse([&] { group->all_gather(context, bad, sixteen, good); },
           {join("data group: got ", bad, ", expected contiguous f32, f64 or bf16")});
  for (const Tensor& bad : {bf16, f64, strided}) {
    const std::string got =
        join("got ", good, " and ", bad, ", expected contiguous tensors of one");
    refuse([&] { group->all_gather(context, good, sixteen, bad); }, {got});
    refuse([&] { group->all_to_all(context, good, sixteen, bad, sixteen); }, {got});
  }
  refuse([&] { group->all_gather(context, good, eight, good); }, {"all_gather"});
  refuse([&] { group->reduce_scatter_sum(context, good, eight, good); }, {"reduce_scatter_sum"});
  group->all_reduce_sum(context, good);
}

}  // namespace
}  // namespace fathom::dist
