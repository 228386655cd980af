#include "launcher/train/run_data.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/hash.h"
#include "core/data/batch_plan.h"
#include "core/data/prepared_directory.h"
#include "launcher/run_tokenizer.h"

namespace fathom::launcher {

namespace {

// A run that did not learn its tokenizer has it in its directory, wherever it came from.
bool keeps_tokenizer(const Config& config, const std::optional<Config>& before) {
  return before && !before->data.tokenizer_model.empty() &&
         (config.data.tokenizer_model.empty() ||
          config.data.tokenizer_model == before->data.tokenizer_model);
}

// Rank 0's.
std::string given_tokenizer(const Config& config, const std::optional<Config>& before,
                            const checkpoint::Checkpoint* resumed,
                            const checkpoint::Checkpoint* donor) {
  if (keeps_tokenizer(config, before)) return tokenizer_of(*resumed);
  std::string theirs = donor != nullptr ? tokenizer_of(*donor) : "";
  const std::string& path = config.data.tokenizer_model;
  if (path.empty()) return theirs;
  std::string named = read_file("data", path);
  require(theirs.empty() || named == theirs, "--init-from: data.tokenizer_model ", path, " is ",
          xxh3_128(named), ", but the weights of ", donor != nullptr ? donor->path().string() : "",
          " were trained with ", xxh3_128(theirs),
          "; leave data.tokenizer_model out, their tokenizer comes with them");
  return named;
}

// All that are read to prepare. DataError for one that is read once more.
std::vector<std::filesystem::path> passing_texts(const Config& config) {
  const bool decoder_only = config.model.kind == model::ModelKind::kDecoder;
  std::vector<std::filesystem::path> all;
  for (const std::string& prefix : {config.data.train, config.data.valid, config.data.test})
    for (std::filesystem::path& path : data::passing_texts(config.data, prefix, decoder_only))
      all.push_back(std::move(path));
  if (config.train.best_metric != BestMetric::kBleu) return all;
  const auto of_valid = data::passing_texts(config.data, config.data.valid, decoder_only);
  if (!of_valid.empty())
    fail<DataError>("data.valid: ", of_valid.back().string(),
                    " is no file, and can be read only once; train.best_metric bleu reads it once "
                    "more: write the text to a file");
  return all;
}

}  // namespace

std::string settle_tokenizer(Config& config, const std::optional<Config>& before,
                             const checkpoint::Checkpoint* resumed,
                             const checkpoint::Checkpoint* donor, dist::Communicator& group) {
  std::string tokenizer;
  if (group.rank() == 0) tokenizer = given_tokenizer(config, before, resumed, donor);
  group.broadcast(tokenizer, 0);
  const bool is_the_runs = keeps_tokenizer(config, before) || config.data.tokenizer_model.empty();
  if (!tokenizer.empty() && is_the_runs)
    config.data.tokenizer_model =
        std::filesystem::absolute(std::filesystem::path(config.run.directory) / "tokenizer.model")
            .lexically_normal()
            .string();
  return tokenizer;
}

data::PreparedData prepare_data(const Config& config, const std::string& tokenizer,
                                dist::Communicator& group, const monitoring::Log& log) {
  const bool decoder_only = config.model.kind == model::ModelKind::kDecoder;
  const std::vector<std::filesystem::path> passing = passing_texts(config);
  for (const std::filesystem::path& path : passing)
    log.info(join("reading ", path.string(), ", which is no file: this waits for who writes it"));
  std::optional<data::PreparedData> data;
  const auto prepare = [&] {
    data.emplace(data::prepare(config.data, decoder_only, {}, tokenizer));
  };
  if (group.rank() == 0) prepare();
  std::string directory = data ? data->directory.string() : "",
              fingerprint = data ? data->fingerprint : "", why_not;
  group.broadcast(directory, 0);
  group.broadcast(fingerprint, 0);
  if (!data) data = data::open_prepared(directory, fingerprint, why_not);
  if (!data) {
    if (!passing.empty())
      fail<DataError>("data: ", passing.front().string(),
                      " is no file, and rank 0 has read it; this rank does not see what came of "
                      "it, ",
                      directory,
                      ": set data.directory to a place that every machine sees, or write the text "
                      "to a file");
    prepare();
  }
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
                  " references are empty; no translation of theirs is right for BLEU"));
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
