#include "launcher/commands/probe.h"

#include <cmath>
#include <filesystem>

#include <fmt/format.h>

#include "checkpoint/writer.h"
#include "core/data/batch_plan.h"
#include "core/data/prepare.h"
#include "core/optim/adam.h"
#include "dist/local_communicator.h"
#include "launcher/config/load.h"
#include "launcher/cores.h"
#include "launcher/gradient_step.h"
#include "launcher/model_source.h"
#include "launcher/provenance.h"

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
  loaded.device =
      tensor::make_device(config.train.device == DeviceChoice::kReference ? "reference" : "cpu",
                          threads_per_rank(config));
  loaded.model = std::make_unique<model::Transformer>(
      config.model, config.train.precision == Precision::kFp64 ? DType::kF64 : DType::kF32);
  loaded.model->initialise(config.run.seed);
}

void print_table(const model::Transformer& model, const StepGradient& result,
                 const std::vector<double>& squares, std::ostream& out) {
  out << fmt::format("{:<8} {:>5} {:<16} {:>12} {:>10} {:>8} {:>8} {:>8} {:>8}\n", "stack", "layer",
                     "block", "gradient", "hidden", "omega", "(pred.)", "share", "cosine");
  size_t i = 0;
  for (const topology::BlockContext& block : model.blocks()) {
    const std::string prefix = topology::name_of(block) + ".";
    double g = 0;
    for (size_t p = 0; p < squares.size(); ++p)
      if (model.parameters().all()[p]->name.starts_with(prefix)) g += squares[p];
    const observe::BlockStatistics s = observe::statistics_of(result.blocks[i++]);
    out << fmt::format(
        "{:<8} {:>5} {:<16} {:>12.4e} {:>10.4f} {:>8.4f} {:>8.4f} {:>8.4f} {:>8.4f}\n",
        to_string(block.stack), block.layer, to_string(block.kind), std::sqrt(g), s.hidden_rms,
        s.omega, s.omega_predicted, s.branch_share, s.cosine);
  }
}

void write_gradients(const ParameterStore& store, const Tensor& gradient, const LoadedModel& loaded,
                     const data::PreparedData& data, const std::string& path) {
  checkpoint::SavingArchive archive;
  for (const auto& p : store.all())
    visit_float(gradient.dtype(), [&]<class T>() {
      archive.array("gradient/" + p->name, p->shape,
                    std::span(gradient.data<T>() + p->offset, size_t(p->numel())));
    });
  checkpoint::SaveInfo info;
  info.step = loaded.step;
  info.run_id = "probe";
  info.provenance = provenance_json(loaded.config, data, 1, "{}");
  (void)checkpoint::write_checkpoint(path, archive, info);
}

}  // namespace

int probe(const ProbeCommand& command, std::ostream& out) {
  LoadedModel loaded =
      is_config_file(command.source) ? new_model(command) : load_model(command.source);
  require(is_config_file(command.source) || command.overrides.empty(), command.source,
          ": a checkpoint's config cannot be changed; key=value needs a config file");
  require(command.out.empty() || !std::filesystem::exists(command.out), "--out: ", command.out,
          " is already there; name a directory that is not");
  Config& config = loaded.config;
  config.batch.shards = data::resolved_shards(config.batch);
  const data::PreparedData data =
      data::prepare(config.data, config.model.kind == model::ModelKind::kDecoder);
  if (!loaded.model) build(loaded, data);

  const auto group = dist::make_local_group(1);
  const std::unique_ptr<GradientStep> step =
      make_gradient_step(*loaded.model, *loaded.device, data.train, *group[0],
                         {.reducer = {.shards = int(config.batch.shards)},
                          .micro_tokens = config.batch.micro_tokens,
                          .label_smoothing = config.optimizer.label_smoothing,
                          .seed = config.run.seed});
  const data::PairLengths lengths = data.train.lengths();
  const data::EpochPlan plan(lengths, config.batch, config.run.seed, 0);
  const StepGradient result = step->run(plan.batch(0), loaded.step + 1, true);
  const std::vector<double> squares =
      optim::squared_norms(loaded.device->pool(), loaded.model->parameters(), result.gradient);
  double sum = 0;
  for (const double s : squares) sum += s;
  out << fmt::format("{} at step {}: loss {:.6f}, nll {:.6f}, gradient norm {:.6f}\n",
                     config.model.topology, loaded.step, result.loss, result.nll, std::sqrt(sum));
  print_table(*loaded.model, result, squares, out);
  if (!command.out.empty())
    write_gradients(loaded.model->parameters(), result.gradient, loaded, data, command.out);
  return 0;
}

}  // namespace fathom::launcher
