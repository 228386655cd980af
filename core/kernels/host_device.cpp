#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include <sys/mman.h>
#include <unistd.h>

#include "core/base/error.h"
#include "core/base/limits.h"
#include "core/kernels/host_context.h"

namespace fathom::kernels {
namespace {

constexpr uint64_t kAlignment = 64;           // a cache line, and the widest vector register
constexpr uint64_t kMappedBytes = 256 << 10;  // from here on by pages of its own

HostDevice& host(DeviceHandle* device) { return *reinterpret_cast<HostDevice*>(device); }

struct EventState {
  std::mutex mutex;
  std::condition_variable changed;
  bool is_done = false;
  double seconds = 0;
  HostContext::Failure failure;  // of the context that it was recorded on, when it came there

  void set(HostContext::Failure reason) {
    {
      const std::lock_guard lock(mutex);
      is_done = true;
      failure = std::move(reason);
      seconds = std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
                    .count();
    }
    changed.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return is_done; });
    if (failure.status != kOk) throw HostError(failure.status, failure.text);
  }
};
using Event = std::shared_ptr<EventState>;
Event& event(EventHandle* handle) { return *reinterpret_cast<Event*>(handle); }

uint64_t memory_line(const char* path, const std::string& key) {
  std::ifstream in(path);
  for (std::string word; in >> word;)
    if (word == key) {
      uint64_t kibibytes = 0;
      in >> kibibytes;
      return kibibytes << 10;
    }
  return 0;
}

void destroy(DeviceHandle* device) { delete &host(device); }

Status info(DeviceHandle* device, DeviceInfo* out) {
  const HostTraits& traits = host(device).traits();
  out->name = traits.name;
  out->numerics = traits.numerics.c_str();
  out->compute_types = traits.compute_types;
  out->is_host_accessible = 1;
  out->memory_total = uint64_t(memory_limit().bytes);
  out->memory_used = memory_line("/proc/self/status", "VmRSS:");
  out->memory_free = std::min(memory_line("/proc/meminfo", "MemAvailable:"),
                              out->memory_total - std::min(out->memory_used, out->memory_total));
  return kOk;
}

Status peak_flops(DeviceHandle* device, DType, double* out) {
  *out = host(device).traits().peak_flops(host(device).threads());
  return kOk;
}

const char* last_error(DeviceHandle* device) {
  return device == nullptr ? "out of memory" : host(device).error();
}

Status create_context(DeviceHandle* device, ContextKind kind, ContextHandle** out) {
  const bool is_compute = kind == ContextKind::kCompute;
  try {
    *out = reinterpret_cast<ContextHandle*>(
        new HostContext(host(device), is_compute ? host(device).threads() : 1, !is_compute));
    return kOk;
  } catch (const IoError& error) {
    host(device).set_error(error.what());
    return kRefused;
  } catch (const std::exception& error) {
    host(device).set_error(error.what());
    return kFailed;
  }
}

void destroy_context(ContextHandle* context) { delete &host(context); }

Status allocate(ContextHandle* context, uint64_t bytes, void** out) {
  HostDevice& device = host(context).device();
  *out = device.allocate(bytes);
  if (*out != nullptr) return kOk;
  const std::string cause = std::strerror(errno), remedy = reservable_memory().remedy;
  device.set_error(std::to_string(bytes >> 20) + " MiB cannot be had: " + cause +
                   "; make the model or the batch smaller" +
                   (remedy.empty() ? "" : ", or " + remedy));
  return kOutOfMemory;
}

Status release(ContextHandle* context, void* memory) {
  HostContext& c = host(context);
  return c.submit_always([&device = c.device(), memory] { device.release(memory); });
}

Status allocate_staging(DeviceHandle* device, uint64_t bytes, void** out) {
  *out = std::aligned_alloc(kAlignment, (bytes + kAlignment) / kAlignment * kAlignment);
  if (*out != nullptr) return kOk;
  host(device).set_error("no memory for staging");
  return kOutOfMemory;
}

void release_staging(DeviceHandle*, void* memory) { std::free(memory); }

