#include "shared_memory_group.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <functional>
#include <vector>

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/kernels/devices.h"

namespace fathom::kernels {
namespace {

constexpr int32_t kMostRanks = 8;
constexpr int64_t kWindowBytes = 4096;  // small, so that ordinary buckets take several rounds

struct Shared {
  std::atomic<int32_t> is_ready;
  pthread_barrier_t barrier;
  struct Rank {
    int64_t bytes;               // that it publishes in this operation
    int64_t counts[kMostRanks];  // of its parts, where they differ by receiver
    std::byte window[kWindowBytes];
  } ranks[kMostRanks];
};

struct Group {
  Shared* shared;
  int32_t rank, ranks;

  void meet() const { pthread_barrier_wait(&shared->barrier); }

  // Every rank publishes `bytes` of `mine`; read(rank, at, window, n) gets all of them, piece by
  // piece, ranks in order within a piece. `begin` is called when the counts of all are there.
  void exchange(
      const void* mine, int64_t bytes, const int64_t* counts, const std::function<void()>& begin,
      const std::function<void(int32_t, int64_t, const std::byte*, int64_t)>& read) const {
    Shared::Rank& own = shared->ranks[rank];
    own.bytes = bytes;
    if (counts != nullptr) std::copy_n(counts, ranks, own.counts);
    meet();
    int64_t longest = 0;
    for (int32_t r = 0; r < ranks; ++r) longest = std::max(longest, shared->ranks[r].bytes);
    if (begin) begin();
    for (int64_t at = 0; at < longest; at += kWindowBytes) {
      const int64_t n = std::clamp<int64_t>(bytes - at, 0, kWindowBytes);
      if (n > 0) std::memcpy(own.window, static_cast<const std::byte*>(mine) + at, size_t(n));
      meet();
      for (int32_t r = 0; r < ranks; ++r) {
        const int64_t there = std::clamp<int64_t>(shared->ranks[r].bytes - at, 0, kWindowBytes);
        if (there > 0) read(r, at, shared->ranks[r].window, there);
      }
      meet();
    }
    meet();  // until all have read `bytes` and `counts`
  }
};

Group& group(GroupHandle* handle) { return *reinterpret_cast<Group*>(handle); }

int64_t size_of_type(DType dtype) { return fathom::kernels::size_of(dtype); }

// Rank 0 comes first: it sets what the others add to.
void sum_up(DType dtype, int32_t rank, void* to, const std::byte* from, int64_t bytes) {
  if (rank == 0) {
    std::memcpy(to, from, size_t(bytes));
    return;
  }
  const auto sum = [&]<class T>(T) {
    T* const y = static_cast<T*>(to);
    for (int64_t i = 0; i < bytes / int64_t(sizeof(T)); ++i) {
      T x;
      std::memcpy(&x, from + i * int64_t(sizeof(T)), sizeof(T));
      y[i] += x;
    }
  };
  dtype == DType::kF64 ? sum(double{}) : sum(float{});
}

// Of [from, from + bytes) what lies in [begin, end): the first place, and how much.
struct Overlap {
  int64_t begin, bytes;
};
Overlap overlap(int64_t from, int64_t bytes, int64_t begin, int64_t end) {
  const int64_t first = std::max(from, begin);
  return {first, std::max<int64_t>(std::min(from + bytes, end) - first, 0)};
}

int64_t sum_before(const std::vector<int64_t>& counts, int32_t rank) {
  int64_t sum = 0;
  for (int32_t r = 0; r < rank; ++r) sum += counts[size_t(r)];
  return sum;
}

std::vector<int64_t> in_bytes(const int64_t* counts, int32_t ranks, DType dtype) {
  std::vector<int64_t> out(counts, counts + ranks);
  for (int64_t& n : out) n *= size_of_type(dtype);
  return out;
}

// In the order of the context, which has a thread of its own or runs it now.
Status queue(ContextHandle* context, std::function<void()> f) {
  return reference_device().call(
      context,
      [](void* argument, int32_t is_wanted) -> Status {
        auto* const call = static_cast<std::function<void()>*>(argument);
        if (is_wanted != 0) (*call)();
        delete call;
        return kOk;
      },
      new std::function<void()>(std::move(f)));
}

Status name_group(DeviceHandle*, char* id) {
  static std::atomic<int> made = 0;
  std::snprintf(id, kGroupIdBytes, "/fathom-test-group-%d-%d", int(getpid()), ++made);
  const int file = shm_open(id, O_CREAT | O_EXCL | O_RDWR, 0600);
  if (file < 0) return kFailed;
  const bool is_sized = ftruncate(file, sizeof(Shared)) == 0;
  close(file);
  return is_sized ? kOk : kFailed;
}

Status join_group(DeviceHandle*, const char* id, int32_t rank, int32_t ranks, GroupHandle** out) {
  if (ranks > kMostRanks) return kBadArgument;
  const int file = shm_open(id, O_RDWR, 0600);
  if (file < 0) return kFailed;
  void* const memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (memory == MAP_FAILED) return kOutOfMemory;
  auto* const shared = static_cast<Shared*>(memory);
  if (rank == 0) {
    pthread_barrierattr_t between_processes;
    pthread_barrierattr_init(&between_processes);
    pthread_barrierattr_setpshared(&between_processes, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&shared->barrier, &between_processes, unsigned(ranks));
    pthread_barrierattr_destroy(&between_processes);
    shared->is_ready = 1;
  }
  const timespec pause = {.tv_sec = 0, .tv_nsec = 1'000'000};
  while (shared->is_ready == 0) nanosleep(&pause, nullptr);
  auto* const joined = new Group{shared, rank, ranks};
  joined->meet();
  if (rank == 0) shm_unlink(id);  // the memory stays with those who have mapped it
  *out = reinterpret_cast<GroupHandle*>(joined);
  return kOk;
}

void leave_group(GroupHandle* handle) {
  munmap(group(handle).shared, sizeof(Shared));
  delete &group(handle);
}

Status all_reduce_sum(ContextHandle* context, GroupHandle* handle, DType dtype, void* values,
                      int64_t count) {
  return queue(context, [&g = group(handle), dtype, values, bytes = count * size_of_type(dtype)] {
    g.exchange(values, bytes, nullptr, {},
               [&](int32_t rank, int64_t at, const std::byte* window, int64_t n) {
                 std::byte* const to = static_cast<std::byte*>(values) + at;  // published before
                 sum_up(dtype, rank, to, window, n);
               });
  });
}

Status reduce_scatter_sum(ContextHandle* context, GroupHandle* handle, DType dtype,
                          const void* values, const int64_t* counts, void* part) {
  Group& g = group(handle);
  return queue(context, [&g, dtype, values, n = in_bytes(counts, g.ranks, dtype), part] {
    const int64_t begin = sum_before(n, g.rank), bytes = n[size_t(g.rank)];
    g.exchange(values, sum_before(n, g.ranks), nullptr, {},
               [&](int32_t rank, int64_t at, const std::byte* window, int64_t there) {
                 const Overlap mine = overlap(at, there, begin, begin + bytes);
                 if (mine.bytes > 0)
                   sum_up(dtype, rank, static_cast<std::byte*>(part) + (mine.begin - begin),
                          window + (mine.begin - at), mine.bytes);
               });
  });
}

Status all_gather(ContextHandle* context, GroupHandle* handle, DType dtype, const void* mine,
                  const int64_t* counts, void* all) {
  Group& g = group(handle);
  return queue(context, [&g, mine, n = in_bytes(counts, g.ranks, dtype), all] {
    g.exchange(mine, n[size_t(g.rank)], nullptr, {},
               [&](int32_t rank, int64_t at, const std::byte* window, int64_t there) {
                 std::memcpy(static_cast<std::byte*>(all) + sum_before(n, rank) + at, window,
                             size_t(there));
               });
  });
}

Status all_to_all(ContextHandle* context, GroupHandle* handle, DType dtype, const void* send,
                  const int64_t* send_counts, void* receive, const int64_t* receive_counts) {
  Group& g = group(handle);
  return queue(context, [&g, send, to = in_bytes(send_counts, g.ranks, dtype), receive,
                         from = in_bytes(receive_counts, g.ranks, dtype)] {
    std::vector<int64_t> begins(size_t(g.ranks));  // of this rank's part in what each publishes
    g.exchange(
        send, sum_before(to, g.ranks), to.data(),
        [&] {
          for (int32_t r = 0; r < g.ranks; ++r) {
            const int64_t* const counts = g.shared->ranks[r].counts;
            begins[size_t(r)] = sum_before({counts, counts + g.ranks}, g.rank);
          }
        },
        [&](int32_t rank, int64_t at, const std::byte* window, int64_t there) {
          const int64_t begin = begins[size_t(rank)];
          const Overlap mine = overlap(at, there, begin, begin + from[size_t(rank)]);
          if (mine.bytes > 0)
            std::memcpy(
                static_cast<std::byte*>(receive) + sum_before(from, rank) + (mine.begin - begin),
                window + (mine.begin - at), size_t(mine.bytes));
        });
  });
}

}  // namespace

Collectives shared_memory_collectives() {
  return {.name_group = name_group,
          .join_group = join_group,
          .leave_group = leave_group,
          .all_reduce_sum = all_reduce_sum,
          .reduce_scatter_sum = reduce_scatter_sum,
          .all_gather = all_gather,
          .all_to_all = all_to_all};
}

}  // namespace fathom::kernels
