#include "dist/data_group.h"

#include <algorithm>
#include <numeric>

#include "core/base/error.h"

namespace fathom::dist {
namespace {

void check_alike(const Tensor& t, const Tensor& other) {
  require(other.is_contiguous() && other.dtype() == t.dtype(), "data group: got ", t, " and ",
          other, ", expected contiguous tensors of one type");
}

void check_type(const Tensor& t, const Tensor& other) {
  require(t.is_contiguous() && (t.dtype() == DType::kF32 || t.dtype() == DType::kF64),
          "data group: got ", t, ", expected contiguous f32 or f64");
  check_alike(t, other);
}

// `whole` has what all counts say together, `part` what this rank's says.
void check_parts(const char* name, const DataGroup& group, Counts counts, const Tensor& whole,
                 const Tensor& part) {
  require(int(counts.size()) == group.size() &&
              std::all_of(counts.begin(), counts.end(), [](int64_t n) { return n >= 0; }) &&
              std::reduce(counts.begin(), counts.end()) == whole.numel() &&
              counts[size_t(group.rank())] == part.numel(),
          name, ": the counts of ", counts.size(), " ranks do not fit ", whole, " and ", part,
          " on rank ", group.rank(), " of ", group.size());
}

}  // namespace

void DataGroup::all_reduce_sum(Context& context, const Tensor& values) {
  check_type(values, values);
  do_all_reduce_sum(context, values);
}

void DataGroup::reduce_scatter_sum(Context& context, const Tensor& values, Counts counts,
                                   const Tensor& part) {
  check_type(values, part);
  check_parts("reduce_scatter_sum", *this, counts, values, part);
  do_reduce_scatter_sum(context, values, counts, part);
}

void DataGroup::all_gather(Context& context, const Tensor& mine, Counts counts, const Tensor& all) {
  const bool has_type = mine.dtype() != DType::kI32;
  require(mine.is_contiguous() && has_type, "data group: got ", mine,
          ", expected contiguous f32, f64 or bf16");
  check_alike(mine, all);
  check_parts("all_gather", *this, counts, all, mine);
  do_all_gather(context, mine, counts, all);
}

void DataGroup::all_to_all(Context& context, const Tensor& send, Counts send_counts,
                           const Tensor& receive, Counts receive_counts) {
  check_type(send, receive);
  for (const auto& [tensor, counts] : {std::pair{&send, send_counts}, {&receive, receive_counts}})
    require(int(counts.size()) == size_ &&
                std::all_of(counts.begin(), counts.end(), [](int64_t n) { return n >= 0; }) &&
                std::reduce(counts.begin(), counts.end()) == tensor->numel(),
            "all_to_all: the counts of ", counts.size(), " ranks do not fit ", *tensor,
            " in a group of ", size_);
  do_all_to_all(context, send, send_counts, receive, receive_counts);
}

std::unique_ptr<DataGroup> make_data_group(Communicator& communicator, Device& device) {
  if (device.table().collectives.join_group == nullptr) return make_host_data_group(communicator);
  return make_device_data_group(communicator, device);
}

}  // namespace fathom::dist
