// What the vector loops are made of: vectors, a loop over a row with its tail, partial sums, exp.
#include <cmath>
#include <cstdint>
#include <type_traits>

HWY_BEFORE_NAMESPACE();
namespace fathom::kernels::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// A block is 64 bytes of elements, held in one vector or in two. Whatever is added up is added up
// by blocks, so the width of a vector cannot be told from a sum.
using F32 = hn::CappedTag<float, 16>;
using F64 = hn::CappedTag<double, 8>;
using Vec32 = hn::Vec<F32>;
using Vec64 = hn::Vec<F64>;
inline constexpr int kParts = int(16 / hn::MaxLanes(F32()));
static_assert(kParts == 1 || kParts == 2);

template <class D>
inline constexpr int64_t kLanes = int64_t(hn::MaxLanes(D()));

// Vector kPart of a block, all of it.
template <class D, int kPart>
struct Whole {
  static constexpr int kIndex = kPart;
  using Vec = hn::Vec<D>;
  using From = hn::Rebind<float, D>;

  HWY_INLINE Vec load(const float* from) const {
    if constexpr (std::is_same_v<hn::TFromD<D>, float>)
      return hn::LoadU(D(), from);
    else
      return hn::PromoteTo(D(), hn::LoadU(From(), from));
  }
  HWY_INLINE void store(Vec v, float* to) const { hn::StoreU(v, D(), to); }
  HWY_INLINE Vec only(Vec v) const { return v; }  // 0 elsewhere
  HWY_INLINE Vec or_else(Vec v, Vec) const { return v; }
  HWY_INLINE int64_t count(hn::Mask<D> m) const { return int64_t(hn::CountTrue(D(), m)); }
};

// Its first `size` elements; nothing is read or written behind them.
template <class D, int kPart>
struct Tail {
  static constexpr int kIndex = kPart;
  using Vec = hn::Vec<D>;
  using From = hn::Rebind<float, D>;
  size_t size;

  HWY_INLINE hn::Mask<D> mask() const { return hn::FirstN(D(), size); }
  HWY_INLINE Vec load(const float* from) const {
    if constexpr (std::is_same_v<hn::TFromD<D>, float>)
      return hn::MaskedLoad(mask(), D(), from);
    else
      return hn::PromoteTo(D(), hn::MaskedLoad(hn::FirstN(From(), size), From(), from));
  }
  HWY_INLINE void store(Vec v, float* to) const { hn::BlendedStore(v, mask(), D(), to); }
  HWY_INLINE Vec only(Vec v) const { return hn::IfThenElseZero(mask(), v); }
  HWY_INLINE Vec or_else(Vec v, Vec other) const { return hn::IfThenElse(mask(), v, other); }
  HWY_INLINE int64_t count(hn::Mask<D> m) const {
    return int64_t(hn::CountTrue(D(), hn::And(m, mask())));
  }
};

// The same in memory that goes on to the end of the block: reads and writes it all.
template <class D, int kPart>
struct PaddedTail : Whole<D, kPart> {
  size_t size;

  explicit PaddedTail(size_t n) : size(n) {}
  HWY_INLINE hn::Vec<D> only(hn::Vec<D> v) const {
    return hn::IfThenElseZero(hn::FirstN(D(), size), v);
  }
};

// Calls f(i, at) for each vector of a row, from element i on.
template <class D, template <class, int> class AtEnd = Tail, class F>
HWY_INLINE void for_each_vector(int64_t count, const F& f) {
  constexpr int64_t kBlock = kParts * kLanes<D>;
  int64_t i = 0;
  for (; i + kBlock <= count; i += kBlock) {
    f(i, Whole<D, 0>());
    if constexpr (kParts == 2) f(i + kLanes<D>, Whole<D, 1>());
  }
  if (i == count) return;
  if constexpr (kParts == 2) {
    if (count - i >= kLanes<D>) {
      f(i, Whole<D, 0>());
      i += kLanes<D>;
      if (i < count) f(i, AtEnd<D, 1>{size_t(count - i)});
      return;
    }
  }
  f(i, AtEnd<D, 0>{size_t(count - i)});
}

// Of one vector, halves first.
template <class D>
HWY_INLINE hn::TFromD<D> sum_of(D, hn::Vec<D> v) {
  if constexpr (hn::MaxLanes(D()) == 1) {
    return hn::GetLane(v);
  } else {
    const hn::Half<D> half;
    return sum_of(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  }
}
template <class D>
HWY_INLINE hn::TFromD<D> largest_of(D, hn::Vec<D> v) {
  if constexpr (hn::MaxLanes(D()) == 1) {
    return hn::GetLane(v);
  } else {
    const hn::Half<D> half;
    return largest_of(half, hn::Max(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  }
}

// The partial sums of a block.
template <class D>
struct Sums {
  using Vec = hn::Vec<D>;
  Vec part[kParts];

  HWY_INLINE Sums() {
    for (Vec& p : part) p = hn::Zero(D());
  }
  template <class At>
  HWY_INLINE void add(At at, Vec v) {
    part[At::kIndex] = hn::Add(part[At::kIndex], at.only(v));
  }
  template <class At>
  HWY_INLINE void add_product(At at, Vec a, Vec b) {
    part[At::kIndex] = hn::MulAdd(at.only(a), at.only(b), part[At::kIndex]);
  }
  [[nodiscard]] HWY_INLINE hn::TFromD<D> total() const {
    if constexpr (kParts == 2)
      return sum_of(D(), hn::Add(part[0], part[1]));
    else
      return sum_of(D(), part[0]);
  }
};

// Of a row. Only where there is no NaN is it the largest for certain.
HWY_INLINE float largest_in(int64_t count, const float* x) {
  Vec32 largest[kParts];
  for (Vec32& v : largest) v = hn::Set(F32(), -INFINITY);
  for_each_vector<F32>(count, [&](int64_t i, auto at) HWY_ATTR {
    Vec32& so_far = largest[at.kIndex];
    so_far = hn::Max(so_far, at.or_else(at.load(x + i), so_far));
  });
  return largest_of(F32(), hn::Max(largest[0], largest[kParts - 1]));
}

// exp(x), relative error under 2e-7; 0 below -87. NaN stays NaN.
// x = n ln 2 + r with |r| <= ln 2 / 2; exp(r) by its Taylor series up to r^7. Adding 1.5 * 2^23
// rounds to an integer, which is then found in the lowest bits.
HWY_INLINE Vec32 exp(Vec32 x) {
  const F32 d;
  const hn::Rebind<int32_t, F32> di;
  const Vec32 magic = hn::Set(d, 12582912.0f);
  const Vec32 clamped = hn::Min(hn::Set(d, 88.0f), x);  // keeps NaN: second operand
  const Vec32 shifted = hn::MulAdd(clamped, hn::Set(d, 1.44269504f), magic);
  const Vec32 n = hn::Sub(shifted, magic);
  Vec32 r = hn::NegMulAdd(n, hn::Set(d, 0.693359375f), clamped);
  r = hn::NegMulAdd(n, hn::Set(d, -2.12194440e-4f), r);
  Vec32 p = hn::Set(d, 1.0f / 5040);
  for (const float c : {1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f, 1.0f, 1.0f})
    p = hn::MulAdd(p, r, hn::Set(d, c));
  const auto power = hn::ShiftLeft<23>(hn::Add(hn::BitCast(di, shifted), hn::Set(di, 127)));
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -87.0f)), hn::Mul(p, hn::BitCast(d, power)));
}

}  // namespace
}  // namespace fathom::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
