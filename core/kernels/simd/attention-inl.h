// Rows of attention scores. Each has memory for a multiple of kScorePadding elements, so that none
// ends with a masked store, which some processors do slowly.
HWY_BEFORE_NAMESPACE();
namespace fathom::kernels::cpu::HWY_NAMESPACE {
namespace {

// 0 from the end of the vectors that cover `count` elements to `width`, or up to a vector more.
inline void zero_behind(int64_t count, int64_t width, float* s) {
  constexpr int64_t kStep = kLanes<F32>;
  for (int64_t i = (count + kStep - 1) / kStep * kStep; i < width; i += kStep)
    hn::StoreU(hn::Zero(F32()), F32(), s + i);
}

inline RowSums softmax(int64_t count, int64_t width, float scale, const float* factors, float* s) {
  RowSums row;
  row.largest = largest_in(count, s) * scale;
  const Vec32 factor = hn::Set(F32(), scale);
  const Vec32 shift = hn::Set(F32(), row.largest);
  Sums<F32> sum;
  for_each_vector<F32, PaddedTail>(count, [&](int64_t i, auto at) HWY_ATTR {
    const Vec32 e = at.only(exp(hn::MulSub(at.load(s + i), factor, shift)));
    at.store(e, s + i);
    sum.add(at, e);
  });
  row.exps = sum.total();
  const Vec32 inverse = hn::Set(F32(), 1 / row.exps);
  for_each_vector<F32, PaddedTail>(count, [&](int64_t i, auto at) HWY_ATTR {
    Vec32 p = hn::Mul(at.load(s + i), inverse);
    if (factors != nullptr) p = hn::Mul(p, at.load(factors + i));
    at.store(p, s + i);
  });
  zero_behind(count, width, s);
  return row;
}

inline void softmax_gradient(int64_t count, int64_t width, float scale, float lse, float dy_y,
                             const float* factors, float* p, float* ds) {
  const Vec32 factor = hn::Set(F32(), scale), shift = hn::Set(F32(), lse);
  const Vec32 average = hn::Set(F32(), dy_y);
  for_each_vector<F32, PaddedTail>(count, [&](int64_t i, auto at) HWY_ATTR {
    const Vec32 e = at.only(exp(hn::MulSub(at.load(p + i), factor, shift)));
    const Vec32 weight = hn::Mul(e, factor);
    const Vec32 d = at.load(ds + i);
    if (factors == nullptr) {
      at.store(e, p + i);
      at.store(at.only(hn::Mul(weight, hn::Sub(d, average))), ds + i);
    } else {
      const Vec32 f = at.load(factors + i);
      at.store(hn::Mul(e, f), p + i);
      at.store(at.only(hn::Mul(weight, hn::MulSub(d, f, average))), ds + i);
    }
  });
  zero_behind(count, width, p);
  zero_behind(count, width, ds);
}

}  // namespace
}  // namespace fathom::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
