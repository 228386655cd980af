#include "dist/data_group.h"

#include <vector>

#include "core/base/error.h"

namespace fathom::dist {
namespace {

// Calls f(T{}) with T = float or double, the type of `t` and of what goes with it.
template <class F>
void with_type(const Tensor& t, const Tensor& other, const F& f) {
  require(t.is_contiguous() && (t.dtype() == DType::kF32 || t.dtype() == DType::kF64),
          "data group: got ", t, ", expected contiguous f32 or f64");
  require(other.is_contiguous() && other.dtype() == t.dtype(), "data group: got ", t, " and ",
          other, ", expected contiguous tensors of one type");
  if (t.dtype() == DType::kF64)
    f(double{});
  else
    f(float{});
}

template <class T>
std::span<T> elements(const Tensor& t) {
  return {static_cast<T*>(t.address()), size_t(t.numel())};
}

class HostDataGroup final : public DataGroup {
 public:
  explicit HostDataGroup(Communicator& communicator) : communicator_(communicator) {}
  int rank() const override { return communicator_.rank(); }
  int size() const override { return communicator_.size(); }

  void all_reduce_sum(Context& context, const Tensor& values) override {
    with_type(values, values, [&]<class T>(T) {
      context.call([this, values] { communicator_.all_reduce_sum(elements<T>(values)); });
    });
  }
  void reduce_scatter_sum(Context& context, const Tensor& values, Counts counts,
                          const Tensor& part) override {
    with_type(values, part, [&]<class T>(T) {
      context.call([this, values, part, n = std::vector<int64_t>(counts.begin(), counts.end())] {
        communicator_.reduce_scatter_sum(std::span<const T>(elements<T>(values)), n,
                                         elements<T>(part));
      });
    });
  }
  void all_gather(Context& context, const Tensor& mine, Counts counts, const Tensor& all) override {
    with_type(mine, all, [&]<class T>(T) {
      context.call([this, mine, all, n = std::vector<int64_t>(counts.begin(), counts.end())] {
        communicator_.all_gather(std::span<const T>(elements<T>(mine)), n, elements<T>(all));
      });
    });
  }
  void all_to_all(Context& context, const Tensor& send, Counts send_counts, const Tensor& receive,
                  Counts receive_counts) override {
    with_type(send, receive, [&]<class T>(T) {
      context.call([this, send, receive,
                    to = std::vector<int64_t>(send_counts.begin(), send_counts.end()),
                    from = std::vector<int64_t>(receive_counts.begin(), receive_counts.end())] {
        communicator_.all_to_all(std::span<const T>(elements<T>(send)), to, elements<T>(receive),
                                 from);
      });
    });
  }

 private:
  Communicator& communicator_;
};

}  // namespace

std::unique_ptr<DataGroup> make_host_data_group(Communicator& communicator) {
  return std::make_unique<HostDataGroup>(communicator);
}

}  // namespace fathom::dist
