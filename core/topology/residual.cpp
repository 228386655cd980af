// ResiDual (Xie et al. 2023, arXiv 2304.14802): x has Post-LN's representation; the dual stream d,
// which feeds no block, has Pre-LN's undamped gradient path. They are added once, at the end.
//
//   o = f(x);  d <- d + s o;  x <- LN(x + o);   y = alpha x + LN(d)
//
// Options: alpha (1), scale s (1), dual_start: embedding (d starts at s times the embedding, as in
// the authors' code) or zero. LN(d) has eps 1e-7, so that a small s does not change the function.
#include "core/topology/registry.h"

namespace fathom::topology {
namespace {

class ResiDual final : public NormedTopology {
 public:
  ResiDual(const TopologyOptions& options, const ModelShape& shape, StackKind stack)
      : NormedTopology(shape, stack, FinalNorm::kPresent, 1e-7),
        alpha_(options.number("alpha")),
        scale_(options.number("scale")),
        starts_at_embedding_(options.choice("dual_start") == "embedding") {}

  Streams start(const Var& embedding) const override {
    return {embedding, starts_at_embedding_ ? scaled(embedding) : Var{}};
  }
  Var in(const Streams& s, const BlockContext&) const override { return s[0]; }
  Streams out(const Streams& s, const Var& o, const BlockContext& block) const override {
    return {norm(block).of_sum(s[0], o),
            s[1].is_set() ? ops::add_scaled(s[1], o, 1, scale_) : scaled(o)};
  }
  Var final(const Streams& s) const override {
    return ops::add_scaled(final_norm()(s[1]), s[0], 1, alpha_);
  }

 private:
  // In the wide type: the sum over all blocks is not rounded as the blocks themselves are.
  Var scaled(const Var& v) const {
    const Var wide = ops::widened(v);
    return scale_ == 1 ? wide : ops::add_scaled(wide, wide, scale_, 0);
  }

  double alpha_, scale_;
  bool starts_at_embedding_;
};

}  // namespace

TopologyInfo residual() {
  return {.name = "residual",
          .placement = "in two streams (ResiDual)",
          .options = {{.name = "alpha",
                       .default_value = "1",
                       .meaning = "factor on the Post-LN stream in the output, alpha x + LN(d)"},
                      {.name = "scale",
                       .default_value = "1",
                       .meaning = "factor on every block output added to the dual stream",
                       .above = 0},
                      {.name = "dual_start",
                       .default_value = "embedding",
                       .meaning = "what the dual stream starts with",
                       .choices = {"embedding", "zero"}}},
          .make = make<ResiDual>};
}

}  // namespace fathom::topology
