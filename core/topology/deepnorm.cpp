// DeepNorm (Wang et al. 2022, arXiv 2203.00555): Post-LN with the stream scaled up.
//
//   x <- LN(a x + f(x));   y = x;   initial fc1, fc2, v, out times b
//
// One stack of L layers: a = (2 L)^1/4, b = (8 L)^-1/4. Encoder of N and decoder of M layers:
// encoder a = 0.81 (N^4 M)^1/16, b = 0.87 (N^4 M)^-1/16; decoder a = (3 M)^1/4, b = (12 M)^-1/4.
#include <cmath>

#include "core/topology/registry.h"

namespace fathom::topology {
namespace {

class DeepNorm final : public NormedTopology {
 public:
  DeepNorm(const ModelShape& shape, StackKind stack)
      : NormedTopology(shape, stack, FinalNorm::kNone) {
    const double N = shape.encoder_layers, M = shape.decoder_layers;
    if (N == 0) {
      alpha_ = std::pow(2 * M, 0.25), beta_ = std::pow(8 * M, -0.25);
    } else if (stack == StackKind::kEncoder) {
      const double depth = std::pow(N * N * N * N * M, 1.0 / 16);
      alpha_ = 0.81 * depth, beta_ = 0.87 / depth;
    } else {
      alpha_ = std::pow(3 * M, 0.25), beta_ = std::pow(12 * M, -0.25);
    }
  }
  double initial_gain(const BlockContext&, Part part) const override {
    return part == Part::kQuery || part == Part::kKey ? 1 : beta_;
  }
  Var in(const Streams& s, const BlockContext&) const override { return s[0]; }
  Streams out(const Streams& s, const Var& o, const BlockContext& block) const override {
    return {norm(block)(ops::add_scaled(s[0], o, alpha_, 1))};
  }
  Var final(const Streams& s) const override { return s[0]; }

 private:
  double alpha_, beta_;
};

}  // namespace

TopologyInfo deepnorm() {
  return {.name = "deepnorm",
          .placement = "after every sum with the stream enlarged (DeepNorm)",
          .make = make<DeepNorm>};
}

}  // namespace fathom::topology
