// Pre-LN (Xiong et al. 2020): the sum itself is never normalised, so the output must be.
//
//   x <- x + f(LN(x));   y = LN(x)
#include <optional>

#include "core/topology/registry.h"

namespace fathom::topology {
namespace {

class PreLN final : public Topology {
 public:
  void declare_block(ParameterStore& store, const BlockContext& block, int64_t width) override {
    norms_.emplace_back(store, name_of(block) + ".norm", width);
  }
  void declare_final(ParameterStore& store, StackKind stack, int64_t width) override {
    final_.emplace(store, join(to_string(stack), ".final_norm"), width);
  }
  Var in(const State& s, const BlockContext& block) const override {
    return norms_[size_t(block.block - 1)](s.x);
  }
  State out(const State& s, const Var& o, const BlockContext&) const override {
    return {.x = ops::add_scaled(s.x, o)};
  }
  Var final(const State& s) const override { return (*final_)(s.x); }

 private:
  std::vector<Norm> norms_;
  std::optional<Norm> final_;
};

}  // namespace

TopologyInfo pre_ln() {
  return {.name = "pre-ln",
          .placement = "before every block (Pre-LN)",
          .make = [](const TopologyOptions&) -> std::unique_ptr<Topology> {
            return std::make_unique<PreLN>();
          }};
}

}  // namespace fathom::topology
