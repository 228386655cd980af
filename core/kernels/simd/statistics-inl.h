// Sums and counts over rows and flat buffers.
#include <limits>

HWY_BEFORE_NAMESPACE();
namespace fathom::kernels::cpu::HWY_NAMESPACE {
namespace {

inline float dot(int64_t count, const float* x, const float* y) {
  Sums<F32> sum;
  for_each_vector<F32>(count, [&](int64_t i, auto at) HWY_ATTR {
    sum.add_product(at, at.load(x + i), at.load(y + i));
  });
  return sum.total();
}

inline double dot_f64(int64_t count, const float* x, const float* y) {
  Sums<F64> sum;
  for_each_vector<F64>(count, [&](int64_t i, auto at) HWY_ATTR {
    sum.add_product(at, at.load(x + i), at.load(y + i));
  });
  return sum.total();
}

inline ValueCounts count_values(int64_t count, const float* x) {
  const Vec32 zero = hn::Zero(F32()), largest = hn::Set(F32(), std::numeric_limits<float>::max());
  ValueCounts counts;
  for_each_vector<F32>(count, [&](int64_t i, auto at) HWY_ATTR {
    const Vec32 v = at.load(x + i);
    counts.zeros += at.count(hn::Eq(v, zero));
    counts.nonfinite += at.count(hn::Not(hn::Le(hn::Abs(v), largest)));  // of NaN as well
  });
  return counts;
}

}  // namespace
}  // namespace fathom::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
