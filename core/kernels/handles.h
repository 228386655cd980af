// What stands for a device's own objects on its boundary, and how its functions say what happened.
#pragma once

#include <cstdint>

namespace fathom::kernels {

// Each device has its own types behind these.
struct DeviceHandle;
struct ContextHandle;
struct EventHandle;
struct GroupHandle;

using Status = int32_t;
inline constexpr Status kOk = 0;
inline constexpr Status kBadArgument = 1;  // the caller is wrong
inline constexpr Status kOutOfMemory = 2;
inline constexpr Status kFailed = 3;      // the device or its library is
inline constexpr Status kHostFailed = 4;  // a host function is; who gave it knows more
inline constexpr Status kRefused = 5;     // by the operating system: a thread

}  // namespace fathom::kernels
