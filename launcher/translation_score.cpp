#include "launcher/translation_score.h"

#include <nlohmann/json.hpp>

#include "core/decode/greedy.h"
#include "core/decode/translate.h"
#include "core/score/bleu.h"
#include "core/score/chrf.h"

namespace fathom::launcher {
namespace {

using decode::Tokens;

// Of all sources, on every rank. A rank leaves empty what is not in its share.
std::vector<Tokens> translate_split(model::Transformer& model, Device& device,
                                    const data::Dataset& data, int64_t batch_tokens,
                                    dist::Communicator& group,
                                    const std::function<void()>& before_batch) {
  std::vector<Tokens> sources;
  for (int64_t i = 0; i < data.size(); ++i) {
    const std::span<const int32_t> source = data.source(i);
    sources.emplace_back(source.begin(), source.end());
  }
  std::vector<Tokens> targets = decode::translate(
      model, device, decode::Greedy(), sources, {.batch_tokens = batch_tokens},
      {.first = group.rank(), .every = group.size(), .before_batch = before_batch});
  for (const std::string& part : group.all_gather(nlohmann::json(targets).dump())) {
    const auto theirs = nlohmann::json::parse(part).get<std::vector<Tokens>>();
    for (size_t i = 0; i < targets.size(); ++i)
      if (!theirs[i].empty()) targets[i] = theirs[i];
  }
  return targets;
}

}  // namespace

SplitScore score_split(model::Transformer& model, Device& device, const data::Dataset& data,
                       const std::vector<std::string>& references, const data::Tokenizer& tokenizer,
                       int64_t batch_tokens, dist::Communicator& group,
                       const std::function<void()>& before_batch) {
  SplitScore out;
  for (const Tokens& target :
       translate_split(model, device, data, batch_tokens, group, before_batch))
    out.translations.push_back(tokenizer.decode(target));
  const std::vector<std::vector<std::string>> streams = {
      {references.begin(), references.begin() + std::ptrdiff_t(out.translations.size())}};
  const score::BleuScore score = score::corpus_bleu(out.translations, streams);
  out.bleu = score.score;
  out.line = score::to_line(score);
  out.signature = score::signature(score);
  out.chrf = score::corpus_chrf(out.translations, streams).score;
  out.chrf_plus_plus = score::corpus_chrf(out.translations, streams, score::kChrf2PlusPlus).score;
  return out;
}

}  // namespace fathom::launcher
