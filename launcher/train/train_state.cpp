#include "launcher/train/train_state.h"

#include <string>

namespace fathom::launcher {
namespace {

// The parameters' slices of a flat buffer.
void visit_slices(checkpoint::Archive& archive, const std::string& prefix,
                  const ParameterStore& store, std::span<std::byte> flat) {
  require(int64_t(flat.size()) == store.flat_bytes(), "train state: ", flat.size(),
          " bytes for parameters of ", store.flat_bytes());
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

void visit_weights(checkpoint::Archive& archive, const ParameterStore& store,
                   std::span<std::byte> weights) {
  visit_slices(archive, "model/", store, weights);
}

void visit_moments(checkpoint::Archive& archive, const ParameterStore& store,
                   std::span<std::byte> first, std::span<std::byte> second, int64_t& updates) {
  visit_slices(archive, "optimizer/m/", store, first);
  visit_slices(archive, "optimizer/v/", store, second);
  archive.value("optimizer/updates", updates);
}

void TrainState::forget_best() {
  validations_without_gain = 0;
  best_value = std::numeric_limits<double>::infinity();
  best_step = 0;
}

void TrainState::visit(checkpoint::Archive& archive) {
  archive.value("step", step);
  archive.value("epoch", next.epoch);
  archive.value("batch_in_epoch", next.batch);
  archive.value("source_tokens", source_tokens);
  archive.value("target_tokens", target_tokens);
  archive.value("sentences", sentences);
  archive.value("skipped", skipped);
  archive.optional_value("validation_due", validation_due);
  archive.value("validations", validations);
  archive.value("validations_without_gain", validations_without_gain);
  archive.value("best_value", best_value);
  archive.value("best_step", best_step);
  visit_verdict(archive, verdict);
}

}  // namespace fathom::launcher
