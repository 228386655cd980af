// Static hyper-connections (Zhu et al. 2024, arXiv 2409.19606): n streams h_1 ... h_n with learned
// connections. It starts as Pre-LN: block k reads stream k mod n, and every stream gets its output.
//
//   u = LN(sum_j a_j h_j);   h_i <- sum_j A_ji h_j + b_i f(u);   y = LN(sum_j h_j)
//   a = e_(k mod n), A = identity, b = 1;   initial out and fc2 times sqrt(n)
#include <cmath>

#include "core/topology/registry.h"

namespace fathom::topology {
namespace {

class HyperConnections final : public NormedTopology {
 public:
  HyperConnections(const TopologyOptions& options, const ModelShape& shape, StackKind stack)
      : NormedTopology(shape, stack, FinalNorm::kPresent), n_(int64_t(options.number("streams"))) {}

  void declare_block(ParameterStore& store, const BlockContext& block) override {
    std::vector<double> initial(size_t(n_), 0.0);
    initial[block.index() % size_t(n_)] = 1;
    for (int64_t i = 0; i < n_; ++i)  // stream i: its part of every stream, then of f(u)
      for (int64_t j = 0; j <= n_; ++j) initial.push_back(j == i || j == n_ ? 1 : 0);
    declare_weights(store, block, "connections", std::move(initial));
    NormedTopology::declare_block(store, block);
  }
  double initial_gain(const BlockContext&, Part part) const override {
    return part == Part::kAttentionOut || part == Part::kFc2 ? std::sqrt(double(n_)) : 1;
  }
  Streams start(const Var& e) const override { return Streams(size_t(n_), ops::widened(e)); }
  Var in(const Streams& s, const BlockContext& block) const override {
    return norm(block)(ops::weighted_sum(s, weights(block), 0));
  }
  Streams out(const Streams& s, const Var& o, const BlockContext& block) const override {
    Streams all = s, next;
    all.push_back(o);
    for (int64_t i = 0; i < n_; ++i)
      next.push_back(ops::weighted_sum(all, weights(block), n_ + i * (n_ + 1)));
    return next;
  }
  Var final(const Streams& s) const override { return final_norm()(ops::sum(s)); }

 private:
  int64_t n_;
};

}  // namespace

TopologyInfo hyper_connections() {
  return {.name = "hyper-connections",
          .placement = "before every block in several streams (static hyper-connections)",
          .options = {{.name = "streams",
                       .default_value = "2",
                       .meaning = "number of residual streams",
                       .choices = {"2", "3", "4", "8"}}},
          .make = make<HyperConnections>};
}

}  // namespace fathom::topology
