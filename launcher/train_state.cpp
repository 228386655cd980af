#include "launcher/train_state.h"

namespace fathom::launcher {
namespace {

// The parameters' slices of a flat buffer, each under its own name and shape.
void visit_slices(checkpoint::Archive& archive, const std::string& prefix,
                  const ParameterStore& store, const Tensor& flat, HostCopies& copies) {
  Context& context = store.device().compute();
  std::vector<std::byte>& bytes = copies.emplace_back(size_t(flat.bytes()));
  context.download(std::span(bytes), flat);
  const auto visit = [&]<class T>(T* values) {
    for (const auto& p : store.all())
      archive.array(prefix + p->name, p->shape, std::span(values + p->offset, size_t(p->numel())));
  };
  if (flat.dtype() == DType::kF64)
    visit(reinterpret_cast<double*>(bytes.data()));
  else
    visit(reinterpret_cast<float*>(bytes.data()));
  if (archive.is_loading()) context.upload(flat, std::span<const std::byte>(bytes));
}

void visit_verdict(checkpoint::Archive& archive, score::VerdictState& v) {
  archive.value("verdict/validations", v.validations);
  archive.value("verdict/last_step", v.last_step);
  archive.value("verdict/best_nll", v.best_nll);
  archive.value("verdict/best_step", v.best_step);
  archive.value("verdict/raised_validations", v.raised_validations);
  archive.value("verdict/raised_since", v.raised_since);
  archive.value("verdict/nonfinite_steps", v.nonfinite_steps);
  archive.value("verdict/nonfinite_step", v.nonfinite_step);
  archive.value("verdict/nonfinite_value", v.nonfinite_value);
  archive.value("verdict/status", v.status);
  archive.value("verdict/step", v.step);
  archive.value("verdict/value", v.value);
  archive.value("verdict/reference", v.reference);
}

}  // namespace

void visit_weights(checkpoint::Archive& archive, model::Transformer& model, HostCopies& copies) {
  visit_slices(archive, "model/", model.parameters(), model.parameters().weights(), copies);
  if (archive.is_loading()) model.parameters().refresh_working();
}

void TrainState::visit(checkpoint::Archive& archive, HostCopies& copies) {
  visit_weights(archive, model, copies);
  visit_slices(archive, "optimizer/m/", model.parameters(), adam.first(), copies);
  visit_slices(archive, "optimizer/v/", model.parameters(), adam.second(), copies);
  archive.value("optimizer/updates", adam.updates());
  archive.value("step", step);
  archive.value("epoch", epoch);
  archive.value("batch_in_epoch", batch_in_epoch);
  archive.value("source_tokens", source_tokens);
  archive.value("target_tokens", target_tokens);
  archive.value("sentences", sentences);
  archive.value("skipped", skipped);
  archive.value("validations", validations);
  archive.value("validations_without_gain", validations_without_gain);
  archive.value("best_value", best_value);
  archive.value("best_step", best_step);
  visit_verdict(archive, verdict);
}

}  // namespace fathom::launcher
