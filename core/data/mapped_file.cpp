#include "core/data/mapped_file.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <functional>
#include <mutex>

#include <sys/mman.h>
#include <sys/stat.h>

#include "core/base/file.h"

namespace fathom::data {
namespace {

// Readable in a signal handler without a lock. Mappings beyond the last slot are not recorded.
struct Slot {
  std::atomic<const char*> begin{nullptr};  // nullptr: free
  std::atomic<size_t> size{0};
  std::array<char, 512> path{};
};
static_assert(std::atomic<const char*>::is_always_lock_free);
static_assert(std::atomic<size_t>::is_always_lock_free);

std::array<Slot, 64> slots;
std::mutex writing;

void remember(const char* begin, size_t size, const std::filesystem::path& path) {
  const std::lock_guard lock(writing);
  for (Slot& slot : slots) {
    if (slot.begin != nullptr) continue;
    slot.path = {};
    std::strncpy(slot.path.data(), path.c_str(), slot.path.size() - 1);
    slot.size = size;
    slot.begin = begin;
    return;
  }
}

void forget(const char* begin) {
  const std::lock_guard lock(writing);
  for (Slot& slot : slots)
    if (slot.begin == begin) slot.begin = nullptr;
}

}  // namespace

std::shared_ptr<const std::string_view> map_file(const std::filesystem::path& path) {
  const FileDescriptor file = open_to_read(path);
  if (!file.is_open()) fail_io("data", "opening", path, errno, Access::kReading);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) fail_io("data", "mapping", path, errno, Access::kReading);
  const auto size = size_t(status.st_size);
  if (size == 0) return std::make_shared<const std::string_view>();
  void* pages = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file.get(), 0);
  if (pages == MAP_FAILED) fail_io("data", "mapping", path, errno, Access::kReading);

  const auto* begin = static_cast<const char*>(pages);
  remember(begin, size, path);
  const auto unmap = [](const std::string_view* view) {
    forget(view->data());
    ::munmap(const_cast<char*>(view->data()), view->size());
    delete view;
  };
  return {new const std::string_view(begin, size), unmap};
}

const char* mapped_file_at(const void* address) {
  const auto* wanted = static_cast<const char*>(address);
  for (const Slot& slot : slots) {
    const char* begin = slot.begin;
    // std::less orders pointers into different objects too.
    if (begin != nullptr && !std::less<>()(wanted, begin) &&
        std::less<>()(wanted, begin + slot.size))
      return slot.path.data();
  }
  return nullptr;
}

}  // namespace fathom::data
