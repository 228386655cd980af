// What a slice gather must do; called on all ranks of a group, for threads and for MPI.
#pragma once

#include <algorithm>
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

  const Tensor own_compact = make_values(context, compact);
  const Tensor from_compact = make_values(context, std::vector<T>(33, T(-1)));
  gather.gather(own_compact, from_compact);
  EXPECT_EQ(values_of<T>(context, from_compact), whole);

  // Elements 9 to 29 are left out of a buffer, so a bucket of it may be empty.
  const Ownership others = ownership.of_elements(
      [](int64_t i) { return std::min<int64_t>(i, 9) + std::max<int64_t>(i - 30, 0); });
  SliceGather part(group, device->compute(), others, tensor::dtype_of<T>());
  std::vector<T> own_part, whole_part;
  for (int64_t i = 0; i < 12; ++i) whole_part.push_back(T(100 + i));
  for (const Slice& range : others.ranges(group.rank()))
    for (int64_t i = range.offset; i < range.end(); ++i) own_part.push_back(whole_part[size_t(i)]);
  const Tensor gathered = make_values(context, std::vector<T>(12, T(-1)));
  part.gather(make_values(context, own_part), gathered);
  EXPECT_EQ(values_of<T>(context, gathered), whole_part);

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
