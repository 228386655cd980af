// ResiDual (Xie et al. 2023, arXiv 2304.14802): x has Post-LN's representation; the dual stream d,
// which feeds no block, has Pre-LN's undamped gradient path. They are added once, at the end.
//
//   o = f(x);  d <- d + s o;  x <- LN(x + o);   y = alpha x + LN(d)
//
// Options: alpha (1), scale s (1), dual_start: embedding (d starts at s times the embedding, as in
// the authors' code) or zero. LN(d) has eps 1e-7, so that a small s does not change the function.
#include <optional>

#include "core/topology/registry.h"

namespace fathom::topology {
namespace {

class ResiDual final : public Topology {
 public:
  ResiDual(double alpha, double scale, bool starts_at_embedding)
      : alpha_(alpha), scale_(scale), starts_at_embedding_(starts_at_embedding) {}

  void declare_block(ParameterStore& store, const BlockContext& block, int64_t width) override {
    norms_.emplace_back(store, name_of(block) + ".norm", width);
  }
  void declare_final(ParameterStore& store, StackKind stack, int64_t width) override {
    dual_norm_.emplace(store, join(to_string(stack), ".final_norm"), width, 1e-7);
  }
  State start(const Var& embedding) const override {
    return {.x = embedding, .dual = starts_at_embedding_ ? scaled(embedding) : Var{}};
  }
  Var in(const State& s, const BlockContext&) const override { return s.x; }
  State out(const State& s, const Var& o, const BlockContext& block) const override {
    return {.x = norms_[size_t(block.block - 1)].of_sum(s.x, o),
            .dual = s.dual.is_set() ? ops::add_scaled(s.dual, o, 1, scale_) : scaled(o)};
  }
  Var final(const State& s) const override {
    return ops::add_scaled((*dual_norm_)(s.dual), s.x, 1, alpha_);
  }

 private:
  // In the wide type: the sum over all blocks is not rounded as the blocks themselves are.
  Var scaled(const Var& v) const {
    const Var wide = ops::widened(v);
    return scale_ == 1 ? wide : ops::add_scaled(wide, wide, scale_, 0);
  }

  double alpha_, scale_;
  bool starts_at_embedding_;
  std::vector<Norm> norms_;
  std::optional<Norm> dual_norm_;
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
          .make = [](const TopologyOptions& options) -> std::unique_ptr<Topology> {
            return std::make_unique<ResiDual>(options.number("alpha"), options.number("scale"),
                                              options.choice("dual_start") == "embedding");
          }};
}

}  // namespace fathom::topology
