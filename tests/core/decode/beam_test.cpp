// The contract of sessions and strategies allows a search with several hypotheses a sentence: a
// plain beam search over a session finds what one without caches and what an exhaustive search
// find.
#include <algorithm>

#include <gtest/gtest.h>

#include "tests/core/decode/decode_support.h"

namespace fathom::decode {
namespace {

struct Hypothesis {
  Tokens tokens;
  double score = 0;  // sum of log-probabilities, EOS included
  int32_t row = 0;   // of the session, where there is one
};

void keep_best(std::vector<Hypothesis>& all, size_t count) {
  std::stable_sort(all.begin(), all.end(),
                   [](const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; });
  if (all.size() > count) all.resize(count);
}

// One sentence's search. At a step the k best continuations stay; those that end, or are at the
// limit, are finished.
struct Beam {
  std::vector<Hypothesis> live = {Hypothesis{}}, finished;

  void advance(std::vector<Hypothesis> continuations, size_t k, size_t limit) {
    keep_best(continuations, k);
    live.clear();
    for (Hypothesis& h : continuations) {
      if (h.tokens.back() == data::kEndOfSentence) {
        h.tokens.pop_back();
        finished.push_back(std::move(h));
      } else if (h.tokens.size() == limit) {
        finished.push_back(std::move(h));
      } else {
        live.push_back(std::move(h));
      }
    }
  }
  [[nodiscard]] Hypothesis best() {
    keep_best(finished, 1);
    return finished[0];
  }
};

Hypothesis continued(const Hypothesis& from, int32_t token, double log_probability) {
  Hypothesis h = from;
  h.tokens.push_back(token);
  h.score += log_probability;
  return h;
}

class BeamSearch final : public Strategy {
 public:
  explicit BeamSearch(int64_t k) : k_(k) {}
  int64_t rows_per_sentence() const override { return k_; }

  std::vector<Tokens> search(DecodingSession& session,
                             std::span<const int32_t> limits) const override {
    std::vector<Beam> beams(limits.size());
    for (size_t s = 0; s < beams.size(); ++s) beams[s].live[0].row = int32_t(s);
    Tokens last(limits.size(), data::kEndOfSentence);
    while (session.rows() > 0) {
      const Tensor logits = session.step(last);
      const Tensor tokens = session.tape().keep(logits.rows(), k_, DType::kI32);
      const Tensor values = session.tape().keep(logits.rows(), k_, session.tape().wide());
      session.tape().context().run(&kernels::Kernels::top_k,
                                   {.logits = logits, .values = values, .indices = tokens});
      std::vector<int32_t> rows;
      last.clear();
      for (size_t s = 0; s < beams.size(); ++s) {
        std::vector<Hypothesis> continuations;
        for (const Hypothesis& h : beams[s].live)
          for (int64_t i = 0; i < k_; ++i)
            continuations.push_back(
                continued(h, tokens.row<int32_t>(h.row)[i], kernels::load(values, h.row, i)));
        beams[s].advance(std::move(continuations), size_t(k_), size_t(limits[s]));
        for (Hypothesis& h : beams[s].live) {
          repeats += std::count(rows.begin(), rows.end(), h.row);
          rows.push_back(h.row);
          last.push_back(h.tokens.back());
          h.row = int32_t(rows.size()) - 1;
        }
      }
      session.reorder(rows);
    }
    std::vector<Tokens> targets;
    for (Beam& beam : beams) targets.push_back(beam.best().tokens);
    return targets;
  }

  mutable int64_t repeats = 0;  // rows that went on more than once

 private:
  int64_t k_;
};

// The same without a session: the model reads every prefix from its start.
Tokens uncached_beam_search(model::Transformer& model, Device& device, const Tokens& source,
                            size_t k, size_t limit) {
  Beam beam;
  while (!beam.live.empty()) {
    std::vector<Hypothesis> continuations;
    for (const Hypothesis& h : beam.live) {
      const std::vector<double> next =
          log_softmax(uncached_logits(model, device, source, h.tokens));
      for (size_t v = 0; v < next.size(); ++v)
        continuations.push_back(continued(h, int32_t(v), next[v]));
    }
    beam.advance(std::move(continuations), k, limit);
  }
  return beam.best().tokens;
}

// The best of all sentences of at most `limit` tokens.
Hypothesis best_of_all(model::Transformer& model, Device& device, const Tokens& source,
                       const Hypothesis& prefix, size_t limit) {
  if (prefix.tokens.size() == limit) return prefix;
  const std::vector<double> next =
      log_softmax(uncached_logits(model, device, source, prefix.tokens));
  Hypothesis best = prefix;
  best.score += next[data::kEndOfSentence];
  for (size_t v = 0; v < next.size(); ++v) {
    if (int32_t(v) == data::kEndOfSentence) continue;
    Hypothesis h =
        best_of_all(model, device, source, continued(prefix, int32_t(v), next[v]), limit);
    if (h.score > best.score) best = std::move(h);
  }
  return best;
}

TEST(BeamSearch, OverASessionFindsWhatItFindsWithoutCaches) {
  const auto device = tensor::make_reference_device();
  const auto model = random_model(DType::kF64, 9);
  const std::vector<Tokens> sources = random_sources(6, 9, 5, 4);
  const LengthLimit limit{.a = 1, .b = 3};
  for (const int64_t k : {2, 3, 4}) {
    const BeamSearch strategy(k);

    const std::vector<Tokens> targets = translate(model->transformer, *device, strategy, sources,
                                                  {.batch_tokens = 1000, .limit = limit});

    for (size_t i = 0; i < sources.size(); ++i)
      EXPECT_EQ(targets[i], uncached_beam_search(model->transformer, *device, sources[i], size_t(k),
                                                 size_t(limit.of(sources[i]))))
          << i << ", k " << k;
    EXPECT_GT(strategy.repeats, 10) << "without repeated rows this is greedy decoding";
  }
}

// At most three hypotheses of one token do not end, so a beam of four loses none of two tokens.
TEST(BeamSearch, WideEnoughFindsTheBestOfAllSentences) {
  const auto device = tensor::make_reference_device();
  const auto model = random_model(DType::kF64, 4);
  const std::vector<Tokens> sources = random_sources(8, 4, 5, 4);
  const TranslateOptions narrow{.batch_tokens = 1000, .limit = {.a = 0, .b = 2}};

  const std::vector<Tokens> targets =
      translate(model->transformer, *device, BeamSearch(4), sources, narrow);

  EXPECT_NE(targets, translate(model->transformer, *device, BeamSearch(1), sources, narrow))
      << "greedy decoding found them too";
  for (size_t i = 0; i < sources.size(); ++i)
    EXPECT_EQ(targets[i],
              best_of_all(model->transformer, *device, sources[i], Hypothesis{}, 2).tokens)
        << i;
}

}  // namespace
}  // namespace fathom::decode
