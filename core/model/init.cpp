#include "core/model/init.h"

#include <algorithm>
#include <cmath>

#include "core/base/philox.h"

namespace fathom::model {
namespace {

struct Rule {
  enum class Kind { kConstant, kUniform, kNormal } kind;
  double value;  // the constant, the bound, the standard deviation
};

Rule xavier(double fan_in, double fan_out, double gain = 1) {
  return {Rule::Kind::kUniform, gain * std::sqrt(6 / (fan_in + fan_out))};
}

Rule rule_for(const Parameter& p, const ModelConfig& config) {
  const double C = double(config.width);
  const bool is_fairseq = config.init == InitRule::kFairseq;
  switch (p.role) {
    case Role::kEmbedding:
    case Role::kOutput:
      return {Rule::Kind::kNormal, std::sqrt(1 / C)};
    case Role::kQuery:
    case Role::kKeyValue:
    case Role::kAttentionIn:
      return xavier(C, C, is_fairseq ? std::sqrt(0.5) : 1);
    case Role::kAttentionOut:
      return xavier(C, C);
    case Role::kFeedForwardIn:
    case Role::kFeedForwardOut:
      if (is_fairseq) return {Rule::Kind::kUniform, 1 / std::sqrt(double(p.fan_in))};
      return xavier(double(p.fan_in), double(p.fan_out));
    case Role::kBias:
      if (is_fairseq) return {Rule::Kind::kUniform, 1 / std::sqrt(double(p.fan_in))};
      return {Rule::Kind::kConstant, 0};
    case Role::kNormGain:
      return {Rule::Kind::kConstant, 1};
    case Role::kAttentionOutBias:
    case Role::kNormBias:
    case Role::kMixing:  // see `initial`
      return {Rule::Kind::kConstant, 0};
  }
  return {Rule::Kind::kConstant, 0};
}

template <class T>
std::vector<T> values(const Parameter& p, const Rule& rule, uint64_t seed) {
  const PhiloxStream stream(seed, "init/" + p.name);
  std::vector<T> w(size_t(p.numel()));
  for (size_t i = 0; i < w.size(); ++i) {
    switch (rule.kind) {
      case Rule::Kind::kConstant:
        w[i] = T(rule.value);
        break;
      case Rule::Kind::kUniform:
        w[i] = T(rule.value * (2 * stream.uniform(i) - 1));
        break;
      case Rule::Kind::kNormal:
        w[i] = T(rule.value * stream.normal(i));
        break;
    }
  }
  for (const Parameter::RowGain& part : p.row_gains)
    for (int64_t i = part.first * p.value.cols(); i < (part.first + part.count) * p.value.cols();
         ++i)
      w[size_t(i)] = T(part.gain * double(w[size_t(i)]));
  if (!p.initial.empty()) std::copy(p.initial.begin(), p.initial.end(), w.begin());
  return w;
}

}  // namespace

void initialise_parameters(ParameterStore& store, const ModelConfig& config, uint64_t seed) {
  Context& context = store.device().compute();
  for (const auto& p : store.all()) {
    const Rule rule = rule_for(*p, config);
    if (store.wide() == DType::kF64)
      context.upload(store.master_of(*p), std::span<const double>(values<double>(*p, rule, seed)));
    else
      context.upload(store.master_of(*p), std::span<const float>(values<float>(*p, rule, seed)));
  }
  store.refresh_working();
}

}  // namespace fathom::model
