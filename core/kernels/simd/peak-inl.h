// As many multiply-adds as the processor can do: independent chains hide the latency of each.
HWY_BEFORE_NAMESPACE();
namespace fathom::kernels::cpu::HWY_NAMESPACE {
namespace {

inline constexpr int kChains = 12;
inline constexpr int64_t kFlopsPerRound = kChains * kLanes<F32> * 2;

inline float multiply_add(int64_t rounds) {
  const Vec32 one = hn::Set(F32(), 1.0f);
  Vec32 chain[kChains];
  for (Vec32& c : chain) c = one;
  for (int64_t i = 0; i < rounds; ++i)
#pragma GCC unroll 12
    for (Vec32& c : chain) c = hn::MulAdd(c, one, one);
  float sum = 0;
  for (const Vec32& c : chain) sum += hn::GetLane(c);
  return sum;
}

}  // namespace
}  // namespace fathom::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
