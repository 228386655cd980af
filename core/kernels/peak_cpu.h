// What this machine's multiply-add units can do at most, measured.
#pragma once

namespace fathom::kernels::cpu {

// FLOP/s in f32 of `threads` threads at once, by chains of fused multiply-adds in registers. Takes
// about 20 ms; on a busy machine it measures what is left over.
[[nodiscard]] double measured_peak_flops(int threads);

}  // namespace fathom::kernels::cpu
