#include "launcher/train/recall_validation.h"

#include <array>
#include <span>

#include "checkpoint/validation_file.h"
#include "core/base/error.h"
#include "launcher/train/validator.h"

namespace fathom::launcher {
namespace {

// Rank 0's.
std::optional<ValidationRecord> read_record(const checkpoint::Checkpoint& source,
                                            const Config& config, const data::PreparedData& data,
                                            const monitoring::Log& log) {
  try {
    const auto result = checkpoint::read_validation(source.path(), source.manifest());
    if (!result || result->data != data.valid->hash()) return std::nullopt;
    ValidationRecord record = record_of(*result, source.manifest().step);
    const bool has_scores = record.bleu.has_value();
    if (has_scores != (config.train.best_metric == BestMetric::kBleu)) return std::nullopt;
    return record;
  } catch (const CheckpointError& error) {
    log.warn(error.what());
    return std::nullopt;
  }
}

}  // namespace

std::optional<ValidationRecord> recall_validation(
    const checkpoint::Checkpoint* source, const Config& config, const data::PreparedData& data,
    const TrainState& state, dist::Communicator& group, const monitoring::Log& log) {
  if (state.validation_due == 0) return std::nullopt;
  std::optional<ValidationRecord> record;
  if (source != nullptr) record = read_record(*source, config, data, log);
  if (group.all_reduce_max(record.has_value()) == 0) return std::nullopt;
  std::array<double, 4> figures{};
  if (record)
    figures = {record->result.nll, record->result.source_gain, double(record->result.tokens),
               record->bleu.value_or(0)};
  group.broadcast(std::as_writable_bytes(std::span(figures)), 0);
  record = {
      .step = state.validation_due,
      .result = {.nll = figures[0], .source_gain = figures[1], .tokens = int64_t(figures[2])}};
  if (config.train.best_metric == BestMetric::kBleu) record->bleu = figures[3];
  return record;
}

}  // namespace fathom::launcher
