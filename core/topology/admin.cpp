// Admin (Liu et al. 2020, arXiv 2004.08249): Post-LN with a learned weight for each feature of the
// stream, initialised so that every block so far keeps its share of the sum.
//
//   x <- LN(w * x + f(x));   y = x
//
// w is profiled before the first step: w_1 = 1, w_(k+1) = sqrt(Var(w_k x) + Var f_k), one number
// for all features of a block; encoder and decoder each have their own chain.
#include <cmath>

#include "core/topology/registry.h"

namespace fathom::topology {
namespace {

class Admin final : public NormedTopology {
 public:
  Admin(const ModelShape& shape, StackKind stack)
      : NormedTopology(shape, stack, FinalNorm::kNone) {}

  void declare_block(ParameterStore& store, const BlockContext& block) override {
    declare_weights(store, block, "stream_weight", std::vector<double>(size_t(width()), 1.0));
    NormedTopology::declare_block(store, block);
  }
  Var in(const Streams& s, const BlockContext&) const override { return s[0]; }
  Streams out(const Streams& s, const Var& o, const BlockContext& block) const override {
    return {norm(block).of_sum(ops::scale_columns(s[0], weights(block)), o)};
  }
  Var final(const Streams& s) const override { return s[0]; }

  bool wants_profile() const override { return true; }
  Values profiled(const BlockContext& block, const Measured& m) override {
    const double w = block.block == 1 ? 1 : next_;
    next_ = std::sqrt(w * w * m.stream_variance + m.output_variance);
    return {{&weights(block), w}};
  }

 private:
  double next_ = 1;  // weight, while profiling
};

}  // namespace

TopologyInfo admin() {
  return {.name = "admin",
          .placement = "after every sum with the stream weighted by profiling (Admin)",
          .make = make<Admin>};
}

}  // namespace fathom::topology
