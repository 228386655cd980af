// The rows of the table: name, field, allowed values, whether it may change on a resume, meaning.
// Defaults are those of the fields.
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/error.h"
#include "core/topology/registry.h"
#include "launcher/config/section.h"
#include "monitoring/endpoint.h"

namespace fathom::launcher {
namespace {

using enum MayChange;

constexpr int64_t kMostLayers = 10'000;
constexpr int64_t kMostSteps = 1'000'000'000;

Grammar<std::string> name() {
  return text("1 to 64 of A-Z a-z 0-9 . _ -, not starting with a point", [](const std::string& t) {
    constexpr auto* kAllowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    const bool is_foreign = t.find_first_not_of(kAllowed) != t.npos;
    return !t.empty() && t.size() <= 64 && t[0] != '.' && !is_foreign;
  });
}

Grammar<std::string> path_or_none() {
  return text("a path, or '' for none", [](const std::string&) { return true; });
}

void add_run_keys(std::vector<Key>& keys) {
  const Section run{"run", &Config::run, keys};
  run("name", &RunConfig::name, name(), kFreely,
      "Name of the run in logs, metrics and reports. "
      "Without it, the config file's name without its ending.");
  run("directory", &RunConfig::directory,
      text("a path", [](const std::string& path) { return !path.empty(); }), kFreely,
      "Where the run keeps its files. Without it, runs/NAME.");
  run("seed", &RunConfig::seed, integer(0, std::numeric_limits<int64_t>::max()), kOnRequest,
      "Seed of initial weights, order of data and dropout.");
}

// `E12D12`, or `D24` of a decoder.
bool set_depth(Config& config, const YamlNode& node) {
  const size_t d = node.text.find('D');
  if (!node.is_scalar() || d == node.text.npos || (d > 0 && node.text[0] != 'E')) return false;
  const auto layers = [&](size_t begin, size_t end) -> std::optional<int64_t> {
    const YamlNode digits = {.kind = YamlNode::Kind::kScalar,
                             .text = node.text.substr(begin, end - begin)};
    if (digits.text.find_first_not_of("0123456789") != digits.text.npos) return std::nullopt;
    return integer(1, kMostLayers).parse(digits);
  };
  const auto encoder = d > 0 ? layers(1, d) : 0, decoder = layers(d + 1, node.text.size());
  if (!encoder || !decoder) return false;
  config.model.encoder_layers = int(*encoder);
  config.model.decoder_layers = int(*decoder);
  return true;
}

// Another spelling of two keys, so it is never shown.
Key depth_key() {
  return {.name = "model.depth",
          .type = "text",
          .allowed = join("E12D12 or, for a decoder, D24, with 1 to ", kMostLayers, " layers each"),
          .meaning = "Both layer counts in one word, instead of the two keys below.",
          .may_change = kNever,
          .set = set_depth,
          .get = [](const Config&) { return std::optional<std::string>(); }};
}

void add_topology_keys(const Section<model::ModelConfig>& model) {
  std::vector<std::pair<std::string, std::string>> names;
  std::vector<std::string> placements;
  for (const topology::TopologyInfo& topology : topology::topologies()) {
    names.emplace_back(topology.name, topology.name);
    placements.push_back(topology.placement);
  }
  model("topology", &model::ModelConfig::topology, names, kNever,
        fmt::format("Where the layer norms sit: {}.", fmt::join(placements, ", ")));
  for (Key& key : topology_option_keys()) model.keys.push_back(std::move(key));
}

void add_model_keys(std::vector<Key>& keys) {
  using enum model::Activation;
  using enum model::InitRule;
  using model::ModelKind, model::ShareEmbeddings;
  using M = model::ModelConfig;
  const Section model{"model", &Config::model, keys};
  const Interval probability = {.low = 0, .high = 1, .open_high = true};

  model("kind", &M::kind,
        {{"encoder-decoder", ModelKind::kEncoderDecoder}, {"decoder", ModelKind::kDecoder}}, kNever,
        "A translation model, or a language model of the target side.");
  keys.push_back(depth_key());
  model("encoder_layers", &M::encoder_layers, integer(0, kMostLayers), kNever,
        "Encoder layers; 0 in a decoder.");
  model("decoder_layers", &M::decoder_layers, integer(1, kMostLayers), kNever, "Decoder layers.");
  add_topology_keys(model);
  model("width", &M::width, integer(4, 65536), kNever,
        "Features of a token. Even, and a multiple of model.heads.");
  model("ffn_width", &M::ffn_width, integer(1, 1'048'576), kNever,
        "Features inside the feed-forward block.");
  model("heads", &M::heads, integer(1, 4096), kNever, "Attention heads; divides model.width.");
  model("activation", &M::activation, {{"relu", kRelu}, {"gelu", kGelu}}, kOnRequest,
        "Activation of the feed-forward block.");
  model("dropout", &M::dropout, number(probability), kOnRequest,
        "Dropout on embeddings and on the output of every block. "
        "Rates are rounded to multiples of 1/65536.");
  model("attention_dropout", &M::attention_dropout, number(probability), kOnRequest,
        "Dropout on attention weights.");
  model("activation_dropout", &M::activation_dropout, number(probability), kOnRequest,
        "Dropout after the activation of the feed-forward block.");
  model("share_embeddings", &M::share_embeddings,
        {{"all", ShareEmbeddings::kAll},
         {"decoder", ShareEmbeddings::kDecoder},
         {"none", ShareEmbeddings::kNone}},
        kNever,
        "Which of source, target and output embedding are one table: "
        "all three, the decoder's two, or none.");
  model("init", &M::init, {{"fairseq", kFairseq}, {"xavier", kXavier}}, kOnRequest,
        "Rule of the initial weights.");
  model("recompute_activations", &M::recompute_activations, boolean(), kFreely,
        "Compute the activations of a layer again in the backward pass instead of keeping them: "
        "the same bits in less memory and more time.");
}

void add_data_keys(std::vector<Key>& keys) {
  using enum data::OnBadLine;
  using enum data::TokenizerKind;
  using D = data::DataConfig;
  const Section data{"data", &Config::data, keys};

  data("train", &D::train, path_or_none(), kNever,
       "Training set: a prefix P for the files P.SOURCE and P.TARGET, "
       "each plain or with .gz added. The same text may lie elsewhere when a run is resumed.")
      .is_required = true;
  data("valid", &D::valid, path_or_none(), kOnRequest,
       "Validation set, in the same form. The same text may lie elsewhere when a run is resumed.")
      .is_required = true;
  data("test", &D::test, path_or_none(), kFreely, "Test set, in the same form.");
  data("source", &D::source, name(), kNever, "File name ending of the source side; its language.");
  data("target", &D::target, name(), kNever,
       "File name ending of the target side; a decoder reads this side only.");
  data("vocabulary_size", &D::vocabulary_size, integer(8, 1'000'000), kNever,
       "Entries of the tokenizer that is learned.");
  data("tokenizer", &D::tokenizer, {{"bpe", kBpe}, {"unigram", kUnigram}}, kNever,
       "Kind of SentencePiece model that is learned.");
  data("character_coverage", &D::character_coverage, number({.low = 0, .high = 1}), kNever,
       "Share of the text whose characters get an entry each, the most frequent first; the others "
       "are unknown. 0: 1, or 0.9995 where the text has so many different characters that they "
       "would take more than a quarter of the vocabulary.");
  data("tokenizer_model", &D::tokenizer_model, path_or_none(), kFreely,
       "A SentencePiece model to use instead of one that is learned; vocabulary_size and tokenizer "
       "then say nothing. It is copied into the run and never changed. A run keeps its tokenizer: "
       "when it is resumed the file may lie elsewhere, but must be the same.");
  data("max_length", &D::max_length, integer(1, 1'000'000), kNever,
       "Most tokens of a side, without EOS. A longer training pair is dropped and counted.");
  data("on_bad_line", &D::on_bad_line, {{"fail", kFail}, {"skip", kSkip}}, kNever,
       "What to do with a training line that is no valid text: "
       "stop and name it, or drop and count it.");
  data("directory", &D::directory,
       text("a path, or '' for the default", [](const std::string&) { return true; }), kFreely,
       "Where tokenizer and binary data set are built and shared by runs. "
       "Empty: .fathom/data/FINGERPRINT.");
}

void add_batch_keys(std::vector<Key>& keys) {
  using B = data::BatchConfig;
  const Section batch{"batch", &Config::batch, keys};

  batch("tokens", &B::tokens, integer(1, 1'000'000'000), kOnRequest,
        "Tokens of one optimizer step, all ranks together; "
        "a pair costs the longer of its sides, with EOS.");
  batch("micro_tokens", &B::micro_tokens, integer(1, 100'000'000), kFreely,
        "Most tokens in one forward and backward pass; sets the memory that is needed.");
  batch("shards", &B::shards, integer(0, 65536), kOnRequest,
        "Virtual shards that a batch is cut into; at least the number of ranks. "
        "0: the larger of 8 and the power of two that is at least tokens / micro_tokens.");
}

void add_optimizer_keys(std::vector<Key>& keys) {
  using enum optim::EpsilonMode;
  using enum optim::Schedule;
  using O = optim::OptimizerConfig;
  const Section optimizer{"optimizer", &Config::optimizer, keys};
  const Interval below_one = {.low = 0, .high = 1, .open_high = true};

  optimizer("learning_rate", &O::learning_rate, number({.low = 0, .high = 100, .open_low = true}),
            kOnRequest, "Peak learning rate, the lr of the schedule.");
  optimizer("betas", &O::betas, two_numbers(below_one), kOnRequest,
            "Adam's decay of the first and the second moment.");
  optimizer("epsilon", &O::epsilon, number({.low = 0, .high = 1, .open_low = true}), kOnRequest,
            "Adam's epsilon.");
  optimizer("epsilon_mode", &O::epsilon_mode, {{"fairseq", kFairseq}, {"corrected", kCorrected}},
            kOnRequest,
            "Where epsilon stands. fairseq: lr sqrt(1-b2^t)/(1-b1^t) m/(sqrt(v)+eps). "
            "corrected: lr m'/(sqrt(v')+eps) with both moments corrected.");
  optimizer("weight_decay", &O::weight_decay, number({.low = 0, .high = 1000}), kOnRequest,
            "Decoupled weight decay, of every parameter: matrices, embeddings, biases and norms.");
  optimizer("clip_norm", &O::clip_norm, number({.low = 0}), kOnRequest,
            "Largest gradient norm; a longer gradient is scaled down to it. 0: off.");
  optimizer("label_smoothing", &O::label_smoothing, number(below_one), kOnRequest,
            "Label smoothing, as fairseq 0.12 defines it.");
  optimizer("schedule", &O::schedule,
            {{"inverse-sqrt", kInverseSqrt},
             {"inverse-sqrt-w1", kInverseSqrtW1},
             {"hold-inverse-sqrt", kHoldInverseSqrt},
             {"tfixup", kTFixup},
             {"constant-step", kConstantStep},
             {"cosine", kCosine},
             {"linear", kLinear}},
            kOnRequest,
            "Learning rate of update t, with W = warmup_steps; skipped steps do not count. "
            "inverse-sqrt: linear to W, then lr sqrt(W/t). inverse-sqrt-w1: lr / sqrt(t). "
            "hold-inverse-sqrt: lr until W, then lr sqrt(W/t). tfixup: lr sqrt(W/(W+t)). "
            "constant-step: lr, from W on lr/10. "
            "cosine, linear: linear to W, then down to 0 at update train.max_steps.");
  optimizer("warmup_steps", &O::warmup_steps, integer(0, kMostSteps), kOnRequest,
            "W of the schedule. 1 with inverse-sqrt-w1; 0 only with cosine and linear.");
  optimizer("warmup_start", &O::warmup_start, number({.low = 0}), kOnRequest,
            "Learning rate at step 0 of a linear warm-up; at most learning_rate.");
}

void add_train_keys(std::vector<Key>& keys) {
  using enum BestMetric;
  using enum DeviceChoice;
  using enum Precision;
  using T = TrainConfig;
  const Section train{"train", &Config::train, keys};

  train("max_steps", &T::max_steps, integer(1, kMostSteps), kFreely,
        "The run ends after this many optimizer steps in all, resumed ones included.");
  train("max_epochs", &T::max_epochs, integer(0, kMostSteps), kFreely,
        "The run ends after this many passes over the training set, "
        "if max_steps is not reached before. 0: no limit.");
  train("validate_every", &T::validate_every, integer(0, kMostSteps), kFreely,
        "Steps from one validation to the next. 0: at the end only.");
  train("patience", &T::patience, integer(0, kMostSteps), kFreely,
        "The run ends after this many validations without a better best_metric. 0: off.");
  train("best_metric", &T::best_metric, {{"loss", kLoss}, {"bleu", kBleu}}, kFreely,
        "What makes a validation the best one.");
  train("precision", &T::precision, {{"fp32", kFp32}, {"bf16", kBf16}, {"fp64", kFp64}}, kOnRequest,
        "Type of matrices and activations; bf16 keeps fp32 master weights. "
        "bf16 and fp64 on device reference only.");
  Key& device =
      train("device", &T::device,
            {{"auto", kAuto}, {"cpu", kCpu}, {"cuda", kCuda}, {"reference", kReference}}, kFreely,
            "What computes: the fast kernels of the CPU, a GPU, "
            "or the slow plain loops that are the specification.");
  device.not_available = {
      {"cuda", "this program has no GPU kernels yet; available: auto, cpu, reference"}};
  device.meant = {{"gpu", "cuda"}, {"GPU", "cuda"}, {"nvidia", "cuda"}, {"CPU", "cpu"}};
  train("threads", &T::threads, integer(0, 1024), kFreely,
        "Threads of a rank. 0: one for each core of its affinity mask, which it shares with the "
        "other ranks there, and no more than the CPU quota of its container.");
}

void add_dist_keys(std::vector<Key>& keys) {
  using enum Backend;
  using enum dist::Overlap;
  using enum dist::Reduction;
  using D = DistConfig;
  const Section dist{"dist", &Config::dist, keys};

  dist("backend", &D::backend, {{"auto", kAuto}, {"mpi", kMpi}, {"nccl", kNccl}}, kFreely,
       "What carries gradients between ranks.")
      .not_available = {
      {"nccl", "it needs device cuda, which this program does not have yet; available: auto, mpi"}};
  dist("reduction", &D::reduction, {{"tree", kTree}, {"fast", kFast}}, kOnRequest,
       "tree: one fixed order of sums, the same bits on any number of ranks. "
       "fast: plain all-reduce (or reduce-scatter), equal up to rounding.");
  dist("overlap", &D::overlap, {{"auto", std::nullopt}, {"on", kOn}, {"off", kOff}}, kFreely,
       "Exchange gradients while the backward pass goes on. auto: where a rank has a spare core.");
  dist("bucket_mb", &D::bucket_mb, number({.low = 0, .high = 1024, .open_low = true}), kFreely,
       "Size of a piece of the gradient, in MiB.");
  dist("shard_optimizer", &D::shard_optimizer, boolean(), kFreely,
       "Keep a slice of the optimizer's state on each rank instead of all of it. "
       "Under tree the result has the same bits either way.");
  dist("timeout_seconds", &D::timeout_seconds,
       number_or_auto({.low = 0, .high = 1e6, .open_low = true}), kFreely,
       "A rank that waits longer than this for its peers stops the run: longer than they need for "
       "a micro-batch, in validation and saving ten times as long, at most an hour, during set-up "
       "at most six. A lone rank waits for nobody. auto: 300, and after 20 steps ten times their "
       "median, at least 60; validation, saving and set-up as for 300.");
}

void add_checkpoint_keys(std::vector<Key>& keys) {
  using C = CheckpointConfig;
  const Section checkpoint{"checkpoint", &Config::checkpoint, keys};

  checkpoint("every_steps", &C::every_steps, integer(0, kMostSteps), kFreely,
             "Steps from one save to the next. 0: off. The last step is always saved, "
             "and with keep_best every validation that is the best so far.");
  checkpoint("every_minutes", &C::every_minutes, number({.low = 0, .high = 1e6}), kFreely,
             "Minutes from one save to the next. 0: off.");
  checkpoint("keep_last", &C::keep_last, integer(1, 1'000'000), kFreely,
             "Newest checkpoints that are kept.");
  checkpoint("keep_best", &C::keep_best, integer(0, 1'000'000), kFreely,
             "Best checkpoints that are kept, by train.best_metric. 0: none for that reason.");
  checkpoint("keep_every", &C::keep_every, integer(0, kMostSteps), kFreely,
             "Checkpoints whose step is a multiple of this are kept indefinitely; "
             "a multiple of every_steps. 0: off.");
}

void add_monitoring_keys(std::vector<Key>& keys) {
  using enum Detail;
  using M = MonitoringConfig;
  const Section monitoring{"monitoring", &Config::monitoring, keys};
  const auto address = text(monitoring::kListenForms, monitoring::is_listen);

  monitoring("listen", &M::listen, address, kFreely,
             "Where Prometheus finds the metrics. A taken port is replaced by a free one, "
             "which is printed and put in targets.json. Port 0: any free one.");
  monitoring("required", &M::required, boolean(), kFreely,
             "Stop when the metrics cannot be served at the address asked for.");
  monitoring("layer_statistics_every", &M::layer_statistics_every, integer(0, kMostSteps), kFreely,
             "Steps from one set of layer statistics to the next. 0: off.");
  monitoring("detail", &M::detail, {{"run", kRun}, {"block", kBlock}}, kFreely,
             "Served series: those of the whole run, or also those of every block of every layer.");
  monitoring("max_series", &M::max_series, integer(1, 1'000'000), kFreely,
             "Most series that are served; a run that would need more is refused at start.");
  monitoring("linger_seconds", &M::linger_seconds, number({.low = 0, .high = 3600}), kFreely,
             "Seconds for which a run that has completed or failed goes on serving its metrics, so "
             "that a scrape sees the end. A signal ends it; a run that a signal has stopped does "
             "not linger.");
}

void add_verdict_keys(std::vector<Key>& keys) {
  const Section verdict{"verdict", &Config::verdict, keys};
  using enum VerdictAction;
  verdict("after", &VerdictConfig::after, integer(0, kMostSteps), kFreely,
          "Step from which a run may be judged failed by plateau or blindness. "
          "0: the smaller of half of max_steps and the larger of 8000 and twice the warm-up "
          "(4000 if the schedule has none), but not before the warm-up is over, nor before 1000.");
  verdict("action", &VerdictConfig::action, {{"stop", kStop}, {"report", kReport}, {"off", kOff}},
          kFreely,
          "What follows from plateau, blindness or relapse. stop: the run ends as failed. report: "
          "it is logged and the run goes on. off: they are not looked for. "
          "Numbers that are not finite always end a run.");
}

}  // namespace

const std::vector<Key>& schema() {
  static const std::vector<Key> keys = [] {
    std::vector<Key> all;
    for (const auto add : {add_run_keys, add_model_keys, add_data_keys, add_batch_keys,
                           add_optimizer_keys, add_train_keys, add_dist_keys, add_checkpoint_keys,
                           add_monitoring_keys, add_verdict_keys})
      add(all);
    return all;
  }();
  return keys;
}

}  // namespace fathom::launcher
