// The layer statistics, one row each, computed for every block from a step's sums. layers.jsonl,
// the endpoint, `fathom probe` and docs/metrics.md follow from this table, so a statistic that can
// be computed from the sums is one row more.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "core/observe/layer_probe.h"
#include "core/observe/parameter_sums.h"

namespace fathom::observe {

// All sums of a step over one block.
struct LayerSums {
  BlockSums activations;
  ParameterSums parameters;  // all of the block together
};

enum class Sampled { kParameters, kActivations };

struct LayerStatistic {
  std::string_view name;                   // "omega": in layers.jsonl, served as fathom_layer_omega
  std::string_view help;                   // what it is, in one sentence without its full stop
  std::string_view source;                 // paper and section; empty where the formula needs none
  std::string_view unit;                   // one of kUnits in monitoring/catalogue.h
  Sampled sampled;                         // where its sums come from
  std::string_view formula;                // in the symbols of docs/metrics.md
  std::string_view note;                   // for docs/metrics.md
  double (*value)(const LayerSums& sums);  // of activations: NaN when no token was sampled
};

[[nodiscard]] std::span<const LayerStatistic> layer_statistics();

// The statistics of one block.
struct LayerRecord {
  topology::BlockContext block;
  std::vector<double> values;  // by row of the table
};

// By block. `parameters` are by parameter, in the order of the store.
[[nodiscard]] std::vector<LayerRecord> layer_records(
    const ParameterStore& store, const std::vector<topology::BlockContext>& blocks,
    std::span<const BlockSums> activations, std::span<const ParameterSums> parameters);

}  // namespace fathom::observe
