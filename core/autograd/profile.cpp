#include "core/autograd/profile.h"

namespace fathom::autograd {

const char* to_string(Phase phase) {
  switch (phase) {
    case Phase::kForward:
      return "forward";
    case Phase::kBackward:
      return "backward";
    case Phase::kUpdate:
      return "update";
  }
  return "?";
}

void Profile::begin() {
  last_ = context_.record();
  if (!first_.is_set()) first_ = last_;
  cost_ = {};
}

void Profile::end(const char* name, Phase phase) {
  tensor::Event now = context_.record();
  marks_.push_back({.name = name, .phase = phase, .begin = last_, .end = now, .cost = cost_});
  last_ = std::move(now);
  cost_ = {};
}

std::vector<Profile::Span> Profile::spans() const {
  std::vector<Span> out;
  for (const Mark& m : marks_)
    out.push_back({.name = m.name,
                   .phase = m.phase,
                   .begin = seconds_between(first_, m.begin),
                   .end = seconds_between(first_, m.end),
                   .cost = m.cost});
  return out;
}

}  // namespace fathom::autograd
