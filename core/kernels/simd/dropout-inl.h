// Dropout factors: Philox-4x32-10 (core/base/philox.h) for as many neighbouring blocks as a vector
// has lanes.
HWY_BEFORE_NAMESPACE();
namespace fathom::kernels::cpu::HWY_NAMESPACE {
namespace {

template <class V>
struct Product {
  V high, low;
};

// 32 x 32 -> 64 bits in every lane.
template <class D, class V>
HWY_INLINE Product<V> multiply_wide(D d, V a, V m) {
  const hn::RepartitionToWide<D> wide;
  const auto even = hn::MulEven(a, m);
  const auto odd = hn::MulEven(hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(wide, a))), m);
  return {hn::OddEven(hn::BitCast(d, odd), hn::BitCast(d, hn::ShiftRight<32>(even))),
          hn::OddEven(hn::BitCast(d, hn::ShiftLeft<32>(odd)), hn::BitCast(d, even))};
}

// Words c[0..3] of each block.
template <class D, class V>
HWY_INLINE void philox_blocks(D d, const uint32_t (&key)[2], V (&c)[4]) {
  const V m0 = hn::Set(d, 0xD2511F53u), m1 = hn::Set(d, 0xCD9E8D57u);
  uint32_t k0 = key[0], k1 = key[1];
  for (int round = 0; round < 10; ++round) {
    const Product<V> p0 = multiply_wide(d, c[0], m0), p1 = multiply_wide(d, c[2], m1);
    c[0] = hn::Xor(hn::Xor(p1.high, c[1]), hn::Set(d, k0));
    c[2] = hn::Xor(hn::Xor(p0.high, c[3]), hn::Set(d, k1));
    c[1] = p1.low;
    c[3] = p0.low;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
}

// Of 8 features a lane, from feature 8 `block` on.
template <class D>
HWY_INLINE void factors_of_blocks(D d, const Dropout& dropout, uint32_t block, uint32_t position,
                                  uint32_t sentence, uint32_t plane, float* factors) {
  constexpr size_t kBlocks = hn::MaxLanes(D());
  hn::Vec<D> c[4] = {hn::Add(hn::Set(d, block), hn::Iota(d, 0)), hn::Set(d, position),
                     hn::Set(d, sentence), hn::Set(d, plane)};
  philox_blocks(d, dropout.key, c);
  HWY_ALIGN uint32_t words[4 * kBlocks];
  hn::StoreInterleaved4(c[0], c[1], c[2], c[3], d, words);

  const hn::Rebind<uint16_t, F32> draws;
  const hn::Rebind<int32_t, F32> wide;
  const auto threshold = hn::Set(wide, int32_t(dropout.threshold));
  const Vec32 scale = hn::Set(F32(), float(dropout.keep_scale()));
  const auto* halves = reinterpret_cast<const uint16_t*>(words);
  for (size_t i = 0; i < 8 * kBlocks; i += size_t(kLanes<F32>)) {
    const auto draw = hn::PromoteTo(wide, hn::LoadU(draws, halves + i));
    const auto is_dropped = hn::RebindMask(F32(), hn::Lt(draw, threshold));
    hn::StoreU(hn::IfThenZeroElse(is_dropped, scale), F32(), factors + i);
  }
}

inline void dropout_factors(const Dropout& dropout, uint32_t position, uint32_t sentence,
                            uint32_t plane, int64_t count, float* factors) {
  const hn::ScalableTag<uint32_t> full;
  const hn::FixedTag<uint32_t, kFactorBlock / 8> block;
  constexpr int64_t kFull = 8 * int64_t(hn::MaxLanes(full));
  int64_t f = 0;
  for (; f + kFull <= count + kFactorBlock - 1; f += kFull)
    factors_of_blocks(full, dropout, uint32_t(f / 8), position, sentence, plane, factors + f);
  for (; f < count; f += kFactorBlock)
    factors_of_blocks(block, dropout, uint32_t(f / 8), position, sentence, plane, factors + f);
}

}  // namespace
}  // namespace fathom::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
