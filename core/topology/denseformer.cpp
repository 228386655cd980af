// DenseFormer (Pagliardini et al. 2024, arXiv 2402.02622): Pre-LN, and after every layer a learned
// average of the outputs of all layers so far, the embedding included. It starts as Pre-LN.
//
//   y_l = layer_l(x_(l-1));   x_l = sum_(j <= l) a_lj y_j
//   y_0 = x_0 = embedding;    initial a_l = (0 ... 0 1)
//
// Streams: x, then y_0, y_1, ...: a stack of L layers holds L + 2 of them at its end.
#include "core/topology/registry.h"

namespace fathom::topology {
namespace {

class DenseFormer final : public NormedTopology {
 public:
  DenseFormer(const ModelShape& shape, StackKind stack)
      : NormedTopology(shape, stack, FinalNorm::kPresent) {}

  void declare_block(ParameterStore& store, const BlockContext& block) override {
    NormedTopology::declare_block(store, block);
    if (!block.is_last_in_layer()) return;
    std::vector<double> initial(size_t(block.layer + 1), 0.0);
    initial.back() = 1;
    declare_weights(store, block, "depth_weights", std::move(initial));
  }
  Streams start(const Var& embedding) const override { return {embedding, embedding}; }
  Var in(const Streams& s, const BlockContext& block) const override { return norm(block)(s[0]); }
  Streams out(const Streams& s, const Var& o, const BlockContext& block) const override {
    Streams next = s;
    next[0] = ops::add_scaled(s[0], o);
    if (!block.is_last_in_layer()) return next;
    next.push_back(next[0]);
    next[0] = ops::weighted_sum(std::span(next).subspan(1), weights(block), 0);
    return next;
  }
  Var final(const Streams& s) const override { return final_norm()(s[0]); }
};

}  // namespace

TopologyInfo denseformer() {
  return {.name = "denseformer",
          .placement = "before every block with averages over depth (DenseFormer)",
          .make = make<DenseFormer>};
}

}  // namespace fathom::topology
