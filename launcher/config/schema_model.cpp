// The sections `run` and `model` of the table of keys.
#include <algorithm>
#include <map>

#include "core/base/error.h"
#include "core/topology/registry.h"
#include "launcher/config/schema_builders.h"

namespace fathom::launcher {

namespace {

constexpr int64_t kMostLayers = 10'000;

// Digits from `at`, as a number of layers; none if there is no digit or the number is out of range.
std::optional<int> parse_layers(std::string_view digits) {
  const auto value = parse_integer(digits);
  if (!value || digits[0] == '+' || *value < 1 || *value > kMostLayers) return std::nullopt;
  return int(*value);
}

// `E12D12` or `D24`: another spelling of the two layer counts, so it is never shown.
bool set_depth(Config& config, const YamlNode& node) {
  if (node.kind != YamlNode::Kind::kScalar) return false;
  const std::string_view text = node.text;
  const size_t d = text.find('D');
  if (d == text.npos) return false;
  const auto decoder = parse_layers(text.substr(d + 1));
  const auto encoder = d == 0           ? std::optional(0)
                       : text[0] == 'E' ? parse_layers(text.substr(1, d - 1))
                                        : std::nullopt;
  if (!decoder || !encoder) return false;
  config.model.encoder_layers = *encoder;
  config.model.decoder_layers = *decoder;
  return true;
}

// An option lives as text in a map, since a topology defines its own; a number is normalised here,
// so that `2` and `2.0` are the same config. Two topologies may share a name: what a topology does
// not accept of the other's values is refused once both are known, in resolve.cpp.
struct OwnedOption {
  std::string topology;
  topology::TopologyOption option;
};

std::optional<std::string> option_text(const std::vector<OwnedOption>& owned,
                                       const YamlNode& node) {
  if (node.kind != YamlNode::Kind::kScalar) return std::nullopt;
  for (const auto& [topology, option] : owned) {
    if (!option.accepts(node.text)) continue;
    if (!option.choices.empty()) return node.text;
    const auto value = is_plain(node) ? parse_number(node.text) : std::nullopt;
    if (value) return format_number(*value);
  }
  return std::nullopt;
}

Key option_key(const std::string& name, const std::vector<OwnedOption>& owned) {
  Key key = {.name = "model.topology_options." + name,
             .type = owned[0].option.choices.empty() ? "number" : "choice",
             .allowed = owned[0].option.allowed(),
             .meaning = "",
             .choices = owned[0].option.choices};
  for (const auto& [topology, option] : owned) {
    // The table's column of defaults is that of an empty config.
    const bool is_shown = topology == Config{}.model.topology;
    key.meaning += join(key.meaning.empty() ? "" : " ", topology, ": ", option.meaning,
                        is_shown ? "" : " (default " + option.default_value + ")", ".");
    if (option.allowed() != owned[0].option.allowed())
      key.allowed += join("; with ", topology, " ", option.allowed());
  }
  key.set = [=](Config& config, const YamlNode& node) {
    const auto text = option_text(owned, node);
    if (text) config.model.topology_options[name] = *text;
    return text.has_value();
  };
  key.get = [=](const Config& config) -> std::optional<std::string> {
    const auto own = std::find_if(owned.begin(), owned.end(), [&](const OwnedOption& o) {
      return o.topology == config.model.topology;
    });
    if (own == owned.end()) return std::nullopt;
    const auto given = config.model.topology_options.find(name);
    return given == config.model.topology_options.end() ? own->option.default_value : given->second;
  };
  return key;
}

void add_topology_keys(std::vector<Key>& keys) {
  std::vector<std::pair<std::string, std::string>> names;
  std::string placements;
  std::vector<std::string> order;
  std::map<std::string, std::vector<OwnedOption>> options;
  for (const topology::TopologyInfo& topology : topology::topologies()) {
    names.emplace_back(topology.name, topology.name);
    placements += (placements.empty() ? "" : ", ") + topology.placement;
    for (const topology::TopologyOption& option : topology.options) {
      if (!options.contains(option.name)) order.push_back(option.name);
      options[option.name].push_back({topology.name, option});
    }
  }
  keys.push_back(choice_key(
      "model.topology", [](auto& c) -> auto& { return c.model.topology; }, names,
      "Where the layer norms sit: " + placements + "."));
  for (const std::string& name : order) keys.push_back(option_key(name, options[name]));
}

void add_rate_keys(std::vector<Key>& keys) {
  const Interval probability = {.low = 0, .high = 1, .open_high = true};
  keys.push_back(number_key(
      "model.dropout", [](auto& c) -> auto& { return c.model.dropout; }, probability,
      "Dropout on embeddings and on the output of every block."));
  keys.push_back(number_key(
      "model.attention_dropout", [](auto& c) -> auto& { return c.model.attention_dropout; },
      probability, "Dropout on attention weights."));
  keys.push_back(number_key(
      "model.activation_dropout", [](auto& c) -> auto& { return c.model.activation_dropout; },
      probability, "Dropout after the activation of the feed-forward block."));
}

}  // namespace

void add_model_keys(std::vector<Key>& keys) {
  using model::Activation, model::InitRule, model::ModelKind, model::ShareEmbeddings;

  const TextRule name_rule = {"1 to 64 of A-Z a-z 0-9 . _ -, not starting with a point",
                              accepts_name};
  keys.push_back(text_key(
      "run.name", [](auto& c) -> auto& { return c.run.name; }, name_rule,
      "Name of the run in logs, metrics and reports. Without it, the config file's name without "
      "its ending."));
  keys.push_back(text_key(
      "run.directory", [](auto& c) -> auto& { return c.run.directory; }, {"a path", accepts_path},
      "Where the run keeps its files. Without it, runs/NAME."));
  keys.push_back(integer_key(
      "run.seed", [](auto& c) -> auto& { return c.run.seed; }, 0,
      std::numeric_limits<int64_t>::max(), "Seed of initial weights, order of data and dropout."));

  keys.push_back(choice_key(
      "model.kind", [](auto& c) -> auto& { return c.model.kind; },
      {{"encoder-decoder", ModelKind::kEncoderDecoder}, {"decoder", ModelKind::kDecoder}},
      "A translation model, or a language model of the target side."));
  keys.push_back(
      {.name = "model.depth",
       .type = "text",
       .allowed = join("E12D12 or, for a decoder, D24, with 1 to ", kMostLayers, " layers each"),
       .meaning = "Both layer counts in one word, instead of the two keys below.",
       .set = set_depth,
       .get = [](const Config&) { return std::optional<std::string>(); }});
  keys.push_back(integer_key(
      "model.encoder_layers", [](auto& c) -> auto& { return c.model.encoder_layers; }, 0,
      kMostLayers, "Encoder layers; 0 in a decoder."));
  keys.push_back(integer_key(
      "model.decoder_layers", [](auto& c) -> auto& { return c.model.decoder_layers; }, 1,
      kMostLayers, "Decoder layers."));
  add_topology_keys(keys);
  keys.push_back(integer_key(
      "model.width", [](auto& c) -> auto& { return c.model.width; }, 4, 65536,
      "Features of a token. Even, and a multiple of model.heads."));
  keys.push_back(integer_key(
      "model.ffn_width", [](auto& c) -> auto& { return c.model.ffn_width; }, 1, 1'048'576,
      "Features inside the feed-forward block."));
  keys.push_back(integer_key(
      "model.heads", [](auto& c) -> auto& { return c.model.heads; }, 1, 4096,
      "Attention heads; divides model.width."));
  keys.push_back(choice_key(
      "model.activation", [](auto& c) -> auto& { return c.model.activation; },
      {{"relu", Activation::kRelu}, {"gelu", Activation::kGelu}},
      "Activation of the feed-forward block."));
  add_rate_keys(keys);
  keys.push_back(choice_key(
      "model.share_embeddings", [](auto& c) -> auto& { return c.model.share_embeddings; },
      {{"all", ShareEmbeddings::kAll},
       {"decoder", ShareEmbeddings::kDecoder},
       {"none", ShareEmbeddings::kNone}},
      "Which of source, target and output embedding are one table: all three, the decoder's two, "
      "or none."));
  keys.push_back(choice_key(
      "model.init", [](auto& c) -> auto& { return c.model.init; },
      {{"fairseq", InitRule::kFairseq}, {"xavier", InitRule::kXavier}},
      "Rule of the initial weights."));
  keys.push_back(boolean_key(
      "model.recompute_activations", [](auto& c) -> auto& { return c.model.recompute_activations; },
      "Compute the activations of a layer again in the backward pass instead of keeping them: the "
      "same bits in less memory and more time."));
}

}  // namespace fathom::launcher