Status copy(ContextHandle* context, void* to, const void* from, uint64_t bytes) {
  return host(context).submit([=] { std::memcpy(to, from, bytes); });
}

Status record(ContextHandle* context, EventHandle** out) {
  const Event state = std::make_shared<EventState>();
  *out = reinterpret_cast<EventHandle*>(new Event(state));
  HostContext& c = host(context);
  return c.submit_always([&c, state] { state->set(c.failure()); });
}

Status wait(ContextHandle* context, EventHandle* handle) {
  return host(context).submit([state = event(handle)] { state->wait(); });
}

Status is_done(EventHandle* handle, int32_t* out) {
  EventState& state = *event(handle);
  const std::lock_guard lock(state.mutex);
  *out = state.is_done ? 1 : 0;
  return kOk;
}

Status elapsed(EventHandle* from, EventHandle* to, double* seconds) {
  *seconds = 0;
  for (const auto& [handle, sign] : {std::pair{from, -1}, {to, 1}}) {
    EventState& state = *event(handle);
    const std::lock_guard lock(state.mutex);
    if (!state.is_done) return kBadArgument;
    *seconds += sign * state.seconds;
  }
  return kOk;
}

void destroy_event(EventHandle* handle) { delete &event(handle); }

Status synchronise(ContextHandle* context) { return host(context).synchronise(); }

Status call(ContextHandle* context, Status (*f)(void*, int32_t), void* argument) {
  return host(context).submit(
      [=] {
        const Status status = f(argument, 1);
        if (status != kOk) throw HostError(status, "a host function failed");
      },
      [=] { f(argument, 0); });
}

}  // namespace

HostDevice::HostDevice(HostTraits traits, int threads)
    : traits_(std::move(traits)), threads_(threads) {}

HostDevice::~HostDevice() {
  for (const auto& [memory, bytes] : mapped_) munmap(memory, bytes);
}

// Texts stay where they are, so that a pointer handed out before stays good.
void HostDevice::set_error(const std::string& text) {
  const std::lock_guard lock(mutex_);
  error_ = text;
}

const char* HostDevice::error() {
  const std::lock_guard lock(mutex_);
  if (errors_.empty() || *errors_.back() != error_)
    errors_.push_back(std::make_unique<std::string>(error_));
  return errors_.back()->c_str();
}

void* HostDevice::allocate(uint64_t bytes) {
  if (bytes < kMappedBytes)
    return std::aligned_alloc(kAlignment, (bytes + kAlignment) / kAlignment * kAlignment);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  madvise(memory, bytes, MADV_HUGEPAGE);  // advice only: fewer page faults
  const std::lock_guard lock(mutex_);
  mapped_.emplace_back(memory, bytes);
  return memory;
}

void HostDevice::release(void* memory) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(mapped_.begin(), mapped_.end(),
                                    [memory](const auto& m) { return m.first == memory; });
    if (found != mapped_.end()) {
      munmap(found->first, found->second);
      mapped_.erase(found);
      return;
    }
  }
  std::free(memory);
}

Status create_host_device(HostTraits (*traits)(), const DeviceOptions* options,
                          DeviceHandle** out) {
  try {
    *out = reinterpret_cast<DeviceHandle*>(new HostDevice(traits(), options->threads));
    return kOk;
  } catch (const std::exception&) {
    return kFailed;
  }
}

DeviceTable host_device_table() {
  DeviceTable t = {};
  t.version = kDeviceTableVersion;
  t.bytes = sizeof(DeviceTable);
  t.destroy = destroy;
  t.info = info;
  t.peak_flops = peak_flops;
  t.last_error = last_error;
  t.create_context = create_context;
  t.destroy_context = destroy_context;
  t.allocate = allocate;
  t.release = release;
  t.allocate_staging = allocate_staging;
  t.release_staging = release_staging;
  t.upload = copy;
  t.copy = copy;
  t.download = copy;
  t.record = record;
  t.wait = wait;
  t.is_done = is_done;
  t.elapsed = elapsed;
  t.destroy_event = destroy_event;
  t.synchronise = synchronise;
  t.call = call;
  return t;
}

}  // namespace fathom::kernels
