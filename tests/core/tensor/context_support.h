// For tests of contexts: both host devices, a gate that blocks a queue, tensors made and read.
#pragma once

#include <future>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/tensor/device.h"

namespace fathom::tensor {

class HostDevices : public ::testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<Device> device_ = make_device(GetParam(), 2);
  Context& compute_ = device_->compute();
};

// A context runs nothing after hold() before the gate opens, at the latest in its destructor.
class Gate {
 public:
  Gate() : opened_(open_.get_future().share()) {}
  ~Gate() { open(); }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  void hold(Context& context) {
    context.call([opened = opened_] { opened.wait(); });
  }
  void open() {
    if (!is_open_) open_.set_value();
    is_open_ = true;
  }

 private:
  std::promise<void> open_;
  std::shared_future<void> opened_;
  bool is_open_ = false;
};

inline void fill(Context& context, const Tensor& t, double value) {
  context.run(&kernels::Kernels::fill, {.y = t, .value = value});
}

[[nodiscard]] inline std::vector<float> floats(Context& context, const Tensor& t) {
  std::vector<float> values(size_t(t.numel()));
  context.download(std::span(values), t);
  return values;
}

}  // namespace fathom::tensor
