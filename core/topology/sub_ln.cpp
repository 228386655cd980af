// Sub-LN (Wang et al. 2022, *Magneto*, arXiv 2210.06423): Pre-LN, and a norm before the last
// projection of every sublayer; initial fc1, fc2, v and out times g.
//
// One stack of L layers: g = sqrt(ln 2L). Encoder of N and decoder of M layers: encoder
// g = sqrt(ln(3M) ln(2N) / 3), decoder g = sqrt(ln 3M), cross-attention 1.
#include <cmath>

#include "core/topology/registry.h"

namespace fathom::topology {
namespace {

class SubLN final : public NormedTopology {
 public:
  SubLN(const ModelShape& shape, StackKind stack)
      : NormedTopology(shape, stack, FinalNorm::kPresent) {}

  void declare_inner(ParameterStore& store, const BlockContext& block, InnerPoint,
                     int64_t inner_width) override {
    inner_.emplace_back(store, name_of(block) + ".inner_norm", inner_width);
  }
  double initial_gain(const BlockContext& block, Part part) const override {
    if (part == Part::kQuery || part == Part::kKey || block.kind == BlockKind::kCrossAttention)
      return 1;
    const double N = shape().encoder_layers, M = shape().decoder_layers;
    if (N == 0) return std::sqrt(std::log(2 * M));
    if (stack() == StackKind::kDecoder) return std::sqrt(std::log(3 * M));
    return std::sqrt(std::log(3 * M) * std::log(2 * N) / 3);
  }
  Var in(const Streams& s, const BlockContext& block) const override { return norm(block)(s[0]); }
  Var inner(const Var& x, const BlockContext& block, InnerPoint) const override {
    return inner_[block.index()](x);
  }
  Streams out(const Streams& s, const Var& o, const BlockContext&) const override {
    return {ops::add_scaled(s[0], o)};
  }
  Var final(const Streams& s) const override { return final_norm()(s[0]); }

 private:
  std::vector<Norm> inner_;  // by block
};

}  // namespace

TopologyInfo sub_ln() {
  return {.name = "sub-ln",
          .placement = "before every block and inside it (Sub-LN)",
          .make = make<SubLN>};
}

}  // namespace fathom::topology
