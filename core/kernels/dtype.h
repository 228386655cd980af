// Element types. bf16 is storage only: kernels read it into f32, compute there and round once when
// they store. What must not be rounded that far (statistics, sums, gradients of parameters, norm
// weights) is kept in the wide type of the compute type: f32 for bf16 and f32, f64 for f64.
#pragma once

#include <bit>
#include <cstdint>

namespace fathom::kernels {

enum class DType : int32_t { kF32 = 0, kF64 = 1, kBF16 = 2, kI32 = 3 };

[[nodiscard]] constexpr int64_t size_of(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return 8;
    case DType::kBF16:
      return 2;
    default:
      return 4;
  }
}
[[nodiscard]] constexpr const char* to_string(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "f32";
    case DType::kF64:
      return "f64";
    case DType::kBF16:
      return "bf16";
    case DType::kI32:
      return "i32";
  }
  return "?";
}
[[nodiscard]] constexpr DType wide_of(DType dtype) {
  return dtype == DType::kBF16 ? DType::kF32 : dtype;
}

// The upper half of an f32, rounded to nearest, ties to even. NaN stays NaN, infinity infinity.
struct Bf16 {
  uint16_t bits = 0;

  Bf16() = default;
  explicit constexpr Bf16(float value) {
    const uint32_t u = std::bit_cast<uint32_t>(value);
    const bool is_nan = (u & 0x7FFFFFFFu) > 0x7F800000u;
    bits = is_nan ? uint16_t((u >> 16) | 0x40u) : uint16_t((u + 0x7FFFu + ((u >> 16) & 1u)) >> 16);
  }
  explicit constexpr Bf16(double value) : Bf16(float(value)) {}
  explicit constexpr operator float() const { return std::bit_cast<float>(uint32_t{bits} << 16); }
  explicit constexpr operator double() const { return double(float(*this)); }
};

template <class T>
inline constexpr DType kDTypeOf = DType::kF32;
template <>
inline constexpr DType kDTypeOf<double> = DType::kF64;
template <>
inline constexpr DType kDTypeOf<Bf16> = DType::kBF16;
template <>
inline constexpr DType kDTypeOf<int32_t> = DType::kI32;

template <class T>
[[nodiscard]] constexpr DType dtype_of() {
  return kDTypeOf<T>;
}

// How the reference device computes with elements of T: in f64, but in f32 for bf16, since that is
// what the kernels it specifies do. Wide<T> is what statistics and gradients are stored in.
template <class T>
struct Widened {
  using Wide = T;
  using Arithmetic = double;
};
template <>
struct Widened<Bf16> {
  using Wide = float;
  using Arithmetic = float;
};
template <class T>
using Wide = typename Widened<T>::Wide;
template <class T>
using Arithmetic = typename Widened<T>::Arithmetic;

// Calls f.template operator()<T>() with T = float, double or Bf16.
template <class F>
decltype(auto) visit_float(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kF64:
      return f.template operator()<double>();
    case DType::kBF16:
      return f.template operator()<Bf16>();
    default:
      return f.template operator()<float>();
  }
}

}  // namespace fathom::kernels
