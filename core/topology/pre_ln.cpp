// Pre-LN (Xiong et al. 2020): the sum itself is never normalised, so the output must be.
//
//   x <- x + f(LN(x));   y = LN(x)
#include "core/topology/registry.h"

namespace fathom::topology {
namespace {

class PreLN final : public NormedTopology {
 public:
  PreLN(const ModelShape& shape, StackKind stack)
      : NormedTopology(shape, stack, FinalNorm::kPresent) {}

  Var in(const Streams& s, const BlockContext& block) const override { return norm(block)(s[0]); }
  Streams out(const Streams& s, const Var& o, const BlockContext&) const override {
    return {ops::add_scaled(s[0], o)};
  }
  Var final(const Streams& s) const override { return final_norm()(s[0]); }
};

}  // namespace

TopologyInfo pre_ln() {
  return {.name = "pre-ln", .placement = "before every block (Pre-LN)", .make = make<PreLN>};
}

}  // namespace fathom::topology
