#include "dist/communicator.h"

#include <functional>

#include "core/base/error.h"

namespace fathom::dist {
namespace {

// `counts` has one entry per rank, none negative, and they add up to the buffer's length.
void check_counts(const char* call, const char* buffer, Counts counts, int size, size_t bytes,
                  int64_t element_bytes) {
  require(counts.size() == size_t(size), call, ": got ", counts.size(), " counts for ", buffer,
          ", expected one per rank (", size, ")");
  int64_t total = 0;
  for (const int64_t count : counts) {
    require(count >= 0, call, ": a count for ", buffer, " is ", count, ", expected 0 or more");
    total += count;
  }
  const int64_t length = int64_t(bytes) / element_bytes;
  require(total == length, call, ": ", buffer, " has ", length, " elements, but its counts add to ",
          total);
}

void check_apart(const char* call, std::span<const std::byte> in, std::span<const std::byte> out) {
  const std::less<const std::byte*> before;
  const bool apart = in.empty() || out.empty() || !before(in.data(), out.data() + out.size()) ||
                     !before(out.data(), in.data() + in.size());
  require(apart, call, ": input and output overlap; use two buffers");
}

std::vector<int64_t> in_bytes(Counts counts, int64_t element_bytes) {
  std::vector<int64_t> bytes(counts.begin(), counts.end());
  for (int64_t& count : bytes) count *= element_bytes;
  return bytes;
}

}  // namespace

Communicator::Communicator(int rank, int size) : rank_(rank), size_(size) {
  require(size >= 1 && rank >= 0 && rank < size, "communicator: got rank ", rank, " of ", size,
          ", expected 0 <= rank < size");
}

void Communicator::check_reduce_scatter(std::span<const std::byte> values, Counts counts,
                                        std::span<const std::byte> part,
                                        int64_t element_bytes) const {
  check_counts("reduce_scatter_sum", "the input", counts, size_, values.size(), element_bytes);
  const int64_t length = int64_t(part.size()) / element_bytes;
  require(counts[size_t(rank_)] == length, "reduce_scatter_sum: rank ", rank_, " has room for ",
          length, " elements, but its count is ", counts[size_t(rank_)]);
  check_apart("reduce_scatter_sum", values, part);
}

void Communicator::reduce_scatter_sum(std::span<const float> values, Counts counts,
                                      std::span<float> part) {
  check_reduce_scatter(std::as_bytes(values), counts, std::as_bytes(part), sizeof(float));
  do_reduce_scatter_sum(values, counts, part);
}

void Communicator::reduce_scatter_sum(std::span<const double> values, Counts counts,
                                      std::span<double> part) {
  check_reduce_scatter(std::as_bytes(values), counts, std::as_bytes(part), sizeof(double));
  do_reduce_scatter_sum(values, counts, part);
}

void Communicator::broadcast(std::span<std::byte> bytes, int root) {
  require(root >= 0 && root < size_, "broadcast: root is ", root, ", expected 0 to ", size_ - 1);
  do_broadcast(bytes, root);
}

void Communicator::broadcast(std::string& text, int root) {
  int64_t length = int64_t(text.size());
  broadcast(std::as_writable_bytes(std::span(&length, 1)), root);
  text.resize(size_t(length));
  broadcast(std::as_writable_bytes(std::span(text)), root);
}

void Communicator::all_gather(std::span<const std::byte> mine, Counts counts,
                              std::span<std::byte> all, int64_t element_bytes) {
  check_counts("all_gather", "the output", counts, size_, all.size(), element_bytes);
  const int64_t length = int64_t(mine.size()) / element_bytes;
  require(counts[size_t(rank_)] == length, "all_gather: rank ", rank_, " brings ", length,
          " elements, but its count is ", counts[size_t(rank_)]);
  check_apart("all_gather", mine, all);
  do_all_gather(mine, in_bytes(counts, element_bytes), all);
}

void Communicator::all_gather(std::span<const float> mine, Counts counts, std::span<float> all) {
  all_gather(std::as_bytes(mine), counts, std::as_writable_bytes(all), sizeof(float));
}

void Communicator::all_gather(std::span<const double> mine, Counts counts, std::span<double> all) {
  all_gather(std::as_bytes(mine), counts, std::as_writable_bytes(all), sizeof(double));
}

void Communicator::all_gather(std::span<const std::byte> mine, Counts counts,
                              std::span<std::byte> all) {
  all_gather(mine, counts, all, 1);
}

std::vector<std::string> Communicator::all_gather(std::string_view mine) {
  const int64_t length = int64_t(mine.size());
  std::vector<int64_t> lengths(size_t(size_), 0);
  const std::vector<int64_t> one_each(size_t(size_), int64_t(sizeof(int64_t)));
  all_gather(std::as_bytes(std::span(&length, 1)), one_each,
             std::as_writable_bytes(std::span(lengths)));

  int64_t total = 0;
  for (const int64_t n : lengths) total += n;
  std::string all(size_t(total), '\0');
  all_gather(std::as_bytes(std::span(mine)), lengths, std::as_writable_bytes(std::span(all)));

  std::vector<std::string> parts;
  size_t begin = 0;
  for (const int64_t n : lengths) {
    parts.push_back(all.substr(begin, size_t(n)));
    begin += size_t(n);
  }
  return parts;
}

void Communicator::all_to_all(std::span<const std::byte> send, Counts send_counts,
                              std::span<std::byte> receive, Counts receive_counts,
                              int64_t element_bytes) {
  check_counts("all_to_all", "the input", send_counts, size_, send.size(), element_bytes);
  check_counts("all_to_all", "the output", receive_counts, size_, receive.size(), element_bytes);
  require(send_counts[size_t(rank_)] == receive_counts[size_t(rank_)], "all_to_all: rank ", rank_,
          " sends itself ", send_counts[size_t(rank_)], " elements, but expects ",
          receive_counts[size_t(rank_)]);
  check_apart("all_to_all", send, receive);
  do_all_to_all(send, in_bytes(send_counts, element_bytes), receive,
                in_bytes(receive_counts, element_bytes));
}

void Communicator::all_to_all(std::span<const float> send, Counts send_counts,
                              std::span<float> receive, Counts receive_counts) {
  all_to_all(std::as_bytes(send), send_counts, std::as_writable_bytes(receive), receive_counts,
             sizeof(float));
}

void Communicator::all_to_all(std::span<const double> send, Counts send_counts,
                              std::span<double> receive, Counts receive_counts) {
  all_to_all(std::as_bytes(send), send_counts, std::as_writable_bytes(receive), receive_counts,
             sizeof(double));
}

}  // namespace fathom::dist
