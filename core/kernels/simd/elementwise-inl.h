// Rows element by element.
HWY_BEFORE_NAMESPACE();
namespace fathom::kernels::cpu::HWY_NAMESPACE {
namespace {

inline void add(int64_t count, const float* x, float* y) {
  for_each_vector<F32>(count, [&](int64_t i, auto at) HWY_ATTR {
    at.store(hn::Add(at.load(y + i), at.load(x + i)), y + i);
  });
}

inline void axpy(int64_t count, float a, const float* x, float* y) {
  const Vec32 factor = hn::Set(F32(), a);
  for_each_vector<F32>(count, [&](int64_t i, auto at) HWY_ATTR {
    at.store(hn::MulAdd(factor, at.load(x + i), at.load(y + i)), y + i);
  });
}

inline void scale(int64_t count, float a, const float* x, float* y) {
  const Vec32 factor = hn::Set(F32(), a);
  for_each_vector<F32>(count, [&](int64_t i, auto at)
                                  HWY_ATTR { at.store(hn::Mul(factor, at.load(x + i)), y + i); });
}

inline void multiply(int64_t count, const float* x, const float* g, float* y) {
  for_each_vector<F32>(count, [&](int64_t i, auto at) HWY_ATTR {
    at.store(hn::Mul(at.load(x + i), at.load(g + i)), y + i);
  });
}

inline void add_scaled(int64_t count, float a, const float* x, float b, const float* z, float* y) {
  const Vec32 of_x = hn::Set(F32(), a), of_z = hn::Set(F32(), b);
  for_each_vector<F32>(count, [&](int64_t i, auto at) HWY_ATTR {
    at.store(hn::MulAdd(of_x, at.load(x + i), hn::Mul(of_z, at.load(z + i))), y + i);
  });
}

inline void add_product(int64_t count, float a, const float* x, const float* f, float* y) {
  const Vec32 factor = hn::Set(F32(), a);
  for_each_vector<F32>(count, [&](int64_t i, auto at) HWY_ATTR {
    at.store(hn::MulAdd(hn::Mul(factor, at.load(x + i)), at.load(f + i), at.load(y + i)), y + i);
  });
}

inline void finish_linear(int64_t count, const float* bias, bool relu, const float* factors,
                          float* y) {
  const Vec32 zero = hn::Zero(F32());
  for_each_vector<F32>(count, [&](int64_t i, auto at) HWY_ATTR {
    Vec32 v = at.load(y + i);
    if (bias != nullptr) v = hn::Add(v, at.load(bias + i));
    if (relu) v = hn::IfThenZeroElse(hn::Lt(v, zero), v);  // keeps NaN
    if (factors != nullptr) v = hn::Mul(v, at.load(factors + i));
    at.store(v, y + i);
  });
}

inline void relu_gradient(int64_t count, float scale, const float* dy, const float* y, float* dz) {
  const Vec32 zero = hn::Zero(F32()), factor = hn::Set(F32(), scale);
  for_each_vector<F32>(count, [&](int64_t i, auto at) HWY_ATTR {
    const Vec32 kept = hn::Mul(at.load(dy + i), factor);
    at.store(hn::IfThenElseZero(hn::Gt(at.load(y + i), zero), kept), dz + i);
  });
}

inline void scale_gradient(int64_t count, const float* dy, const float* x, const float* gain,
                           float* dgain, float* dx) {
  for_each_vector<F32>(count, [&](int64_t i, auto at) HWY_ATTR {
    const Vec32 d = at.load(dy + i);
    at.store(hn::MulAdd(d, at.load(x + i), at.load(dgain + i)), dgain + i);
    at.store(hn::Mul(d, at.load(gain + i)), dx + i);
  });
}

}  // namespace
}  // namespace fathom::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
