// A device library that keeps the contract of core/kernels/table.h as strictly as a GPU could, with
// the cpu device's kernels and so its bits:
//   an access of the host outside of kernels, copies and host functions is a segmentation fault;
//   each context is a queue in which nothing runs before a download, a synchronise or a wait of
//   another context needs it, and then no more than is needed;
//   fresh, released and discarded memory is NaN; uploads read staging memory when they run.
//
// Environment: FATHOM_GUARD_SCHEDULE is `late` (default), or `early:K`: context K (0 compute,
// 1 communication, 2 copy) runs everything at once, the others late. A correct program gives the
// same result under all of them. FATHOM_GUARD_REPORT names a file to which a line of JSON is
// appended for each device when it is destroyed: waits, kernels, uploads, staging blocks.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include <sys/mman.h>
#include <unistd.h>

#include "core/kernels/devices.h"

namespace fathom::guard {
namespace {

using namespace kernels;  // this file is one side of their boundary

constexpr uint64_t kMemory = 256 << 20;  // what the device says it has
constexpr uint64_t kPage = 2 << 20;      // huge ones, so that protecting memory is quick

struct Device;
struct Context;

struct Event {
  Context* context;
  int64_t position;  // operations of the context that come before it
  bool is_done = false;
  double seconds = 0;
};
using EventRef = std::shared_ptr<Event>;

struct Operation {
  std::function<Status()> run;
  std::function<void()> cancel = {};
  EventRef wait_for = {};
};

struct Context {
  Device& device;
  int kind;
  std::deque<Operation> queue = {};
  int64_t given = 0, done = 0;
  Status failure = kOk;
};

struct Device {
  DeviceHandle* inner = nullptr;
  ContextHandle* inner_context = nullptr;
  int early = -1;  // the context that runs at once
  std::map<char*, uint64_t> blocks;
  int open = 0;  // memory is reachable while above 0
  std::string error;
  int64_t waits = 0, kernels = 0, uploads = 0, staging = 0;
  std::recursive_mutex mutex;

  void protect(int protection) {
    for (const auto& [begin, bytes] : blocks) mprotect(begin, bytes, protection);
  }
};

Device& of(DeviceHandle* d) { return *reinterpret_cast<Device*>(d); }
Context& of(ContextHandle* c) { return *reinterpret_cast<Context*>(c); }
EventRef& of(EventHandle* e) { return *reinterpret_cast<EventRef*>(e); }

// Memory is accessible while one exists.
class Access {
 public:
  explicit Access(Device& device) : device_(device) {
    if (device_.open++ == 0) device_.protect(PROT_READ | PROT_WRITE);
  }
  ~Access() {
    if (--device_.open == 0) device_.protect(PROT_NONE);
  }
  Access(const Access&) = delete;
  Access& operator=(const Access&) = delete;

