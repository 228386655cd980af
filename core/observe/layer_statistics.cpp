#include "core/observe/layer_statistics.h"

#include <cmath>

namespace fathom::observe {
namespace {

// Means over the sampled tokens.
double stream_variance(const BlockSums& s) { return s.variance / s.tokens; }
double branch_variance(const BlockSums& s) { return s.branch / s.tokens; }

constexpr LayerStatistic kTable[] = {
    {.name = "gradient_norm",
     .help = "Euclidean norm of the gradient of the block's parameters, before clipping",
     .source = "Xiong et al., arXiv 2002.04745, section 3",
     .unit = "none",
     .sampled = Sampled::kParameters,
     .formula = "sqrt(sum g^2)",
     .note = "g is the gradient of the step's mean loss per target token, summed over all shards, "
             "before clipping",
     .value = [](const LayerSums& s) { return std::sqrt(s.parameters.gradient_square); }},
    {.name = "weight_norm",
     .help = "Euclidean norm of the block's parameters",
     .source = "",
     .unit = "none",
     .sampled = Sampled::kParameters,
     .formula = "sqrt(sum w^2)",
     .note = "after the update",
     .value = [](const LayerSums& s) { return std::sqrt(s.parameters.weight_square); }},
    {.name = "update_ratio",
     .help = "Norm of the last update over the norm of the block's parameters, 1e-3 is usual",
     .source = "",
     .unit = "ratio",
     .sampled = Sampled::kParameters,
     .formula = "sqrt(sum dw^2) / `weight_norm`",
     .note = "dw is the step's change by Adam, learning rate and weight decay included. About 1e-3 "
             "is usual",
     .value =
         [](const LayerSums& s) {
           return std::sqrt(s.parameters.update_square / s.parameters.weight_square);
         }},
    {.name = "zero_ratio",
     .help = "Share of exact zeros in the gradient of the block's parameters, 0 to 1",
     .source = "",
     .unit = "ratio",
     .sampled = Sampled::kParameters,
     .formula = "share of entries of g that are exactly 0",
     .note = "large where hidden units are dead or a gradient underflows",
     .value = [](const LayerSums& s) { return s.parameters.zeros / s.parameters.entries; }},
    {.name = "hidden_rms",
     .help = "Root mean square of the hidden state after the block",
     .source = "",
     .unit = "none",
     .sampled = Sampled::kActivations,
     .formula = "sqrt < mean x'^2 >",
     .note = "closed form: Pre-LN sqrt(v0 + k f); Post-LN, ResiDual 1 while the gains are 1",
     .value =
         [](const LayerSums& s) { return std::sqrt(s.activations.square / s.activations.tokens); }},
    {.name = "omega",
     .help = "Root mean square change of the normalised hidden state over the block; towards 0 the "
             "representation collapses",
     .source = "ResiDual, arXiv 2304.14802, theorem 3.3",
     .unit = "none",
     .sampled = Sampled::kActivations,
     .formula = "sqrt < mean (n(x') - n(x))^2 >",
     .note = "closed form: F1, F3",
     .value =
         [](const LayerSums& s) { return std::sqrt(s.activations.change / s.activations.tokens); }},
    {.name = "omega_predicted",
     .help = "What fathom_layer_omega would be if the block's output were independent of the "
             "stream",
     .source = "after ResiDual, arXiv 2304.14802, theorem 3.3",
     .unit = "none",
     .sampled = Sampled::kActivations,
     .formula = "sqrt(2 - 2 sqrt(V/(V+f))), V = < Var x >, f = < Var o >",
     .note = "what `omega` would be if o were independent of x",
     .value =
         [](const LayerSums& s) {
           const double V = stream_variance(s.activations), f = branch_variance(s.activations);
           return std::sqrt(2 - 2 * std::sqrt(V / (V + f)));
         }},
    {.name = "branch_share",
     .help = "Standard deviation of the branch over that of the sum it enters, 0 to 1",
     .source = "Liu et al., arXiv 2004.08249, section 4",
     .unit = "ratio",
     .sampled = Sampled::kActivations,
     .formula = "sqrt(f/(V+f)), same V and f",
     .note = "closed form: F4",
     .value =
         [](const LayerSums& s) {
           const double V = stream_variance(s.activations), f = branch_variance(s.activations);
           return std::sqrt(f / (V + f));
         }},
    {.name = "cosine",
     .help = "Mean cosine between the hidden states before and after the block, 1 means no change",
     .source = "Gromov et al., arXiv 2403.17887",
     .unit = "none",
     .sampled = Sampled::kActivations,
     .formula = "< x . x' / (norm x norm x') >",
     .note = "closed form: sqrt(V/(V+f)); where the streams are normalised 1 - omega^2/2",
     .value = [](const LayerSums& s) { return s.activations.cosine / s.activations.tokens; }},
};

}  // namespace

std::span<const LayerStatistic> layer_statistics() { return kTable; }

std::vector<LayerRecord> layer_records(const ParameterStore& store,
                                       const std::vector<topology::BlockContext>& blocks,
                                       std::span<const BlockSums> activations,
                                       std::span<const ParameterSums> parameters) {
  const std::vector<ParameterSums> by_block = sums_by_block(store, blocks, parameters);
  std::vector<LayerRecord> out;
  for (size_t b = 0; b < blocks.size(); ++b) {
    LayerRecord& record = out.emplace_back(LayerRecord{.block = blocks[b], .values = {}});
    for (const LayerStatistic& row : kTable)
      record.values.push_back(
          row.value({.activations = activations[b], .parameters = by_block[b]}));
  }
  return out;
}

}  // namespace fathom::observe
