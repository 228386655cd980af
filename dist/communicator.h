// One rank's handle on a group of ranks: host memory, blocking calls.
// Every call but abort() is collective: all ranks make it, in the same order, with matching counts.
// A handle is used by one thread at a time; a second thread needs its own handle: duplicate().
// The rules are checked here once; the implementations (threads, MPI) only translate.
// A broken rule throws InvalidArgument, a lost peer or a failing library DeviceError.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fathom::dist {

using Counts = std::span<const int64_t>;  // one number per rank

class Communicator {
 public:
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  virtual ~Communicator() = default;

  [[nodiscard]] int rank() const { return rank_; }  // 0 <= rank < size
  [[nodiscard]] int size() const { return size_; }

  // In place, (n) on every rank. Every rank gets the same bits; which bits depends on the number of
  // ranks. For a sum that does not, see gradient_reducer.h.
  void all_reduce_sum(std::span<float> values) { do_all_reduce_sum(values); }
  void all_reduce_sum(std::span<double> values) { do_all_reduce_sum(values); }
  // Element by element, (n) on every rank.
  void all_reduce_max(std::span<int64_t> values) { do_all_reduce_max(values); }
  [[nodiscard]] int64_t all_reduce_max(int64_t value) {
    do_all_reduce_max(std::span(&value, 1));
    return value;
  }

  // Rank `root`'s content goes to all; equal lengths. The string form also carries the length.
  void broadcast(std::span<std::byte> bytes, int root);
  void broadcast(std::string& text, int root);

  // (sum of counts) -> (counts[rank]): the ranks' sum of part `rank`. `counts` is equal on all
  // ranks, `part` does not overlap `values`. Which bits depends on the number of ranks.
  void reduce_scatter_sum(std::span<const float> values, Counts counts, std::span<float> part);
  void reduce_scatter_sum(std::span<const double> values, Counts counts, std::span<double> part);

  // (counts[rank]) -> (sum of counts): part k comes from rank k. `counts` is equal on all ranks,
  // `all` does not overlap `mine`.
  void all_gather(std::span<const float> mine, Counts counts, std::span<float> all);
  void all_gather(std::span<const double> mine, Counts counts, std::span<double> all);
  void all_gather(std::span<const std::byte> mine, Counts counts, std::span<std::byte> all);
  // Element k comes from rank k; lengths are free.
  [[nodiscard]] std::vector<std::string> all_gather(std::string_view mine);

  // (sum of send_counts) -> (sum of receive_counts): part k of `send` goes to rank k, part k of
  // `receive` comes from rank k. send_counts[k] here is receive_counts[rank] on rank k.
  void all_to_all(std::span<const float> send, Counts send_counts, std::span<float> receive,
                  Counts receive_counts);
  void all_to_all(std::span<const double> send, Counts send_counts, std::span<double> receive,
                  Counts receive_counts);

  void barrier() { do_barrier(); }

  // A second handle on the same ranks whose calls do not mix with this one's. Collective.
  [[nodiscard]] std::unique_ptr<Communicator> duplicate() { return do_duplicate(); }

  // Ends the group: waiting peers and later calls are released. From any thread, on one rank or on
  // several. Under MPI it ends every process with `exit_code` and does not return; in a local group
  // the peers' calls throw DeviceError with `reason`, and abort() returns. Report first.
  void abort(std::string_view reason, int exit_code) noexcept { do_abort(reason, exit_code); }

 protected:
  Communicator(int rank, int size);

 private:
  void check_reduce_scatter(std::span<const std::byte> values, Counts counts,
                            std::span<const std::byte> part, int64_t element_bytes) const;
  void all_gather(std::span<const std::byte> mine, Counts counts, std::span<std::byte> all,
                  int64_t element_bytes);
  void all_to_all(std::span<const std::byte> send, Counts send_counts, std::span<std::byte> receive,
                  Counts receive_counts, int64_t element_bytes);

  virtual void do_all_reduce_sum(std::span<float> values) = 0;
  virtual void do_all_reduce_sum(std::span<double> values) = 0;
  // Counts are elements.
  virtual void do_reduce_scatter_sum(std::span<const float> values, Counts counts,
                                     std::span<float> part) = 0;
  virtual void do_reduce_scatter_sum(std::span<const double> values, Counts counts,
                                     std::span<double> part) = 0;
  virtual void do_all_reduce_max(std::span<int64_t> values) = 0;
  virtual void do_broadcast(std::span<std::byte> bytes, int root) = 0;
  // Counts are in bytes.
  virtual void do_all_gather(std::span<const std::byte> mine, Counts counts,
                             std::span<std::byte> all) = 0;
  virtual void do_all_to_all(std::span<const std::byte> send, Counts send_counts,
                             std::span<std::byte> receive, Counts receive_counts) = 0;
  virtual void do_barrier() = 0;
  virtual std::unique_ptr<Communicator> do_duplicate() = 0;
  virtual void do_abort(std::string_view reason, int exit_code) noexcept = 0;

  int rank_;
  int size_;
};

}  // namespace fathom::dist
