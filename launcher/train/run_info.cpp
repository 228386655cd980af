#include "launcher/train/run_info.h"

#include <ctime>

#include <fmt/chrono.h>

#include "core/base/error.h"
#include "core/base/system.h"

namespace fathom::launcher {
namespace {

std::string depth_of(const model::ModelConfig& model) {
  if (model.kind == model::ModelKind::kDecoder) return join("D", model.decoder_layers);
  return join("E", model.encoder_layers, "D", model.decoder_layers);
}

std::string precision_of(const Config& config) {
  switch (config.train.precision) {
    case Precision::kFp64:
      return "fp64";
    case Precision::kBf16:
      return "bf16";
    case Precision::kFp32:
      break;
  }
  return "fp32";
}

}  // namespace

monitoring::LabelValues run_info(const Config& config, const RunStart& start,
                                 double start_seconds) {
  return {config.run.name,
          start.run_id,
          config.model.topology,
          depth_of(config.model),
          std::to_string(start.ranks),
          std::to_string(config.batch.shards),
          precision_of(config),
          config.train.device == DeviceChoice::kReference ? "reference" : "cpu",
          std::to_string(config.run.seed),
          host_name(),
          batch_job(),
          std::to_string(start.attempt),
          fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time_t(start_seconds)))};
}

}  // namespace fathom::launcher
