#include "dist/local_communicator.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <optional>

#include "core/base/error.h"

namespace fathom::dist {
namespace {

// A group and all its duplicates fail together: a communication thread that waits in a duplicate
// must be released too.
struct Family {
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<std::string> failure;
};

// A rank's arguments of a collective call; peers read them until the call ends.
struct CallArguments {
  std::string_view call = {};
  int64_t bytes = 0;  // must be equal on all ranks
  int root = 0;       // must be equal on all ranks
  const void* in = nullptr;
  void* out = nullptr;
  Counts counts = {};       // all_gather: equal on all ranks
  Counts send_counts = {};  // all_to_all: matches the peers' counts
};

class Group {
 public:
  Group(std::shared_ptr<Family> family, int size)
      : family_(std::move(family)), arguments_(size_t(size)) {}

  [[nodiscard]] const std::shared_ptr<Family>& family() const { return family_; }
  [[nodiscard]] const CallArguments& of(int rank) const { return arguments_[size_t(rank)]; }

  // Waits until every rank has entered the call. Throws DeviceError if the group has failed or
  // ranks made different calls.
  void rendezvous(int rank, const CallArguments& mine) {
    std::unique_lock lock(family_->mutex);
    check_usable(mine.call);
    arguments_[size_t(rank)] = mine;
    if (arrived_ + 1 == int(arguments_.size())) {
      if (const std::optional<std::string> difference = find_difference()) {
        family_->failure = difference;
        family_->changed.notify_all();
      }
      check_usable(mine.call);
    }
    wait_for_all(lock, mine.call, /*until_failure=*/true);
  }

  // Waits until every rank is done with the others' arguments. An abort does not end the wait:
  // every rank will get here, and one that returned early would free memory that a peer still
  // reads.
  void end_call() {
    std::unique_lock lock(family_->mutex);
    wait_for_all(lock, {}, /*until_failure=*/false);
  }

  void leave(int rank) {
    const std::lock_guard lock(family_->mutex);
    if (!departed_) departed_ = rank;
    family_->changed.notify_all();
  }

 private:
  void wait_for_all(std::unique_lock<std::mutex>& lock, std::string_view call, bool until_failure) {
    if (++arrived_ == int(arguments_.size())) {
      arrived_ = 0;
      ++generation_;
      family_->changed.notify_all();
      return;
    }
    const int64_t generation = generation_;
    family_->changed.wait(lock, [&] {
      return generation_ != generation || (until_failure && (family_->failure || departed_));
    });
    if (generation_ == generation) check_usable(call);
  }

  void check_usable(std::string_view call) const {
    if (family_->failure) fail<DeviceError>(call, ": ", *family_->failure);
    if (departed_) fail<DeviceError>(call, ": rank ", *departed_, " has left the group");
  }

  [[nodiscard]] std::optional<std::string> find_difference() const {
    for (size_t r = 1; r < arguments_.size(); ++r) {
      const CallArguments& a = arguments_[0];
      const CallArguments& b = arguments_[r];
      if (a.call != b.call || a.bytes != b.bytes || a.root != b.root)
        return join("ranks made different calls: rank 0 ", a.call, " of ", a.bytes, " bytes, root ",
                    a.root, "; rank ", r, " ", b.call, " of ", b.bytes, " bytes, root ", b.root);
      if (a.send_counts.empty() && !std::ranges::equal(a.counts, b.counts))
        return join("ranks made different calls: counts of ", a.call, " on rank ", r,
                    " are not those of rank 0");
    }
    for (size_t from = 0; from < arguments_.size(); ++from) {
      const Counts sent = arguments_[from].send_counts;
      for (size_t to = 0; to < sent.size(); ++to)
        if (sent[to] != arguments_[to].counts[from])
          return join("counts do not match: rank ", from, " sends ", sent[to], " bytes to rank ",
                      to, ", which expects ", arguments_[to].counts[from]);
    }
    return std::nullopt;
  }

  std::shared_ptr<Family> family_;
  std::vector<CallArguments> arguments_;
  int arrived_ = 0;
  int64_t generation_ = 0;
  std::optional<int> departed_ = {};
};

class LocalCommunicator final : public Communicator {
 public:
  LocalCommunicator(std::shared_ptr<Group> group, int rank, int size)
      : Communicator(rank, size), group_(std::move(group)) {}
  ~LocalCommunicator() override { group_->leave(rank()); }

 private:
  void do_all_reduce_sum(std::span<float> values) override { sum(values); }
  void do_all_reduce_sum(std::span<double> values) override { sum(values); }

  // Rank r adds slice r of everyone, in rank order, and writes it to everyone.
  template <class T>
  void sum(std::span<T> values) {
    const int64_t n = int64_t(values.size());
    const int64_t begin = n * rank() / size();
    const int64_t end = n * (rank() + 1) / size();
    std::vector<T> total(size_t(end - begin), T{0});
    group_->rendezvous(
        rank(), {.call = sizeof(T) == 4 ? "all_reduce_sum (float)" : "all_reduce_sum (double)",
                 .bytes = int64_t(values.size_bytes()),
                 .out = values.data()});
    for (int r = 0; r < size(); ++r) {
      const T* part = static_cast<const T*>(group_->of(r).out) + begin;
      for (size_t i = 0; i < total.size(); ++i) total[i] = r == 0 ? part[i] : total[i] + part[i];
    }
    for (int r = 0; r < size(); ++r)
      std::copy(total.begin(), total.end(), static_cast<T*>(group_->of(r).out) + begin);
    group_->end_call();
  }

