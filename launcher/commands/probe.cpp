#include "launcher/commands/probe.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "checkpoint/writer.h"
#include "core/data/batch_plan.h"
#include "core/data/prepare.h"
#include "core/observe/layer_statistics.h"
#include "core/observe/parameter_probe.h"
#include "dist/local_communicator.h"
#include "launcher/config/load.h"
#include "launcher/devices.h"
#include "launcher/model_source.h"
#include "launcher/provenance.h"
#include "launcher/train/gradient_step.h"
#include "launcher/train/profile_model.h"
#include "launcher/train/sharding.h"

namespace fathom::launcher {
namespace {

// By its name where there is no such file, so that the error speaks of what was meant.
bool is_config_file(const std::string& path) {
  return std::filesystem::is_regular_file(path) || path.ends_with(".yaml") ||
         path.ends_with(".yml");
}

// A fresh model by a config file.
LoadedModel new_model(const ProbeCommand& command) {
  LoadedModel out;
  out.config = load_config(command.source, command.overrides);
  check_complete(out.config, command.source);
  return out;
}

void build(LoadedModel& loaded, const data::PreparedData& data) {
  Config& config = loaded.config;
  config.model.vocabulary_size = data.tokenizer->size();
  loaded.device = make_device(config);
  loaded.model =
      std::make_unique<model::Transformer>(config.model, *loaded.device, compute_type(config));
  loaded.model->initialise(config.run.seed);
}

// What one step says of every block and of the whole.
struct Measured {
  double loss = 0, nll = 0, gradient_norm = 0;
  std::vector<observe::LayerRecord> layers;
};

Measured measure(const LoadedModel& loaded, const StepGradient& step, int64_t target_tokens) {
  Context& context = loaded.device->compute();
  const ParameterStore& store = loaded.model->parameters();
  const std::vector<topology::BlockContext> blocks = loaded.model->blocks();
  observe::ParameterProbe probe(store);
  const Tensor control = context.allocate(1, kernels::kControlValues, DType::kF64);
  const Tensor sums = context.allocate(1, probe.count(), DType::kF64);
  context.run(&kernels::Kernels::step_control, {.losses = step.losses,
                                                .squares = probe.squared_norms(step.gradient),
                                                .control = control,
                                                .tokens = double(target_tokens)});
  probe.measure(step.gradient, nullptr, 0, sums);
  std::array<double, kernels::kControlValues> numbers{};
  std::vector<double> values(size_t(sums.numel())), block_sums(size_t(step.blocks.numel()));
  context.download(std::span<double>(numbers), control);
  context.download(std::span(values), sums);
  context.download(std::span(block_sums), step.blocks);

  Measured out;
  out.loss = numbers[0];
  out.nll = numbers[1];
  out.gradient_norm = numbers[2];
  out.layers = observe::layer_records(
      store, blocks, observe::add_shards(block_sums, step.blocks.rows(), int64_t(blocks.size())),
      probe.read(values));
  return out;
}

// A column for each statistic, as wide as its name.
void print_table(const std::vector<observe::LayerRecord>& layers, std::ostream& out) {
  const auto width = [](const observe::LayerStatistic& row) {
    return std::max(row.name.size(), size_t(10));
  };
  out << fmt::format("{:<8} {:>5} {:<16}", "stack", "layer", "block");
  for (const observe::LayerStatistic& row : observe::layer_statistics())
    out << fmt::format(" {:>{}}", row.name, width(row));
  out << "\n";
  for (const auto& [block, values] : layers) {
    out << fmt::format("{:<8} {:>5} {:<16}", to_string(block.stack), block.layer,
                       to_string(block.kind));
    for (size_t i = 0; i < values.size(); ++i)
      out << fmt::format(" {:>{}.4g}", values[i], width(observe::layer_statistics()[i]));
    out << "\n";
  }
}

// Blocks as in layers.jsonl; what is not finite is null.
nlohmann::ordered_json json_of(const LoadedModel& loaded, const Measured& result) {
  const auto number = [](double v) {
    return std::isfinite(v) ? nlohmann::ordered_json(v) : nlohmann::ordered_json(nullptr);
  };
  nlohmann::ordered_json json = {{"topology", loaded.config.model.topology},
                                 {"step", loaded.step},
                                 {"loss", number(result.loss)},
                                 {"nll", number(result.nll)},
                                 {"gradient_norm", number(result.gradient_norm)},
                                 {"blocks", nlohmann::ordered_json::array()}};
  for (const auto& [block, values] : result.layers) {
    nlohmann::ordered_json fields = {{"stack", to_string(block.stack)},
                                     {"layer", block.layer},
                                     {"block", to_string(block.kind)}};
    for (size_t i = 0; i < values.size(); ++i)
      fields[std::string(observe::layer_statistics()[i].name)] = number(values[i]);
    json["blocks"].push_back(std::move(fields));
  }
  return json;
}

// By row of the table, each over the blocks, encoder first.
std::vector<std::vector<double>> columns_of(const std::vector<observe::LayerRecord>& layers) {
  std::vector<std::vector<double>> columns(observe::layer_statistics().size());
  for (const observe::LayerRecord& layer : layers)
    for (size_t row = 0; row < columns.size(); ++row) columns[row].push_back(layer.values[row]);
  return columns;
}

void write(const LoadedModel& loaded, const Tensor& gradient,
           const std::vector<observe::LayerRecord>& layers, const data::PreparedData& data,
           const std::string& path) {
  std::vector<std::byte> bytes(size_t(gradient.bytes()));
  loaded.device->compute().download(std::span(bytes), gradient);
  checkpoint::SavingArchive archive;
  const auto visit = [&]<class T>(T* values) {
    for (const auto& p : loaded.model->parameters().all())
      archive.array("gradient/" + p->name, p->shape,
                    std::span(values + p->offset, size_t(p->numel())));
  };
  if (gradient.dtype() == DType::kF64)
    visit(reinterpret_cast<double*>(bytes.data()));
  else
    visit(reinterpret_cast<float*>(bytes.data()));
  std::vector<std::vector<double>> columns = columns_of(layers);
  for (size_t row = 0; row < columns.size(); ++row)
    archive.array(join("layer/", observe::layer_statistics()[row].name),
                  std::vector{int64_t(layers.size())}, std::span(columns[row]));
  checkpoint::SaveInfo info;
  info.step = loaded.step;
  info.run_id = "probe";
  info.provenance = provenance_json(loaded.config, {}, data, loaded.device->numerics(), 1);
  (void)checkpoint::write_checkpoint(path, archive, info);
}

}  // namespace

CommandOptions add_probe(CommandOptions root, ProbeCommand& command) {
  CommandOptions own = root.subcommand("probe", "One batch forward and backward: layer statistics");
  own.required("source", command.source, "A config file, a run directory or a checkpoint");
  own.optional("overrides", command.overrides, "key=value, of a config file");
  own.flag("--json", command.is_json, "The figures as JSON");
  own.option("--out", command.out,
             "Write statistics and gradients there, in the checkpoint format");
  return own;
}

int probe(const ProbeCommand& command, std::ostream& out) {
  LoadedModel loaded =
      is_config_file(command.source) ? new_model(command) : load_model(command.source);
  require(is_config_file(command.source) || command.overrides.empty(), command.source,
          ": a checkpoint's config cannot be changed; key=value needs a config file");
  require(command.out.empty() || !std::filesystem::exists(command.out), "--out: ", command.out,
          " is already there; name a directory that is not");
  Config& config = loaded.config;
  config.batch.shards = data::resolved_shards(config.batch);
  // The weights of a run mean the tokens of its own tokenizer, whatever the text is now.
  const data::PreparedData data =
      data::prepare(config.data, config.model.kind == model::ModelKind::kDecoder, {},
                    loaded.tokenizer ? loaded.tokenizer->bytes() : "");
  const auto group = dist::make_local_group(1);
  if (!loaded.model) {
    build(loaded, data);
    profile_model(config, data.train, *loaded.model, *group[0]);
  }

  GradientStep step(*loaded.model, *loaded.device, data.train, *group[0],
                    ownership_of(config.dist, loaded.model->parameters(), 1),
                    {.reducer = {.shards = int(config.batch.shards)},
                     .micro_tokens = config.batch.micro_tokens,
                     .label_smoothing = config.optimizer.label_smoothing,
                     .seed = config.run.seed});
  const data::PairLengths lengths = data.train.lengths();
  const data::EpochPlan plan(lengths, config.batch, config.run.seed, 0);
  const data::Batch batch = plan.batch(0);
  const StepGradient gradient = step.run(batch, loaded.step + 1, true);
  const Measured result = measure(loaded, gradient, batch.target_tokens);
  if (!command.out.empty()) write(loaded, gradient.gradient, result.layers, data, command.out);
  if (command.is_json) {
    out << json_of(loaded, result).dump(1) << "\n";
    return 0;
  }
  out << fmt::format("{} at step {}: loss {:.6f}, nll {:.6f}, gradient norm {:.6f}\n",
                     config.model.topology, loaded.step, result.loss, result.nll,
                     result.gradient_norm);
  print_table(result.layers, out);
  return 0;
}

}  // namespace fathom::launcher
