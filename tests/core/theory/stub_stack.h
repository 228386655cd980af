// A stack of blocks over a real topology, with stubs for the blocks: leaves on the tape, drawn
// from N(0, sigma^2) beforehand, so that what is measured is the placement of the norms alone.
#pragma once

#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/philox.h"
#include "core/model/init.h"
#include "core/observe/layer_probe.h"
#include "core/topology/registry.h"
#include "tests/support/random_tensor.h"

namespace fathom::theory {

using Options = std::map<std::string, std::string>;

// Owns its memory, so it may be used on several tapes.
inline Tensor normal_matrix(int64_t rows, int64_t cols, double sd, uint64_t seed,
                            const std::string& purpose, DType dtype = DType::kF32) {
  const PhiloxStream stream(seed, purpose);
  const Tensor t = support::zeros(rows, cols, dtype);
  visit_float(dtype, [&]<class T>() {
    for (int64_t i = 0; i < rows * cols; ++i) t.data<T>()[i] = T(sd * stream.normal(uint64_t(i)));
  });
  return t;
}

// The inputs of a stack of stubs: blocks of variance f = sigma^2, an embedding of variance v0.
struct Draws {
  Tensor embedding, seed;        // (T, C); `seed` is d(loss)/d(output), N(0, 1)
  std::vector<Tensor> branches;  // N of (T, C)
};
struct DrawSizes {
  int blocks = 24;
  int64_t tokens = 1000, width = 512;
  double sigma = 1, v0 = 1;
  uint64_t seed = 1;
  DType dtype = DType::kF32;
};
inline Draws draw(const DrawSizes& s) {
  const auto normals = [&](double sd, const std::string& purpose) {
    return normal_matrix(s.tokens, s.width, sd, s.seed, purpose, s.dtype);
  };
  Draws d{.embedding = normals(std::sqrt(s.v0), "theory/embedding"),
          .seed = normals(1, "theory/seed"),
          .branches = {}};
  for (int k = 1; k <= s.blocks; ++k)
    d.branches.push_back(normals(s.sigma, join("theory/block/", k)));
  return d;
}

// A pass over the stack. Index k - 1 belongs to block k; `states` has one more, for the output.
struct Pass {
  std::vector<topology::Streams> states;
  std::vector<Var> inputs, outputs;  // u_k and x^f_k
  Var y;
};

class StubStack {
 public:
  StubStack(Device& device, const std::string& topology, const Options& options, int blocks,
            int64_t width, DType dtype = DType::kF32)
      : topology_(topology::make_topology(topology, options,
                                          {.encoder_layers = blocks,
                                           .decoder_layers = blocks,
                                           .width = width,
                                           .ffn_width = 4 * width},
                                          topology::StackKind::kEncoder)),
        store_(device, dtype),
        blocks_(blocks) {
    for (int k = 1; k <= blocks; ++k) topology_->declare_block(store_, context(k));
    topology_->declare_final(store_);
    store_.freeze();
    gradients_ = support::zeros(1, store_.size(), dtype);
    store_.bind_gradients(gradients_);
    model::ModelConfig config;
    config.width = width;
    model::initialise_parameters(store_, config, 0);  // gains 1, biases 0
  }

  [[nodiscard]] const topology::Topology& topology() const { return *topology_; }
  [[nodiscard]] topology::BlockContext context(int k) const {
    return {.layer = k,
            .kind = topology::BlockKind::kFeedForward,
            .block = k,
            .block_count = blocks_,
            .blocks_in_layer = 1};
  }
  [[nodiscard]] std::vector<topology::BlockContext> contexts() const {
    std::vector<topology::BlockContext> all;
    for (int k = 1; k <= blocks_; ++k) all.push_back(context(k));
    return all;
  }

  [[nodiscard]] Pass forward(Tape& tape, const Draws& draws) const {
    Pass pass;
    pass.states.push_back(topology_->start(tape.leaf(draws.embedding)));
    for (int k = 1; k <= blocks_; ++k) {
      const topology::Streams& state = pass.states.back();
      pass.inputs.push_back(topology_->in(state, context(k)));
      pass.outputs.push_back(tape.leaf(draws.branches[size_t(k - 1)]));
      pass.states.push_back(topology_->out(state, pass.outputs.back(), context(k)));
    }
    pass.y = final_after(pass, blocks_);
    return pass;
  }
  // The output of a stack that ends after its first N blocks.
  [[nodiscard]] Var final_after(const Pass& pass, int N) const {
    return topology_->final(pass.states[size_t(N)]);
  }

 private:
  std::unique_ptr<topology::Topology> topology_;
  ParameterStore store_;
  Tensor gradients_;
  int blocks_;
};

// One pass over a topology that keeps its values for the length of a test.
struct StubRun {
  StubRun(const std::string& topology, const Options& options, const Draws& draws,
          bool on_reference = false)
      : device(on_reference ? tensor::make_reference_device() : tensor::make_cpu_device(1)),
        stack(*device, topology, options, int(draws.branches.size()), draws.embedding.cols(),
              draws.embedding.dtype()),
        tape(*device, draws.embedding.dtype(), {}),
        pass(stack.forward(tape, draws)) {}

  // The normalised stream before block k, k = 1 .. N + 1.
  [[nodiscard]] const Tensor& normalised(int k) const {
    return k <= int(pass.inputs.size()) ? pass.inputs[size_t(k - 1)].value() : pass.y.value();
  }
  // Runs backward; gradients at the outputs of blocks 1 .. N.
  [[nodiscard]] std::vector<Tensor> gradients(const Tensor& seed) {
    tape.backward(pass.y, seed);
    std::vector<Tensor> all;
    for (const Var& o : pass.outputs) all.push_back(o.grad());
    return all;
  }

  std::unique_ptr<Device> device;
  StubStack stack;
  Tape tape;
  Pass pass;
};

}  // namespace fathom::theory
