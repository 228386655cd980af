// Post-LN (Vaswani et al. 2017): normalised after every sum, so nothing is left to do at the end.
//
//   x <- LN(x + f(x));   y = x
#include "core/topology/registry.h"

namespace fathom::topology {
namespace {

class PostLN final : public NormedTopology {
 public:
  PostLN(const ModelShape& shape, StackKind stack)
      : NormedTopology(shape, stack, FinalNorm::kNone) {}

  Var in(const Streams& s, const BlockContext&) const override { return s[0]; }
  Streams out(const Streams& s, const Var& o, const BlockContext& block) const override {
    return {norm(block).of_sum(s[0], o)};
  }
  Var final(const Streams& s) const override { return s[0]; }
};

}  // namespace

TopologyInfo post_ln() {
  return {.name = "post-ln", .placement = "after every sum (Post-LN)", .make = make<PostLN>};
}

}  // namespace fathom::topology
