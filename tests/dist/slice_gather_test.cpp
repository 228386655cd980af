#include "dist/slice_gather.h"

#include <gtest/gtest.h>

#include "expect_error.h"
#include "rank_threads.h"
#include "slice_gather_checks.h"

namespace fathom::dist {
namespace {

TEST(SliceGather, GathersWhatRanksOwn) {
  for (const int ranks : {1, 2, 3, 4, 9}) {
    run_ranks(ranks, expect_slices_gathered<float>);
    run_ranks(ranks, expect_slices_gathered<double>);
  }
}

TEST(SliceGather, RefusesWhatIsOfAnotherShape) {
  run_ranks(2, [](Communicator& group) {
    const auto device = tensor::make_reference_device();
    const Ownership ownership(std::vector<int64_t>{0, 4}, 8, 8, 2);
    SliceGather gather(group, device->compute(), ownership, DType::kF32);
    Context& context = device->compute();
    const auto zeros = [&](int64_t rows, int64_t cols) {
      return context.allocate(rows, cols, DType::kF64);
    };
    expect_error<InvalidArgument>([&] { gather.gather(zeros(1, 7)); }, {"expected 8 elements"});
    expect_error<InvalidArgument>([&] { gather.gather_chunks(zeros(1, 1), zeros(3, 1)); },
                                  {"of 2 chunks"});
    expect_error<InvalidArgument>([&] { gather.gather_chunks(zeros(1, 3), zeros(2, 3)); },
                                  {"slice gather"});
    const Ownership three(std::vector<int64_t>{0, 4}, 8, 8, 3);
    expect_error<InvalidArgument>(
        [&] { SliceGather(group, device->compute(), three, DType::kF32); },
        {"3 ranks in a group of 2"});
  });
}

}  // namespace
}  // namespace fathom::dist
