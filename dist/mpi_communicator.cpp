#include "dist/mpi_communicator.h"

#include <algorithm>
#include <cstring>

#include <mpi.h>

#include "core/base/error.h"

namespace fathom::dist {
namespace {

void check_mpi(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(code, text, &length);
  fail<DeviceError>(call, ": ", std::string_view(text, size_t(length)),
                    "; a peer was lost or ranks made different calls");
}

// Calls piece(offset, count) over [0, n) in steps of at most `largest`; once with 0 for n = 0, so
// that an empty call is still collective.
template <class Piece>
void in_pieces(int64_t n, int64_t largest, Piece&& piece) {
  int64_t offset = 0;
  do {
    const int64_t count = std::min(largest, n - offset);
    piece(offset, int(count));
    offset += count;
  } while (offset < n);
}

class MpiCommunicator final : public Communicator {
 public:
  // Takes ownership of `handle`.
  MpiCommunicator(MPI_Comm handle, int rank, int size, int64_t largest_count)
      : Communicator(rank, size), handle_(handle), largest_(largest_count) {}
  ~MpiCommunicator() override {
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (finalized == 0) MPI_Comm_free(&handle_);
  }

  static std::unique_ptr<Communicator> copy_of(MPI_Comm original, int64_t largest_count) {
    MPI_Comm handle = MPI_COMM_NULL;
    check_mpi(MPI_Comm_dup(original, &handle), "MPI_Comm_dup");
    return owner_of(handle, largest_count);
  }

