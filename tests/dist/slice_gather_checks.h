// What a slice gather must do; called on all ranks of a group, for threads and for MPI.
#pragma once

#include <vector>

#include <gtest/gtest.h>

#include "data_group_checks.h"
#include "dist/slice_gather.h"

namespace fathom::dist {

// Element i is i + 1. Chunks in a mixed order, of which some ranks own none in some buckets.
template <class T>
void expect_slices_gathered(Communicator& group) {
  const std::unique_ptr<Device> device = tensor::make_reference_device();
  Context& context = device->compute();
  const std::vector<int64_t> chunks = {20, 0, 3, 9, 27, 30, 31};
  const Ownership ownership(chunks, 33, 12, group.size());
  SliceGather gather(group, device->compute(), ownership, tensor::dtype_of<T>());
  std::vector<T> mine(33, T(-1)), compact, whole;
  for (int64_t i = 0; i < 33; ++i) whole.push_back(T(i + 1));
  for (const Slice& range : ownership.ranges(group.rank()))
    for (int64_t i = range.offset; i < range.end(); ++i) {
      mine[size_t(i)] = whole[size_t(i)];
      compact.push_back(whole[size_t(i)]);
    }

  const Tensor flat = make_values(context, mine);
  gather.gather(flat);
  EXPECT_EQ(device->host_waits(), 0);
  EXPECT_EQ(values_of<T>(context, flat), whole);

  std::vector<T> host(group.rank() == 0 ? 33 : 0);
  const Tensor own_values = make_values(context, compact);
  gather.gather_to_host(own_values, std::as_writable_bytes(std::span(host)));
  context.synchronise();
  if (group.rank() == 0) {
    EXPECT_EQ(host, whole);
  }

  for (const int64_t width : {1, 2}) {
    std::vector<double> own, expected;
    for (const int64_t k : ownership.chunks_of(group.rank()))
      for (int64_t f = 0; f < width; ++f) own.push_back(double(10 * k + f));
    for (int64_t k = 0; k < 7; ++k)
      for (int64_t f = 0; f < width; ++f) expected.push_back(double(10 * k + f));
    const Tensor all = context.allocate(7, width, DType::kF64);
    gather.gather_chunks(make_values(context, own).reshaped(int64_t(own.size()) / width, width),
                         all);
    EXPECT_EQ(values_of<double>(context, all), expected);
  }
}

}  // namespace fathom::dist
