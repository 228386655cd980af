// The optimizer's loops; formulas in adam.h.
HWY_BEFORE_NAMESPACE();
namespace fathom::kernels::cpu::HWY_NAMESPACE {
namespace {

inline void adam(int64_t count, const Adam& a, float scale, const float* gradient, float* m,
                 float* v, float* w) {
  const F32 d;
  const Vec32 factor = hn::Set(d, scale);
  const Vec32 b1 = hn::Set(d, float(a.beta1)), c1 = hn::Set(d, float(1 - a.beta1));
  const Vec32 b2 = hn::Set(d, float(a.beta2)), c2 = hn::Set(d, float(1 - a.beta2));
  const Vec32 rate = hn::Set(d, float(a.rate)), root = hn::Set(d, float(a.root));
  const Vec32 eps = hn::Set(d, float(a.epsilon)), keep = hn::Set(d, float(1 - a.decay));
  for_each_vector<F32>(count, [&](int64_t i, auto at) HWY_ATTR {
    const Vec32 g = hn::Mul(at.load(gradient + i), factor);
    const Vec32 mean = hn::MulAdd(b1, at.load(m + i), hn::Mul(c1, g));
    const Vec32 square = hn::MulAdd(b2, at.load(v + i), hn::Mul(hn::Mul(c2, g), g));
    const Vec32 change = hn::Div(hn::Mul(rate, mean), hn::MulAdd(hn::Sqrt(square), root, eps));
    at.store(mean, m + i);
    at.store(square, v + i);
    at.store(hn::MulSub(keep, at.load(w + i), change), w + i);
  });
}

inline double update_norm(int64_t count, const UpdateNorms& a, const float* w, const float* m,
                          const float* v) {
  const F64 d;
  const Vec64 decay = hn::Set(d, a.decay), rate = hn::Set(d, a.rate);
  const Vec64 root = hn::Set(d, a.root), eps = hn::Set(d, a.epsilon);
  Sums<F64> sum;
  for_each_vector<F64>(count, [&](int64_t i, auto at) HWY_ATTR {
    const Vec64 divisor = hn::MulAdd(hn::Sqrt(at.load(v + i)), root, eps);
    const Vec64 step = hn::Div(hn::Mul(rate, at.load(m + i)), divisor);
    const Vec64 change = hn::MulAdd(decay, at.load(w + i), step);
    sum.add_product(at, change, change);
  });
  return sum.total();
}

}  // namespace
}  // namespace fathom::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
