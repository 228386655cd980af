// A small matrix product for attention, where general libraries lose half their speed or more.
HWY_BEFORE_NAMESPACE();
namespace fathom::kernels::cpu::HWY_NAMESPACE {
namespace {

// kRows x kVectors vectors of c, kept in registers over all of K. The last vector is loaded and
// stored through `Last`, which may be partial.
template <int kRows, int kVectors, bool kAccumulate, class Last>
HWY_INLINE void block(const View& c, const ConstView& a, const ConstView& b, int64_t i, int64_t j,
                      Last last) {
  constexpr int64_t kStep = kLanes<F32>;
  const auto load = [&](const float* from, int v) HWY_ATTR {
    return v == kVectors - 1 ? last.load(from) : hn::LoadU(F32(), from);
  };
  Vec32 sum[kRows][kVectors];
  for (int r = 0; r < kRows; ++r)
    for (int v = 0; v < kVectors; ++v)
      sum[r][v] = kAccumulate ? load(c.row(i + r) + j + v * kStep, v) : hn::Zero(F32());
  const float* from_a = a.row(i);
  const float* from_b = b.data + j;
  for (int64_t k = 0; k < a.cols; ++k, from_a += a.step, from_b += b.stride) {
    Vec32 of_b[kVectors];
    for (int v = 0; v < kVectors; ++v) of_b[v] = load(from_b + v * kStep, v);
    for (int r = 0; r < kRows; ++r) {
      const Vec32 of_a = hn::Set(F32(), from_a[r * a.stride]);
      for (int v = 0; v < kVectors; ++v) sum[r][v] = hn::MulAdd(of_a, of_b[v], sum[r][v]);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    float* to = c.row(i + r) + j;
    for (int v = 0; v < kVectors - 1; ++v) hn::StoreU(sum[r][v], F32(), to + v * kStep);
    last.store(sum[r][kVectors - 1], to + (kVectors - 1) * kStep);
  }
}

template <int kVectors, bool kAccumulate, class Last>
HWY_INLINE void columns(const View& c, const ConstView& a, const ConstView& b, int64_t j,
                        Last last) {
  int64_t i = 0;
  for (; i + 4 <= c.rows; i += 4) block<4, kVectors, kAccumulate>(c, a, b, i, j, last);
  for (; i < c.rows; ++i) block<1, kVectors, kAccumulate>(c, a, b, i, j, last);
}

template <bool kAccumulate>
HWY_INLINE void product(const View& c, const ConstView& a, const ConstView& b) {
  constexpr int64_t kStep = kLanes<F32>;
  int64_t j = 0;
  for (; j + 2 * kStep <= c.cols; j += 2 * kStep)
    columns<2, kAccumulate>(c, a, b, j, Whole<F32, 0>());
  const int64_t rest = c.cols - j;
  if (rest > kStep)
    columns<2, kAccumulate>(c, a, b, j, Tail<F32, 0>{size_t(rest - kStep)});
  else if (rest == kStep)
    columns<1, kAccumulate>(c, a, b, j, Whole<F32, 0>());
  else if (rest > 0)
    columns<1, kAccumulate>(c, a, b, j, Tail<F32, 0>{size_t(rest)});
}

inline void set_product(const View& c, const ConstView& a, const ConstView& b) {
  product<false>(c, a, b);
}
inline void accumulate_product(const View& c, const ConstView& a, const ConstView& b) {
  product<true>(c, a, b);
}

}  // namespace
}  // namespace fathom::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
