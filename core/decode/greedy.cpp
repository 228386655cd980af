#include "core/decode/greedy.h"

#include "core/data/tokenizer.h"

namespace fathom::decode {

std::vector<Tokens> Greedy::search(DecodingSession& session,
                                   std::span<const int32_t> limits) const {
  std::vector<Tokens> targets(limits.size());
  Tape& tape = session.tape();
  Tokens last(limits.size(), data::kEndOfSentence);
  while (session.rows() > 0) {
    const Tensor logits = session.step(last);                      // (R, V)
    const Tensor best = tape.keep(logits.rows(), 1, DType::kI32);  // (R, 1)
    tape.context().run(&kernels::Kernels::top_k, {.logits = logits, .values = {}, .indices = best});
    Tokens chosen(last.size());
    tape.context().download(std::span(chosen), best);

    std::vector<int32_t> unfinished;
    last.clear();
    for (size_t row = 0; row < chosen.size(); ++row) {
      if (chosen[row] == data::kEndOfSentence) continue;
      const size_t sentence = session.sentence(row);
      targets[sentence].push_back(chosen[row]);
      if (int64_t(targets[sentence].size()) == limits[sentence]) continue;
      unfinished.push_back(int32_t(row));
      last.push_back(chosen[row]);
    }
    session.reorder(unfinished);
  }
  return targets;
}

}  // namespace fathom::decode
