// The sections `data`, `batch` and `optimizer` of the table of keys.
#include <algorithm>

#include "launcher/config/schema_builders.h"

namespace fathom::launcher {

namespace {

std::string two_numbers(double first, double second) {
  return "[" + format_number(first) + ", " + format_number(second) + "]";
}

Key betas_key() {
  const Interval range = {.low = 0, .high = 1, .open_high = true};
  return {.name = "optimizer.betas",
          .type = "list",
          .allowed = "two numbers" + range.text(),
          .meaning = "Adam's decay of the first and the second moment.",
          .set =
              [=](Config& config, const YamlNode& node) {
                if (node.kind != YamlNode::Kind::kList || node.items.size() != 2) return false;
                const auto beta = [&](size_t i) {
                  const YamlNode& item = node.items[i];
                  return is_plain(item) ? parse_number(item.text) : std::nullopt;
                };
                if (!beta(0) || !beta(1) || !range.contains(*beta(0)) || !range.contains(*beta(1)))
                  return false;
                config.optimizer.beta1 = *beta(0);
                config.optimizer.beta2 = *beta(1);
                return true;
              },
          .get = [](const Config& config) -> std::optional<std::string> {
            return two_numbers(config.optimizer.beta1, config.optimizer.beta2);
          }};
}

void add_data_keys(std::vector<Key>& keys) {
  using data::OnBadLine, data::TokenizerKind;
  const TextRule prefix = {"a path, or '' for none", accepts_any};
  const TextRule ending = {"1 to 64 of A-Z a-z 0-9 . _ -, not starting with a point", accepts_name};

  keys.push_back(text_key(
      "data.train", [](auto& c) -> auto& { return c.data.train; }, prefix,
      "Training set: a prefix P for the files P.SOURCE and P.TARGET, each plain or with .gz "
      "added."));
  keys.push_back(text_key(
      "data.valid", [](auto& c) -> auto& { return c.data.valid; }, prefix,
      "Validation set, in the same form."));
  keys.push_back(text_key(
      "data.test", [](auto& c) -> auto& { return c.data.test; }, prefix,
      "Test set, in the same form."));
  keys.push_back(text_key(
      "data.source", [](auto& c) -> auto& { return c.data.source; }, ending,
      "File name ending of the source side; its language."));
  keys.push_back(text_key(
      "data.target", [](auto& c) -> auto& { return c.data.target; }, ending,
      "File name ending of the target side; a decoder reads this side only."));
  keys.push_back(integer_key(
      "data.vocabulary_size", [](auto& c) -> auto& { return c.data.vocabulary_size; }, 8, 1'000'000,
      "Entries of the tokenizer that is learned."));
  keys.push_back(choice_key(
      "data.tokenizer", [](auto& c) -> auto& { return c.data.tokenizer; },
      {{"bpe", TokenizerKind::kBpe}, {"unigram", TokenizerKind::kUnigram}},
      "Kind of SentencePiece model."));
  keys.push_back(integer_key(
      "data.max_length", [](auto& c) -> auto& { return c.data.max_length; }, 1, 1'000'000,
      "Most tokens of a side, without EOS. A longer training pair is dropped and counted."));
  keys.push_back(choice_key(
      "data.on_bad_line", [](auto& c) -> auto& { return c.data.on_bad_line; },
      {{"fail", OnBadLine::kFail}, {"skip", OnBadLine::kSkip}},
      "What to do with a training line that is no valid text: stop and name it, or drop and count "
      "it."));
  keys.push_back(text_key(
      "data.directory", [](auto& c) -> auto& { return c.data.directory; },
      {"a path, or '' for the default", accepts_any},
      "Where tokenizer and binary data set are built and shared by runs. Empty: "
      ".fathom/data/FINGERPRINT."));
}

void add_batch_keys(std::vector<Key>& keys) {
  keys.push_back(integer_key(
      "batch.tokens", [](auto& c) -> auto& { return c.batch.tokens; }, 1, 1'000'000'000,
      "Tokens of one optimizer step, all ranks together; a pair costs the longer of its sides, "
      "with EOS."));
  keys.push_back(integer_key(
      "batch.micro_tokens", [](auto& c) -> auto& { return c.batch.micro_tokens; }, 1, 100'000'000,
      "Most tokens in one forward and backward pass; sets the memory that is needed."));
  keys.push_back(integer_key(
      "batch.shards", [](auto& c) -> auto& { return c.batch.shards; }, 0, 65536,
      "Virtual shards that a batch is cut into; at least the number of ranks. 0: the larger of 8 "
      "and the power of two that is at least tokens / micro_tokens."));
}

void add_schedule_keys(std::vector<Key>& keys) {
  using optim::Schedule;
  keys.push_back(choice_key(
      "optimizer.schedule", [](auto& c) -> auto& { return c.optimizer.schedule; },
      {{"inverse-sqrt", Schedule::kInverseSqrt},
       {"inverse-sqrt-w1", Schedule::kInverseSqrtW1},
       {"hold-inverse-sqrt", Schedule::kHoldInverseSqrt},
       {"tfixup", Schedule::kTFixup},
       {"constant-step", Schedule::kConstantStep},
       {"cosine", Schedule::kCosine},
       {"linear", Schedule::kLinear}},
      "Learning rate at step t, with W = warmup_steps. inverse-sqrt: linear to W, then lr "
      "sqrt(W/t). inverse-sqrt-w1: lr / sqrt(t). hold-inverse-sqrt: lr until W, then lr sqrt(W/t). "
      "tfixup: lr sqrt(W/(W+t)). constant-step: lr, from W on lr/10. cosine, linear: linear to W, "
      "then down to 0 at train.max_steps."));
  keys.push_back(integer_key(
      "optimizer.warmup_steps", [](auto& c) -> auto& { return c.optimizer.warmup_steps; }, 0,
      kMostSteps, "W of the schedule. 1 with inverse-sqrt-w1; 0 only with cosine and linear."));
  keys.push_back(number_key(
      "optimizer.warmup_start", [](auto& c) -> auto& { return c.optimizer.warmup_start; },
      {.low = 0}, "Learning rate at step 0 of a linear warm-up; at most learning_rate."));
}

void add_optimizer_keys(std::vector<Key>& keys) {
  using optim::EpsilonMode;
  keys.push_back(number_key(
      "optimizer.learning_rate", [](auto& c) -> auto& { return c.optimizer.learning_rate; },
      {.low = 0, .high = 100, .open_low = true}, "Peak learning rate, the lr of the schedule."));
  keys.push_back(betas_key());
  keys.push_back(number_key(
      "optimizer.epsilon", [](auto& c) -> auto& { return c.optimizer.epsilon; },
      {.low = 0, .high = 1, .open_low = true}, "Adam's epsilon."));
  keys.push_back(choice_key(
      "optimizer.epsilon_mode", [](auto& c) -> auto& { return c.optimizer.epsilon_mode; },
      {{"fairseq", EpsilonMode::kFairseq}, {"corrected", EpsilonMode::kCorrected}},
      "Where epsilon stands. fairseq: lr sqrt(1-b2^t)/(1-b1^t) m/(sqrt(v)+eps). corrected: lr "
      "m'/(sqrt(v')+eps) with both moments corrected."));
  keys.push_back(number_key(
      "optimizer.weight_decay", [](auto& c) -> auto& { return c.optimizer.weight_decay; },
      {.low = 0, .high = 1000}, "Decoupled weight decay."));
  keys.push_back(number_key(
      "optimizer.clip_norm", [](auto& c) -> auto& { return c.optimizer.clip_norm; }, {.low = 0},
      "Largest gradient norm; a longer gradient is scaled down to it. 0: off."));
  keys.push_back(number_key(
      "optimizer.label_smoothing", [](auto& c) -> auto& { return c.optimizer.label_smoothing; },
      {.low = 0, .high = 1, .open_high = true}, "Label smoothing, as fairseq 0.12 defines it."));
  add_schedule_keys(keys);
}

}  // namespace

void add_learning_keys(std::vector<Key>& keys) {
  add_data_keys(keys);
  add_batch_keys(keys);
  add_optimizer_keys(keys);
}

}  // namespace fathom::launcher
