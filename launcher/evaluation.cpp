#include "launcher/evaluation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <nlohmann/json.hpp>

#include "core/data/batch_plan.h"
#include "core/score/bleu.h"
#include "core/score/chrf.h"

namespace fathom::launcher {
namespace {

double summed_nll(model::Transformer& model, Device& device, const data::PackedBatch& batch) {
  Tape tape(
      device, model.parameters().dtype(),
      {.recording = false, .batch_invariant = true, .training = false, .update = model.update()});
  const ops::TokenLosses losses =
      model.losses(tape, model::upload(tape, batch, model.config().vocabulary_size), 0, 1);
  const Tensor sums = tape.keep(1, 2, DType::kF64);
  tape.run(&kernels::Kernels::fill, {.y = sums, .value = 0});
  tape.run(&kernels::Kernels::sum_losses, {.first = losses.smooth,
                                           .second = losses.nll,
                                           .sums = sums,
                                           .begin = 0,
                                           .count = losses.nll.cols()});
  std::array<double, 2> values{};
  tape.context().download(std::span<double>(values), sums);
  return values[1];
}

// Every pair's successor in the plan, the last one's being the first: sentences of like length.
std::vector<std::vector<int64_t>> exchanged(const std::vector<std::vector<int64_t>>& plan) {
  std::vector<int64_t> order;
  for (const auto& batch : plan) order.insert(order.end(), batch.begin(), batch.end());
  std::rotate(order.begin(), order.begin() + 1, order.end());
  std::vector<std::vector<int64_t>> sources;
  size_t at = 0;
  for (const auto& batch : plan) {
    sources.emplace_back(order.begin() + std::ptrdiff_t(at),
                         order.begin() + std::ptrdiff_t(at + batch.size()));
    at += batch.size();
  }
  return sources;
}

}  // namespace

Validation validate(model::Transformer& model, Device& device, const data::Dataset& data,
                    int64_t micro_tokens, dist::Communicator& group) {
  const data::PairLengths lengths = data.lengths();
  const std::vector<std::vector<int64_t>> plan = data::evaluation_plan(lengths, micro_tokens);
  const bool measures_gain = !data.decoder_only() && data.size() > 1;
  const std::vector<std::vector<int64_t>> sources =
      measures_gain ? exchanged(plan) : std::vector<std::vector<int64_t>>{};

  // A slot per batch; only its rank writes it, so that the sum over ranks adds zeros to it.
  std::vector<double> sums(plan.size() * 2);
  for (size_t b = size_t(group.rank()); b < plan.size(); b += size_t(group.size())) {
    sums[2 * b] = summed_nll(model, device, data::pack(data, plan[b]));
    if (measures_gain)
      sums[2 * b + 1] = summed_nll(model, device, data::pack(data, plan[b], sources[b]));
  }
  group.all_reduce_sum(std::span<double>(sums));

  Validation out;
  for (const int32_t length : lengths.target) out.tokens += length;
  double right = 0, foreign = 0;
  for (size_t b = 0; b < plan.size(); ++b) {
    right += sums[2 * b];
    foreign += sums[2 * b + 1];
  }
  out.nll = right / double(out.tokens);
  out.source_gain = measures_gain ? foreign / double(out.tokens) - out.nll
                                  : std::numeric_limits<double>::quiet_NaN();
  return out;
}

std::vector<std::string> translate_dataset(model::Transformer& model, Device& device,
                                           const data::Dataset& data,
                                           const data::Tokenizer& tokenizer, int64_t batch_tokens,
                                           dist::Communicator& group) {
  const data::PairLengths lengths = data.lengths();
  std::vector<int64_t> order(size_t(data.size()));
  for (size_t i = 0; i < order.size(); ++i) order[i] = int64_t(i);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return lengths.source[size_t(a)] < lengths.source[size_t(b)];
  });
  nlohmann::json mine = nlohmann::json::array();
  size_t at = 0;
  for (int64_t batch = 0; at < order.size(); ++batch) {
    std::vector<int64_t> pairs;
    std::vector<std::vector<int32_t>> tokens;
    for (int64_t cost = 0; at < order.size(); ++at) {
      cost += lengths.source[size_t(order[at])];
      if (!pairs.empty() && cost > batch_tokens) break;
      pairs.push_back(order[at]);
      const std::span<const int32_t> source = data.source(order[at]);
      tokens.emplace_back(source.begin(), source.end());
    }
    if (batch % group.size() != group.rank()) continue;
    const std::vector<std::vector<int32_t>> out = decode::greedy_decode(model, device, tokens);
    for (size_t i = 0; i < pairs.size(); ++i) mine.push_back({pairs[i], tokenizer.decode(out[i])});
  }
  std::vector<std::string> translations(size_t(data.size()));
  for (const std::string& part :
       group.all_gather(mine.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)))
    for (const auto& entry : nlohmann::json::parse(part))
      translations[entry[0].get<size_t>()] = entry[1].get<std::string>();
  return translations;
}

SplitScore score_split(model::Transformer& model, Device& device, const data::Dataset& data,
                       const std::vector<std::string>& references, const data::Tokenizer& tokenizer,
                       int64_t batch_tokens, dist::Communicator& group) {
  SplitScore out;
  out.translations = translate_dataset(model, device, data, tokenizer, batch_tokens, group);
  std::vector<std::string> hypotheses;
  std::vector<std::vector<std::string>> streams(1);
  for (size_t i = 0; i < out.translations.size(); ++i) {
    if (references[i].empty()) {
      ++out.uncounted;
      continue;
    }
    hypotheses.push_back(out.translations[i]);
    streams[0].push_back(references[i]);
  }
  require<DataError>(!hypotheses.empty(), "score: all ", out.uncounted, " references are empty");
  const score::BleuScore score = score::corpus_bleu(hypotheses, streams);
  out.bleu = score.score;
  out.line = score::to_line(score);
  out.signature = score::signature(score);
  out.chrf = score::corpus_chrf(hypotheses, streams).score;
  return out;
}

data::Dataset first_pairs(const data::Dataset& data, int64_t count) {
  std::vector<data::TokenPair> pairs;
  for (int64_t i = 0; i < std::min(count, data.size()); ++i) {
    const auto source = data.source(i), target = data.target(i);
    pairs.push_back({{source.begin(), source.end()}, {target.begin(), target.end()}});
  }
  return data::Dataset::from_pairs(pairs, data.decoder_only());
}

}  // namespace fathom::launcher
