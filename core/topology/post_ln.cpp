// Post-LN (Vaswani et al. 2017): normalised after every sum, so nothing is left to do at the end.
//
//   x <- LN(x + f(x));   y = x
#include "core/topology/registry.h"

namespace fathom::topology {
namespace {

class PostLN final : public Topology {
 public:
  void declare_block(ParameterStore& store, const BlockContext& block, int64_t width) override {
    norms_.emplace_back(store, name_of(block) + ".norm", width);
  }
  Var in(const State& s, const BlockContext&) const override { return s.x; }
  State out(const State& s, const Var& o, const BlockContext& block) const override {
    return {.x = norms_[size_t(block.block - 1)].of_sum(s.x, o)};
  }
  Var final(const State& s) const override { return s.x; }

 private:
  std::vector<Norm> norms_;
};

}  // namespace

TopologyInfo post_ln() {
  return {.name = "post-ln",
          .placement = "after every sum (Post-LN)",
          .make = [](const TopologyOptions&) -> std::unique_ptr<Topology> {
            return std::make_unique<PostLN>();
          }};
}

}  // namespace fathom::topology