 private:
  Device& device_;
};

// Runs the context's queue until `position` operations are done.
void force(Context& context, int64_t position) {
  const Access access(context.device);
  while (context.done < position) {
    Operation operation = std::move(context.queue.front());
    context.queue.pop_front();
    ++context.done;
    if (operation.wait_for) {
      Event& event = *operation.wait_for;
      force(*event.context, event.position);
      if (context.failure == kOk) context.failure = event.context->failure;
    }
    if (context.failure != kOk) {
      if (operation.cancel) operation.cancel();
      continue;
    }
    context.failure = operation.run();
    if (context.failure != kOk && context.device.error.empty())
      context.device.error = cpu_device().last_error(context.device.inner);
  }
}

Status give(Context& context, Operation operation) {
  const std::lock_guard lock(context.device.mutex);
  context.queue.push_back(std::move(operation));
  ++context.given;
  if (context.kind == context.device.early) force(context, context.given);
  return context.failure;
}

// Identifies each kernel of the table; their argument types are all different.
template <class Args>
Kernel<Args> Kernels::*member_of = nullptr;

template <class Args>
Status kernel(ContextHandle* handle, const Args* args) {
  Context& context = of(handle);
  ++context.device.kernels;
  return give(context, {.run = [&context, a = *args] {
                const auto member = member_of<Args>;
                return (cpu_device().kernels.*member)(context.device.inner_context, &a);
              }});
}

Status create(const DeviceOptions* options, DeviceHandle** out) {
  auto device = std::make_unique<Device>();
  const char* schedule = std::getenv("FATHOM_GUARD_SCHEDULE");
  if (schedule != nullptr && std::strncmp(schedule, "early:", 6) == 0)
    device->early = std::atoi(schedule + 6);
  if (const Status status = cpu_device().create(options, &device->inner); status != kOk)
    return status;
  if (const Status status =
          cpu_device().create_context(device->inner, ContextKind::kCompute, &device->inner_context);
      status != kOk)
    return status;
  *out = reinterpret_cast<DeviceHandle*>(device.release());
  return kOk;
}

void destroy(DeviceHandle* handle) {
  Device& device = of(handle);
  if (const char* path = std::getenv("FATHOM_GUARD_REPORT")) {
    std::ofstream out(path, std::ios::app);
    out << "{\"waits\": " << device.waits << ", \"kernels\": " << device.kernels
        << ", \"uploads\": " << device.uploads << ", \"staging\": " << device.staging << "}\n";
  }
  for (const auto& [begin, bytes] : device.blocks) munmap(begin, bytes);
  cpu_device().destroy_context(device.inner_context);
  cpu_device().destroy(device.inner);
  delete &device;
}

Status info(DeviceHandle* handle, DeviceInfo* out) {
  const Status status = cpu_device().info(of(handle).inner, out);
  out->name = "guard";
  out->memory_total = kMemory;
  return status;
}

Status peak_flops(DeviceHandle*, DType, double* out) {
  *out = 1e9;  // of no use here
  return kOk;
}

const char* last_error(DeviceHandle* handle) {
  return handle == nullptr ? cpu_device().last_error(nullptr) : of(handle).error.c_str();
}

Status create_context(DeviceHandle* device, ContextKind kind, ContextHandle** out) {
  *out = reinterpret_cast<ContextHandle*>(new Context{.device = of(device), .kind = int(kind)});
  return kOk;
}

void destroy_context(ContextHandle* handle) {
  Context& context = of(handle);
  {
    const std::lock_guard lock(context.device.mutex);
    force(context, context.given);
  }
  delete &context;
}

// Of whole pages, found by its address when it is released.
Status allocate(ContextHandle* handle, uint64_t bytes, void** out) {
  Device& device = of(handle).device;
  const std::lock_guard lock(device.mutex);
  const uint64_t size = (bytes + kPage - 1) / kPage * kPage;
  void* area = mmap(nullptr, size + kPage, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (area == MAP_FAILED) return kOutOfMemory;
  char* begin = static_cast<char*>(area);
  char* aligned = begin + (kPage - reinterpret_cast<uintptr_t>(begin) % kPage) % kPage;
  if (aligned != begin) munmap(begin, size_t(aligned - begin));
  if (begin + kPage != aligned) munmap(aligned + size, size_t(begin + kPage - aligned));
  madvise(aligned, size, MADV_HUGEPAGE);
  std::memset(aligned, 0xFF, bytes);
  if (device.open == 0) mprotect(aligned, size, PROT_NONE);
  device.blocks.emplace(aligned, size);
  *out = aligned;
  return kOk;
}

Status release(ContextHandle* handle, void* memory) {
  Device& device = of(handle).device;
  const auto unmap = [&device, memory] {
    const auto found = device.blocks.find(static_cast<char*>(memory));
    munmap(found->first, found->second);
    device.blocks.erase(found);
    return kOk;
  };
  return give(of(handle), {.run = unmap, .cancel = [unmap] { unmap(); }});
}

Status discard(ContextHandle* handle, void* memory, uint64_t bytes) {
  return give(of(handle), {.run = [memory, bytes] {
                std::memset(memory, 0xFF, bytes);
                return kOk;
              }});
}

Status allocate_staging(DeviceHandle* handle, uint64_t bytes, void** out) {
  if (handle != nullptr) ++of(handle).staging;
  *out = std::malloc(bytes);
  return *out == nullptr ? kOutOfMemory : kOk;
}

void release_staging(DeviceHandle*, void* memory) { std::free(memory); }

Status copy(ContextHandle* handle, void* to, const void* from, uint64_t bytes) {
  return give(of(handle), {.run = [=] {
                std::memcpy(to, from, bytes);
                return kOk;
              }});
}

Status upload(ContextHandle* handle, void* to, const void* from, uint64_t bytes) {
  ++of(handle).device.uploads;
  return copy(handle, to, from, bytes);
}

Status wait_for_all(Context& context) {
  const std::lock_guard lock(context.device.mutex);
  ++context.device.waits;
  force(context, context.given);
  return context.failure;
}

// Until the queue reaches it the host finds NaN there.
Status download(ContextHandle* handle, void* to, const void* from, uint64_t bytes) {
  std::memset(to, 0xFF, bytes);
  return copy(handle, to, from, bytes);
}

Status synchronise(ContextHandle* handle) { return wait_for_all(of(handle)); }

Status record(ContextHandle* handle, EventHandle** out) {
  Context& context = of(handle);
  const auto event =
      std::make_shared<Event>(Event{.context = &context, .position = context.given + 1});
  *out = reinterpret_cast<EventHandle*>(new EventRef(event));
  const auto happen = [event] {
    event->is_done = true;
    event->seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
    return kOk;
  };
  return give(context, {.run = happen, .cancel = [happen] { happen(); }});
}

Status wait(ContextHandle* handle, EventHandle* event) {
  return give(of(handle), {.run = [] { return kOk; }, .wait_for = of(event)});
}

Status is_done(EventHandle* event, int32_t* out) {
  *out = of(event)->is_done ? 1 : 0;
  return kOk;
}

Status elapsed(EventHandle* from, EventHandle* to, double* seconds) {
  if (!of(from)->is_done || !of(to)->is_done) return kBadArgument;
  *seconds = of(to)->seconds - of(from)->seconds;
  return kOk;
}

void destroy_event(EventHandle* event) { delete &of(event); }

Status call(ContextHandle* handle, Status (*f)(void*, int32_t), void* argument) {
  return give(of(handle),
              {.run = [=] { return f(argument, 1); }, .cancel = [=] { f(argument, 0); }});
}

DeviceTable table() {
  DeviceTable t = {};
  t.version = kDeviceTableVersion;
  t.bytes = sizeof(DeviceTable);
  t.create = create;
  t.destroy = destroy;
  t.info = info;
  t.peak_flops = peak_flops;
  t.last_error = last_error;
  t.create_context = create_context;
  t.destroy_context = destroy_context;
  t.allocate = allocate;
  t.release = release;
  t.discard = discard;
  t.allocate_staging = allocate_staging;
  t.release_staging = release_staging;
  t.upload = upload;
  t.copy = copy;
  t.download = download;
  t.record = record;
  t.wait = wait;
  t.is_done = is_done;
  t.elapsed = elapsed;
  t.destroy_event = destroy_event;
  t.synchronise = synchronise;
  t.call = call;
  for_each_kernel([&t]<class Args>(const char*, Kernel<Args> Kernels::*member) {
    member_of<Args> = member;
    t.kernels.*member = kernel<Args>;
  });
  return t;
}

}  // namespace
}  // namespace fathom::guard

extern "C" __attribute__((visibility("default"))) const fathom::kernels::DeviceTable*
fathom_device_table(uint32_t version) {
  static const fathom::kernels::DeviceTable instance = fathom::guard::table();
  return version == fathom::kernels::kDeviceTableVersion ? &instance : nullptr;
}
