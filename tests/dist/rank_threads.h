// Runs a function as every rank of a local group, one thread each. A rank that throws aborts the
// group, and the first exception thrown is thrown again here.
#pragma once

#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "dist/local_communicator.h"

namespace fathom::dist {

template <class F>
void run_ranks(int size, F&& f) {
  std::mutex mutex;
  std::exception_ptr first;
  std::vector<std::unique_ptr<Communicator>> group = make_local_group(size);
  std::vector<std::thread> threads;
  for (auto& handle : group) {
    threads.emplace_back([&f, &mutex, &first, rank = std::move(handle)] {
      try {
        f(*rank);
      } catch (const std::exception& e) {
        const std::lock_guard lock(mutex);
        if (!first) first = std::current_exception();
        rank->abort(e.what(), 7);
      }
    });
  }
  for (std::thread& t : threads) t.join();
  if (first) std::rethrow_exception(first);
}

}  // namespace fathom::dist
