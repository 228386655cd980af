#include "launcher/train/updater.h"

#include <array>

namespace fathom::launcher {

Updater::Updater(Device& device, optim::Adam& adam, const Sharding& sharding,
                 observe::ParameterProbe& probe, double clip_norm)
    : context_(device.compute()),
      adam_(adam),
      sharding_(sharding),
      probe_(probe),
      clip_norm_(clip_norm),
      control_(context_.allocate(1, kernels::kControlValues, DType::kF64)) {}

Update Updater::apply(const StepGradient& gradient, int64_t target_tokens, double learning_rate,
                      autograd::Profile* profile) {
  const auto end_span = [profile](const char* name) {
    if (profile != nullptr) profile->end(name, autograd::Phase::kUpdate);
  };
  const tensor::Event begin = context_.record();
  if (profile != nullptr) profile->begin();
  context_.run(&kernels::Kernels::step_control, {.losses = gradient.losses,
                                                 .squares = probe_.squared_norms(gradient.gradient),
                                                 .control = control_,
                                                 .tokens = double(target_tokens),
                                                 .clip_norm = clip_norm_});
  end_span("gradient norm");
  adam_.step(gradient.gradient, control_, learning_rate);
  end_span("adam");
  sharding_.gather_weights();
  if (sharding_.is_sharded()) end_span("gather weights");
  const tensor::Event end = context_.record();

  std::array<double, kernels::kControlValues> control{};
  context_.download(std::span<double>(control), control_);
  const bool is_skipped = control[4] != 0;
  if (!is_skipped) adam_.count_update();
  return {.loss = control[0],
          .nll = control[1],
          .gradient_norm = control[2],
          .is_skipped = is_skipped,
          .seconds = seconds_between(begin, end)};
}

}  // namespace fathom::launcher
