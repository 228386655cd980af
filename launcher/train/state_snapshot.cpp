#include "launcher/train/state_snapshot.h"

namespace fathom::launcher {

StateSnapshot::StateSnapshot(const ParameterStore& store, optim::Adam& adam,
                             const Sharding& sharding, bool is_kept)
    : store_(store),
      adam_(adam),
      copies_(store.device().copies()),
      is_kept_(is_kept),
      gather_(sharding.make_gather(copies_)) {}

// Copies under way write into the buffers. A failure has arrived elsewhere, or does not matter now.
StateSnapshot::~StateSnapshot() {
  if (!taken_.is_done()) (void)copies_.table().synchronise(copies_.handle());
}

void StateSnapshot::begin() {
  if (is_kept_ && weights_.bytes().empty())
    for (tensor::HostBuffer* buffer : {&weights_, &first_, &second_})
      *buffer = tensor::HostBuffer(store_.device(), store_.flat_bytes());
  updates_ = adam_.updates();
  copies_.wait(store_.device().compute().record());
  if (!store_.has_whole_masters())
    gather_->gather_to_host(store_.weights(), weights_.bytes());
  else if (is_kept_)
    copies_.download_later(weights_.bytes(), store_.weights());
  if (gather_) {
    gather_->gather_to_host(adam_.first(), first_.bytes());
    gather_->gather_to_host(adam_.second(), second_.bytes());
  } else if (is_kept_) {
    copies_.download_later(first_.bytes(), adam_.first());
    copies_.download_later(second_.bytes(), adam_.second());
  }
  taken_ = copies_.record();
}

void StateSnapshot::hold_updates() { store_.device().compute().wait(taken_); }

void StateSnapshot::synchronise() { copies_.synchronise(); }

void StateSnapshot::visit(checkpoint::Archive& archive) {
  visit_weights(archive, store_, weights_.bytes());
  visit_moments(archive, store_, first_.bytes(), second_.bytes(), updates_);
}

}  // namespace fathom::launcher
