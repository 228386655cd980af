#include <algorithm>
#include <cstring>

#include "core/kernels/kernels_cpu.h"
#include "core/kernels/kernels_reference.h"
#include "core/kernels/tiles_cpu.h"

namespace fathom::kernels::cpu {

void fill(HostContext& context, const Fill& a) {
  if (a.value != 0) return reference::fill(context, a);
  constexpr int64_t kPiece = 1 << 18;  // bytes of a task
  const auto zero = [&](char* begin, int64_t bytes) {
    context.pool().run(ceil_div(bytes, kPiece), [&](int64_t i) {
      std::memset(begin + i * kPiece, 0, size_t(std::min(kPiece, bytes - i * kPiece)));
    });
  };
  const int64_t size = size_of(a.y.dtype);
  if (a.y.stride == a.y.cols || a.y.rows <= 1) return zero(a.y.as<char>(), a.y.bytes());
  for (int64_t r = 0; r < a.y.rows; ++r)
    zero(a.y.as<char>() + r * a.y.stride * size, a.y.cols * size);
}

}  // namespace fathom::kernels::cpu
