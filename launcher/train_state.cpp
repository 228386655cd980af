#include "launcher/train_state.h"

namespace fathom::launcher {
namespace {

// The parameters' slices of a flat buffer, each under its own name and shape.
void visit_slices(checkpoint::Archive& archive, const std::string& prefix,
                  const ParameterStore& store, std::vector<std::byte>& flat) {
  const auto visit = [&]<class T>(T* values) {
    for (const auto& p : store.all())
      archive.array(prefix + p->name, p->shape, std::span(values + p->offset, size_t(p->numel())));
  };
  if (store.wide() == DType::kF64)
    visit(reinterpret_cast<double*>(flat.data()));
  else
    visit(reinterpret_cast<float*>(flat.data()));
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
  ParameterStore& store = model.parameters();
  Context& context = store.device().compute();
  std::vector<std::byte>& bytes = copies.emplace_back(size_t(store.weights().bytes()));
  context.download(std::span(bytes), store.weights());
  visit_slices(archive, "model/", store, bytes);
  if (!archive.is_loading()) return;
  context.upload(store.weights(), std::span<const std::byte>(bytes));
  store.refresh_working();
}

void TrainState::visit(checkpoint::Archive& archive, HostCopies& copies, HostMoments& moments) {
  visit_weights(archive, model, copies);
  visit_slices(archive, "optimizer/m/", model.parameters(), moments.first);
  visit_slices(archive, "optimizer/v/", model.parameters(), moments.second);
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
