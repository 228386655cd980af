#include <vector>

#include "dist/data_group.h"

namespace fathom::dist {
namespace {

// Calls f(T{}) with T = float or double, the type of `t`.
template <class F>
void with_type(const Tensor& t, const F& f) {
  if (t.dtype() == DType::kF64)
    f(double{});
  else
    f(float{});
}

template <class T>
std::span<T> elements(const Tensor& t) {
  return {static_cast<T*>(t.address()), size_t(t.numel())};
}

std::span<std::byte> bytes_of(const Tensor& t) {
  return {static_cast<std::byte*>(t.address()), size_t(t.bytes())};
}

// Until the context comes to the call.
std::vector<int64_t> copied(Counts counts) { return {counts.begin(), counts.end()}; }

class HostDataGroup final : public DataGroup {
 public:
  explicit HostDataGroup(Communicator& communicator)
      : DataGroup(communicator.rank(), communicator.size()), communicator_(communicator) {}

 private:
  void do_all_reduce_sum(Context& context, const Tensor& values) override {
    with_type(values, [&]<class T>(T) {
      context.call([this, values] { communicator_.all_reduce_sum(elements<T>(values)); });
    });
  }
  void do_reduce_scatter_sum(Context& context, const Tensor& values, Counts counts,
                             const Tensor& part) override {
    with_type(values, [&]<class T>(T) {
      context.call([this, values, part, n = copied(counts)] {
        communicator_.reduce_scatter_sum(std::span<const T>(elements<T>(values)), n,
                                         elements<T>(part));
      });
    });
  }
  void do_all_gather(Context& context, const Tensor& mine, Counts counts,
                     const Tensor& all) override {
    std::vector<int64_t> bytes = copied(counts);
    for (int64_t& count : bytes) count *= size_of(mine.dtype());
    context.call([this, mine, all, bytes] {
      communicator_.all_gather(std::as_bytes(bytes_of(mine)), bytes, bytes_of(all));
    });
  }
  void do_all_to_all(Context& context, const Tensor& send, Counts send_counts,
                     const Tensor& receive, Counts receive_counts) override {
    with_type(send, [&]<class T>(T) {
      context.call([this, send, receive, to = copied(send_counts), from = copied(receive_counts)] {
        communicator_.all_to_all(std::span<const T>(elements<T>(send)), to, elements<T>(receive),
                                 from);
      });
    });
  }

  Communicator& communicator_;
};

}  // namespace

std::unique_ptr<DataGroup> make_host_data_group(Communicator& communicator) {
  return std::make_unique<HostDataGroup>(communicator);
}

}  // namespace fathom::dist
