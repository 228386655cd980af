// BranchNorm (Liu et al. 2023, arXiv 2305.02790): Post-LN whose blocks are faded in over the first
// updates, so that it starts as the identity and ends as Post-LN.
//
//   x <- LN(x + g f(x)),  g = min(1, t / T) at update t;   y = x
#include <algorithm>

#include "core/topology/registry.h"

namespace fathom::topology {
namespace {

class BranchNorm final : public NormedTopology {
 public:
  BranchNorm(const TopologyOptions& options, const ModelShape& shape, StackKind stack)
      : NormedTopology(shape, stack, FinalNorm::kNone), updates_(options.number("updates")) {}

  Var in(const Streams& s, const BlockContext&) const override { return s[0]; }
  Streams out(const Streams& s, const Var& o, const BlockContext& block) const override {
    const double g = std::min(1.0, double(update_of(o)) / updates_);
    return {norm(block)(ops::add_scaled(s[0], o, 1, g))};
  }
  Var final(const Streams& s) const override { return s[0]; }

 private:
  double updates_;
};

}  // namespace

TopologyInfo branchnorm() {
  return {.name = "branchnorm",
          .placement = "after every sum with the blocks let in over the first updates (BranchNorm)",
          .options = {{.name = "updates",
                       .default_value = "4000",
                       .meaning = "T, updates until the blocks count in full",
                       .above = 0}},
          .make = make<BranchNorm>};
}

}  // namespace fathom::topology
