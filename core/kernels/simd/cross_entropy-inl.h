// Rows of logits.
HWY_BEFORE_NAMESPACE();
namespace fathom::kernels::cpu::HWY_NAMESPACE {
namespace {

inline RowSums row_sums(int64_t count, const float* z) {
  RowSums row;
  row.largest = largest_in(count, z);
  const Vec32 shift = hn::Set(F32(), row.largest);
  Sums<F32> shifted, exps;
  for_each_vector<F32>(count, [&](int64_t i, auto at) HWY_ATTR {
    const Vec32 v = hn::Sub(at.load(z + i), shift);
    shifted.add(at, v);
    exps.add(at, exp(v));
  });
  row.shifted = shifted.total();
  row.exps = exps.total();
  return row;
}

inline void logit_gradient(int64_t count, float lse, float weight, float elsewhere, float* z) {
  const F32 d;
  const Vec32 shift = hn::Set(d, lse), factor = hn::Set(d, weight), q = hn::Set(d, elsewhere);
  for_each_vector<F32>(count, [&](int64_t i, auto at) HWY_ATTR {
    const Vec32 p = exp(hn::Sub(at.load(z + i), shift));
    at.store(hn::Mul(factor, hn::Sub(p, q)), z + i);
  });
}

}  // namespace
}  // namespace fathom::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