  void do_reduce_scatter_sum(std::span<const float> values, Counts counts,
                             std::span<float> part) override {
    sum_part(values, counts, part);
  }
  void do_reduce_scatter_sum(std::span<const double> values, Counts counts,
                             std::span<double> part) override {
    sum_part(values, counts, part);
  }

  // Rank r adds part r of everyone, in rank order: the bits of sum().
  template <class T>
  void sum_part(std::span<const T> values, Counts counts, std::span<T> part) {
    group_->rendezvous(rank(), {.call = sizeof(T) == 4 ? "reduce_scatter_sum (float)"
                                                       : "reduce_scatter_sum (double)",
                                .bytes = int64_t(values.size_bytes()),
                                .in = values.data(),
                                .counts = counts});
    int64_t begin = 0;
    for (int r = 0; r < rank(); ++r) begin += counts[size_t(r)];
    for (int r = 0; r < size(); ++r) {
      const T* peer = static_cast<const T*>(group_->of(r).in) + begin;
      for (size_t i = 0; i < part.size(); ++i) part[i] = r == 0 ? peer[i] : part[i] + peer[i];
    }
    group_->end_call();
  }

  void do_all_reduce_max(std::span<int64_t> values) override {
    const std::vector<int64_t> mine(values.begin(), values.end());
    group_->rendezvous(
        rank(),
        {.call = "all_reduce_max", .bytes = int64_t(values.size_bytes()), .in = mine.data()});
    for (int r = 0; r < size(); ++r) {
      const auto* theirs = static_cast<const int64_t*>(group_->of(r).in);
      for (size_t i = 0; i < values.size(); ++i) values[i] = std::max(values[i], theirs[i]);
    }
    group_->end_call();
  }

  void do_broadcast(std::span<std::byte> bytes, int root) override {
    group_->rendezvous(
        rank(),
        {.call = "broadcast", .bytes = int64_t(bytes.size()), .root = root, .in = bytes.data()});
    if (rank() != root) copy(bytes.data(), group_->of(root).in, 0, int64_t(bytes.size()));
    group_->end_call();
  }

  void do_all_gather(std::span<const std::byte> mine, Counts counts,
                     std::span<std::byte> all) override {
    group_->rendezvous(
        rank(),
        {.call = "all_gather", .bytes = int64_t(all.size()), .in = mine.data(), .counts = counts});
    std::byte* to = all.data();
    for (int r = 0; r < size(); ++r) {
      copy(to, group_->of(r).in, 0, counts[size_t(r)]);
      to += counts[size_t(r)];
    }
    group_->end_call();
  }

  void do_all_to_all(std::span<const std::byte> send, Counts send_counts,
                     std::span<std::byte> receive, Counts receive_counts) override {
    group_->rendezvous(rank(), {.call = "all_to_all",
                                .in = send.data(),
                                .counts = receive_counts,
                                .send_counts = send_counts});
    std::byte* to = receive.data();
    for (int r = 0; r < size(); ++r) {
      const CallArguments& peer = group_->of(r);
      int64_t begin = 0;
      for (int q = 0; q < rank(); ++q) begin += peer.send_counts[size_t(q)];
      copy(to, peer.in, begin, receive_counts[size_t(r)]);
      to += receive_counts[size_t(r)];
    }
    group_->end_call();
  }

  void do_barrier() override { group_->rendezvous(rank(), {.call = "barrier"}); }

  std::unique_ptr<Communicator> do_duplicate() override {
    auto group = std::make_shared<Group>(group_->family(), size());
    group_->rendezvous(rank(), {.call = "duplicate", .in = &group});
    const auto shared = *static_cast<const std::shared_ptr<Group>*>(group_->of(0).in);
    group_->end_call();
    return std::make_unique<LocalCommunicator>(shared, rank(), size());
  }

  void do_abort(std::string_view reason, int exit_code) noexcept override {
    Family& family = *group_->family();
    const std::lock_guard lock(family.mutex);
    if (!family.failure)
      family.failure =
          join("rank ", rank(), " aborted the group with code ", exit_code, ": ", reason);
    family.changed.notify_all();
  }

  static void copy(std::byte* to, const void* from, int64_t offset, int64_t bytes) {
    if (bytes > 0) std::memcpy(to, static_cast<const std::byte*>(from) + offset, size_t(bytes));
  }

  std::shared_ptr<Group> group_;
};

}  // namespace

std::vector<std::unique_ptr<Communicator>> make_local_group(int size) {
  require(size >= 1, "local group: size is ", size, ", expected 1 or more");
  const auto group = std::make_shared<Group>(std::make_shared<Family>(), size);
  std::vector<std::unique_ptr<Communicator>> ranks;
  for (int r = 0; r < size; ++r)
    ranks.push_back(std::make_unique<LocalCommunicator>(group, r, size));
  return ranks;
}

}  // namespace fathom::dist
