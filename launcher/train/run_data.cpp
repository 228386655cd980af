#include "launcher/train/run_data.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/base/error.h"
#include "core/data/batch_plan.h"

namespace fathom::launcher {

data::PreparedData prepare_data(const Config& config, dist::Communicator& group,
                                const monitoring::Log& log) {
  const bool decoder_only = config.model.kind == model::ModelKind::kDecoder;
  std::optional<data::PreparedData> data;
  if (group.rank() == 0) data.emplace(data::prepare(config.data, decoder_only));
  group.barrier();
  if (!data) data.emplace(data::prepare(config.data, decoder_only));
  for (const std::string& note : data->notes) log.info(note);
  return std::move(*data);
}

std::vector<std::string> validation_references(const Config& config, const monitoring::Log& log) {
  if (config.train.best_metric != BestMetric::kBleu || config.data.valid.empty()) return {};
  std::vector<std::string> lines =
      data::evaluation_text(config.data, config.data.valid, false).target;
  const auto empty = std::count(lines.begin(), lines.end(), "");
  require<DataError>(size_t(empty) < lines.size(), "data.valid: all ", lines.size(),
                     " references are empty, but train.best_metric is bleu");
  if (empty > 0)
    log.warn(join("data.valid: ", empty, " of ", lines.size(),
                  " references are empty; they do not count for BLEU"));
  return lines;
}

data::BatchPosition position_in(const Config& config, const Config& before,
                                const data::PreparedData& data, const data::BatchPosition& next) {
  const data::PairLengths lengths = data.train.lengths();
  const auto batches = [&](const Config& c) {
    return data::EpochPlan(lengths, c.batch, c.run.seed, next.epoch).batch_count();
  };
  const bool is_same =
      config.batch.tokens == before.batch.tokens && config.run.seed == before.run.seed;
  return is_same ? next : data::at_same_share(next, batches(before), batches(config));
}

}  // namespace fathom::launcher
