// One row of a layer norm; formulas in layer_norm.h.
#include <cmath>

HWY_BEFORE_NAMESPACE();
namespace fathom::kernels::cpu::HWY_NAMESPACE {
namespace {

inline MeanAndRstd layer_norm(int64_t count, float eps, const float* x, const float* addend,
                              const float* gain, const float* bias, float* sum, float* y) {
  const float* s = addend == nullptr ? x : sum;
  Sums<F32> total;
  if (addend == nullptr) {
    for_each_vector<F32>(count,
                         [&](int64_t i, auto at) HWY_ATTR { total.add(at, at.load(x + i)); });
  } else {
    for_each_vector<F32>(count, [&](int64_t i, auto at) HWY_ATTR {
      const Vec32 v = hn::Add(at.load(x + i), at.load(addend + i));
      at.store(v, sum + i);
      total.add(at, v);
    });
  }
  const float mean = total.total() / float(count);
  const Vec32 mean_v = hn::Set(F32(), mean);
  Sums<F32> squares;
  for_each_vector<F32>(count, [&](int64_t i, auto at) HWY_ATTR {
    const Vec32 centred = hn::Sub(at.load(s + i), mean_v);
    squares.add_product(at, centred, centred);
  });
  const float rstd = 1 / std::sqrt(squares.total() / float(count) + eps);
  const Vec32 rstd_v = hn::Set(F32(), rstd);
  for_each_vector<F32>(count, [&](int64_t i, auto at) HWY_ATTR {
    const Vec32 xhat = hn::Mul(hn::Sub(at.load(s + i), mean_v), rstd_v);
    at.store(hn::MulAdd(xhat, at.load(gain + i), at.load(bias + i)), y + i);
  });
  return {mean, rstd};
}

inline void layer_norm_gradient(int64_t count, MeanAndRstd norm, const float* dy, const float* s,
                                const float* gain, float* ds, float* dgain, float* dbias) {
  const Vec32 mean = hn::Set(F32(), norm.mean), rstd = hn::Set(F32(), norm.rstd);
  Sums<F32> sum_g, sum_g_xhat;
  for_each_vector<F32>(count, [&](int64_t i, auto at) HWY_ATTR {
    const Vec32 d = at.load(dy + i), xhat = hn::Mul(hn::Sub(at.load(s + i), mean), rstd);
    const Vec32 g = hn::Mul(d, at.load(gain + i));
    sum_g.add(at, g);
    sum_g_xhat.add_product(at, g, xhat);
    at.store(hn::MulAdd(d, xhat, at.load(dgain + i)), dgain + i);
    at.store(hn::Add(at.load(dbias + i), d), dbias + i);
  });
  const Vec32 average_g = hn::Set(F32(), sum_g.total() / float(count));
  const Vec32 average_g_xhat = hn::Set(F32(), sum_g_xhat.total() / float(count));
  for_each_vector<F32>(count, [&](int64_t i, auto at) HWY_ATTR {
    const Vec32 xhat = hn::Mul(hn::Sub(at.load(s + i), mean), rstd);
    const Vec32 centred = hn::MulSub(at.load(dy + i), at.load(gain + i), average_g);
    at.store(hn::Mul(rstd, hn::NegMulAdd(xhat, average_g_xhat, centred)), ds + i);
  });
}

}  // namespace
}  // namespace fathom::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