  static std::unique_ptr<Communicator> owner_of(MPI_Comm handle, int64_t largest_count) {
    check_mpi(MPI_Comm_set_errhandler(handle, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    int rank = 0;
    int size = 0;
    check_mpi(MPI_Comm_rank(handle, &rank), "MPI_Comm_rank");
    check_mpi(MPI_Comm_size(handle, &size), "MPI_Comm_size");
    return std::make_unique<MpiCommunicator>(handle, rank, size, largest_count);
  }

 private:
  void do_all_reduce_sum(std::span<float> values) override { sum(values, MPI_FLOAT); }
  void do_all_reduce_sum(std::span<double> values) override { sum(values, MPI_DOUBLE); }

  template <class T>
  void sum(std::span<T> values, MPI_Datatype type) {
    in_pieces(int64_t(values.size()), largest_, [&](int64_t offset, int count) {
      check_mpi(MPI_Allreduce(MPI_IN_PLACE, values.data() + offset, count, type, MPI_SUM, handle_),
                "MPI_Allreduce");
    });
  }

  void do_reduce_scatter_sum(std::span<const float> values, Counts counts,
                             std::span<float> part) override {
    sum_part(values, counts, part, MPI_FLOAT);
  }
  void do_reduce_scatter_sum(std::span<const double> values, Counts counts,
                             std::span<double> part) override {
    sum_part(values, counts, part, MPI_DOUBLE);
  }

  template <class T>
  void sum_part(std::span<const T> values, Counts counts, std::span<T> part, MPI_Datatype type) {
    if (int64_t(values.size()) > largest_) {  // one reduction per part, as in all_gather
      const T* from = values.data();
      for (int r = 0; r < size(); ++r) {
        in_pieces(counts[size_t(r)], largest_, [&](int64_t offset, int count) {
          T* const to = r == rank() ? part.data() + offset : nullptr;
          check_mpi(MPI_Reduce(from + offset, to, count, type, MPI_SUM, r, handle_), "MPI_Reduce");
        });
        from += counts[size_t(r)];
      }
      return;
    }
    const std::vector<int> lengths(counts.begin(), counts.end());
    check_mpi(
        MPI_Reduce_scatter(values.data(), part.data(), lengths.data(), type, MPI_SUM, handle_),
        "MPI_Reduce_scatter");
  }

  void do_all_reduce_max(std::span<int64_t> values) override {
    check_mpi(MPI_Allreduce(MPI_IN_PLACE, values.data(), int(values.size()), MPI_INT64_T, MPI_MAX,
                            handle_),
              "MPI_Allreduce");
  }

  void do_broadcast(std::span<std::byte> bytes, int root) override {
    in_pieces(int64_t(bytes.size()), largest_, [&](int64_t offset, int count) {
      check_mpi(MPI_Bcast(bytes.data() + offset, count, MPI_BYTE, root, handle_), "MPI_Bcast");
    });
  }

  void do_all_gather(std::span<const std::byte> mine, Counts counts,
                     std::span<std::byte> all) override {
    if (int64_t(all.size()) > largest_) {  // offsets are ints as well: one broadcast per part
      int64_t begin = 0;
      for (int r = 0; r < size(); ++r) {
        const int64_t bytes = counts[size_t(r)];
        if (r == rank() && bytes > 0) std::memcpy(all.data() + begin, mine.data(), mine.size());
        if (bytes > 0) do_broadcast(all.subspan(size_t(begin), size_t(bytes)), r);
        begin += bytes;
      }
      return;
    }
    std::vector<int> lengths;
    std::vector<int> offsets;
    int begin = 0;
    for (const int64_t bytes : counts) {
      lengths.push_back(int(bytes));
      offsets.push_back(begin);
      begin += int(bytes);
    }
    check_mpi(MPI_Allgatherv(mine.data(), int(mine.size()), MPI_BYTE, all.data(), lengths.data(),
                             offsets.data(), MPI_BYTE, handle_),
              "MPI_Allgatherv");
  }

  // Messages in pieces instead of MPI_Alltoallv, whose offsets are ints: a rank does not know
  // whether the others' parts fit, so all ranks do what always works. Open MPI's own MPI_Alltoallv
  // posts the same messages.
  void do_all_to_all(std::span<const std::byte> send, Counts send_counts,
                     std::span<std::byte> receive, Counts receive_counts) override {
    std::vector<MPI_Request> requests;
    const auto post = [&](int64_t bytes, auto&& start) {
      if (bytes == 0) return;
      in_pieces(bytes, largest_, [&](int64_t offset, int count) {
        start(offset, count, &requests.emplace_back(MPI_REQUEST_NULL));
      });
    };
    int64_t begin = 0;
    int64_t own_receive = 0;
    for (int r = 0; r < size(); ++r) {
      if (r == rank()) own_receive = begin;
      post(r == rank() ? 0 : receive_counts[size_t(r)], [&](int64_t offset, int n, MPI_Request* q) {
        check_mpi(MPI_Irecv(receive.data() + begin + offset, n, MPI_BYTE, r, kTag, handle_, q),
                  "MPI_Irecv");
      });
      begin += receive_counts[size_t(r)];
    }
    begin = 0;
    for (int r = 0; r < size(); ++r) {
      const int64_t bytes = send_counts[size_t(r)];
      if (r == rank() && bytes > 0)
        std::memcpy(receive.data() + own_receive, send.data() + begin, size_t(bytes));
      post(r == rank() ? 0 : bytes, [&](int64_t offset, int n, MPI_Request* q) {
        check_mpi(MPI_Isend(send.data() + begin + offset, n, MPI_BYTE, r, kTag, handle_, q),
                  "MPI_Isend");
      });
      begin += bytes;
    }
    wait_all(requests);
  }

  // One by one: Open MPI 4.1's MPI_Waitall may spin indefinitely when a request fails. All are
  // waited for before the first error is thrown, since MPI still writes into their buffers.
  static void wait_all(std::vector<MPI_Request>& requests) {
    int first_error = MPI_SUCCESS;
    for (MPI_Request& request : requests) {
      const int code = MPI_Wait(&request, MPI_STATUS_IGNORE);
      if (first_error == MPI_SUCCESS) first_error = code;
    }
    check_mpi(first_error, "MPI_Wait");
  }

  void do_barrier() override { check_mpi(MPI_Barrier(handle_), "MPI_Barrier"); }

  std::unique_ptr<Communicator> do_duplicate() override { return copy_of(handle_, largest_); }

  void do_abort(std::string_view, int exit_code) noexcept override {
    MPI_Abort(MPI_COMM_WORLD, exit_code);
  }

  static constexpr int kTag = 1;

  MPI_Comm handle_;
  int64_t largest_;
};

}  // namespace

std::unique_ptr<Communicator> make_mpi_communicator(const MpiSession&, int64_t largest_count) {
  require(largest_count >= 1 && largest_count <= kLargestMpiCount,
          "MPI communicator: largest count is ", largest_count, ", expected 1 to ",
          kLargestMpiCount);
  return MpiCommunicator::copy_of(MPI_COMM_WORLD, largest_count);
}

std::unique_ptr<Communicator> make_node_communicator(const MpiSession&) {
  MPI_Comm handle = MPI_COMM_NULL;
  check_mpi(
      MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, /*key=*/0, MPI_INFO_NULL, &handle),
      "MPI_Comm_split_type");
  return MpiCommunicator::owner_of(handle, kLargestMpiCount);
}

}  // namespace fathom::dist
