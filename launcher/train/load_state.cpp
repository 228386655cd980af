#include "launcher/train/load_state.h"

#include <span>
#include <vector>

#include "checkpoint/archive.h"

namespace fathom::launcher {
namespace {

// Hands every array and value of rank 0 to the others.
class BroadcastArchive final : public checkpoint::Archive {
 public:
  explicit BroadcastArchive(dist::Communicator& group) : group_(group) {}
  void array(std::string_view, std::span<const int64_t>, std::span<float> data) override {
    group_.broadcast(std::as_writable_bytes(data), 0);
  }
  void array(std::string_view, std::span<const int64_t>, std::span<double> data) override {
    group_.broadcast(std::as_writable_bytes(data), 0);
  }
  void value(std::string_view, int64_t& v) override {
    group_.broadcast(std::as_writable_bytes(std::span(&v, 1)), 0);
  }
  void value(std::string_view, double& v) override {
    group_.broadcast(std::as_writable_bytes(std::span(&v, 1)), 0);
  }
  void value(std::string_view, std::string& v) override { group_.broadcast(v, 0); }
  bool is_loading() const override { return true; }

 private:
  dist::Communicator& group_;
};

void upload_weights(model::Transformer& model, std::span<const std::byte> weights) {
  ParameterStore& store = model.parameters();
  store.device().compute().upload(store.weights(), weights);
  store.refresh_working();
}

// A flat buffer's worth of host memory.
std::vector<std::byte> host_buffer(const ParameterStore& store) {
  return std::vector<std::byte>(size_t(store.flat_bytes()));
}

void read_weights(const checkpoint::Checkpoint& source, const ParameterStore& store,
                  std::span<std::byte> weights) {
  checkpoint::LoadingArchive archive(source, "model/");
  visit_weights(archive, store, weights);
  archive.finish();
}

}  // namespace

void load_state(const checkpoint::Checkpoint* source, model::Transformer& model, optim::Adam& adam,
                const Sharding& sharding, TrainState& state, dist::Communicator& group) {
  const ParameterStore& store = model.parameters();
  std::vector<std::byte> weights = host_buffer(store), first = weights, second = weights;
  const auto visit = [&](checkpoint::Archive& archive) {
    visit_weights(archive, store, weights);
    visit_moments(archive, store, first, second, adam.updates());
    state.visit(archive);
  };
  if (source != nullptr) {
    checkpoint::LoadingArchive archive(*source);
    visit(archive);
    archive.finish();
  }
  if (group.size() > 1) {
    BroadcastArchive archive(group);
    visit(archive);
  }
  upload_weights(model, weights);
  sharding.upload(adam.first(), first);
  sharding.upload(adam.second(), second);
}

void load_weights(const checkpoint::Checkpoint* source, model::Transformer& model,
                  dist::Communicator& group) {
  std::vector<std::byte> weights = host_buffer(model.parameters());
  if (source != nullptr) read_weights(*source, model.parameters(), weights);
  group.broadcast(std::span(weights), 0);
  upload_weights(model, weights);
}

void load_weights(const checkpoint::Checkpoint& source, model::Transformer& model) {
  std::vector<std::byte> weights = host_buffer(model.parameters());
  read_weights(source, model.parameters(), weights);
  upload_weights(model, weights);
}

}  // namespace fathom::launcher
