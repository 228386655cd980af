#include "launcher/train/layer_report.h"

namespace fathom::launcher {
namespace {

int64_t block_sums(int64_t shards, size_t blocks) {
  return shards * int64_t(blocks) * observe::kBlockSums;
}

}  // namespace

LayerReport::LayerReport(model::Transformer& model, const optim::Adam& adam,
                         observe::ParameterProbe& probe, int64_t shards)
    : context_(model.parameters().device().compute()),
      store_(model.parameters()),
      adam_(adam),
      probe_(probe),
      blocks_(model.blocks()),
      shards_(shards),
      values_(
          context_.allocate(1, block_sums(shards, blocks_.size()) + probe.count(), DType::kF64)) {}

std::vector<observe::LayerRecord> LayerReport::measure(const StepGradient& gradient,
                                                       double learning_rate) {
  const int64_t count = block_sums(shards_, blocks_.size());
  context_.copy(values_.columns(0, count), gradient.blocks.reshaped(1, count));
  probe_.measure(gradient.gradient, &adam_, learning_rate, values_.columns(count, probe_.count()));
  const std::vector<double> values = download(values_);
  return observe::layer_records(
      store_, blocks_,
      observe::add_shards(std::span(values).first(size_t(count)), shards_, int64_t(blocks_.size())),
      probe_.read(std::span(values).subspan(size_t(count))));
}

std::vector<observe::NonfiniteBlock> LayerReport::nonfinite(const StepGradient& gradient) {
  const Tensor sums = values_.columns(0, probe_.count());
  probe_.measure(gradient.gradient, nullptr, 0, sums);
  return observe::nonfinite_blocks(store_, blocks_, probe_.read(download(sums)));
}

std::vector<double> LayerReport::download(const Tensor& values) const {
  std::vector<double> out(size_t(values.numel()));
  context_.download(std::span(out), values);
  return out;
}

}  // namespace fathom::launcher
