// SPDX-License-Identifier: Apache-2.0
// A binary32 number type for Eigen, in plain C++. Its vectors behave like AVX2's: 8 or 4 lanes,
// with a multiply-add that rounds once. Included by product_eigen-inl.hpp after Eigen.
#pragma once

#include <array>
#include <cmath>
#include <cstring>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace halfscope::sim::backend::cpu {
namespace {

struct Number {
  float value;
  Number() = default;
  Number(float x) : value(x) {}  // NOLINT: Eigen constructs numbers from 0 and 1
  Number(int x) : value(static_cast<float>(x)) {}
  friend Number operator+(Number a, Number b) { return a.value + b.value; }
  friend Number operator*(Number a, Number b) { return a.value * b.value; }
  Number& operator+=(Number b) { return *this = *this + b; }
  friend bool operator==(Number a, Number b) { return a.value == b.value; }
  friend bool operator!=(Number a, Number b) { return a.value != b.value; }
};

template <int kLanes>
struct Packet {
  std::array<float, kLanes> lane;
};

template <int kLanes, class Function>
Packet<kLanes> each(Function function) {
  Packet<kLanes> r;
  for (std::size_t i = 0; i < kLanes; ++i) r.lane[i] = function(i);
  return r;
}

#if defined(HALFSCOPE_EXACT_PRODUCTS)
inline float fused(float a, float b, float c) { return a * b + c; }

template <int kLanes>
Packet<kLanes> fused(const Packet<kLanes>& a, const Packet<kLanes>& b, const Packet<kLanes>& c) {
  return each<kLanes>([&](std::size_t i) { return a.lane[i] * b.lane[i] + c.lane[i]; });
}
#elif defined(__x86_64__)
/// Returns a * b + c, rounded to odd. The product is exact in binary64.
inline __m128d fused_to_odd(__m128d a, __m128d b, __m128d c) {
  const __m128d product = _mm_mul_pd(a, b), sum = _mm_add_pd(product, c);
  const __m128d part = _mm_sub_pd(sum, product), zero = _mm_setzero_pd();
  const __m128d error =  // Knuth's TwoSum
      _mm_add_pd(_mm_sub_pd(product, _mm_sub_pd(sum, part)), _mm_sub_pd(c, part));
  // If the sum is inexact and even, move one step towards the error: up if the signs agree.
  const __m128d above = _mm_cmplt_pd(zero, error), below = _mm_cmplt_pd(error, zero);
  const __m128i opposed = _mm_castpd_si128(_mm_xor_pd(above, _mm_cmplt_pd(zero, sum)));
  const __m128i word = _mm_castpd_si128(sum), one = _mm_set1_epi64x(1);
  const __m128i even = _mm_sub_epi64(_mm_and_si128(word, one), one);
  const __m128i inexact = _mm_castpd_si128(_mm_or_pd(above, below));
  const __m128i step = _mm_and_si128(_mm_or_si128(opposed, one), _mm_and_si128(inexact, even));
  return _mm_castsi128_pd(_mm_add_epi64(word, step));
}

/// Returns a * b + c, rounded once: a result rounded to odd can be rounded again without a double
/// rounding error (Boldo and Melquiond 2008).
inline __m128 fused(__m128 a, __m128 b, __m128 c) {
  const __m128d low = fused_to_odd(_mm_cvtps_pd(a), _mm_cvtps_pd(b), _mm_cvtps_pd(c));
  const auto upper = [](__m128 x) { return _mm_cvtps_pd(_mm_movehl_ps(x, x)); };
  const __m128d high = fused_to_odd(upper(a), upper(b), upper(c));
  return _mm_movelh_ps(_mm_cvtpd_ps(low), _mm_cvtpd_ps(high));
}

inline float fused(float a, float b, float c) {
  return _mm_cvtss_f32(fused(_mm_set_ss(a), _mm_set_ss(b), _mm_set_ss(c)));
}

template <int kLanes>
Packet<kLanes> fused(const Packet<kLanes>& a, const Packet<kLanes>& b, const Packet<kLanes>& c) {
  Packet<kLanes> r;
  for (std::size_t i = 0; i < kLanes; i += 4) {
    _mm_storeu_ps(&r.lane[i], fused(_mm_loadu_ps(&a.lane[i]), _mm_loadu_ps(&b.lane[i]),
                                    _mm_loadu_ps(&c.lane[i])));
  }
  return r;
}
#else
inline float fused(float a, float b, float c) { return std::fma(a, b, c); }

template <int kLanes>
Packet<kLanes> fused(const Packet<kLanes>& a, const Packet<kLanes>& b, const Packet<kLanes>& c) {
  return each<kLanes>([&](std::size_t i) { return std::fma(a.lane[i], b.lane[i], c.lane[i]); });
}
#endif

}  // namespace
}  // namespace halfscope::sim::backend::cpu

namespace Eigen {

template <>
struct NumTraits<halfscope::sim::backend::cpu::Number> : GenericNumTraits<float> {
  using Real = halfscope::sim::backend::cpu::Number;
  using NonInteger = halfscope::sim::backend::cpu::Number;
  using Nested = halfscope::sim::backend::cpu::Number;
  using Literal = halfscope::sim::backend::cpu::Number;
};

namespace internal {

using halfscope::sim::backend::cpu::each;
using halfscope::sim::backend::cpu::Number;
using Packet8 = halfscope::sim::backend::cpu::Packet<8>;
using Packet4 = halfscope::sim::backend::cpu::Packet<4>;

template <>
struct packet_traits<Number> : default_packet_traits {
  using type = Packet8;
  using half = Packet4;
  enum { Vectorizable = 1, AlignedOnScalar = 1, size = 8, HasHalfPacket = 1 };
};
template <int kLanes>
struct unpacket_traits<halfscope::sim::backend::cpu::Packet<kLanes>> {
  using type = Number;
  using half = Packet4;
  enum {
    size = kLanes,
    alignment = 4 * kLanes,
    vectorizable = true,
    masked_load_available = false,
    masked_store_available = false
  };
};

// NOLINTBEGIN(bugprone-macro-parentheses): P is a type.
#define HALFSCOPE_PACKET(P, LANES)                                                                 \
  template <>                                                                                      \
  inline P pset1<P>(const Number& x) {                                                             \
    return each<LANES>([&](std::size_t) { return x.value; });                                      \
  }                                                                                                \
  template <>                                                                                      \
  inline P ploadu<P>(const Number* from) {                                                         \
    P r;                                                                                           \
    std::memcpy(&r, from, sizeof r);                                                               \
    return r;                                                                                      \
  }                                                                                                \
  template <>                                                                                      \
  inline P pload<P>(const Number* from) {                                                          \
    return ploadu<P>(from);                                                                        \
  }                                                                                                \
  template <>                                                                                      \
  inline P ploadquad<P>(const Number* from) {                                                      \
    return each<LANES>([&](std::size_t i) { return from[i / 4].value; });                          \
  }                                                                                                \
  template <>                                                                                      \
  inline void pstoreu<Number, P>(Number * to, const P& x) {                                        \
    std::memcpy(static_cast<void*>(to), &x, sizeof x);                                             \
  }                                                                                                \
  template <>                                                                                      \
  inline void pstore<Number, P>(Number * to, const P& x) {                                         \
    pstoreu(to, x);                                                                                \
  }                                                                                                \
  template <>                                                                                      \
  inline P pgather<Number, P>(const Number* from, Index stride) {                                  \
    return each<LANES>([&](std::size_t i) { return from[static_cast<Index>(i) * stride].value; }); \
  }                                                                                                \
  template <>                                                                                      \
  inline void pscatter<Number, P>(Number * to, const P& x, Index stride) {                         \
    for (std::size_t i = 0; i < LANES; ++i) to[static_cast<Index>(i) * stride] = x.lane[i];        \
  }                                                                                                \
  template <>                                                                                      \
  inline P padd(const P& a, const P& b) {                                                          \
    return each<LANES>([&](std::size_t i) { return a.lane[i] + b.lane[i]; });                      \
  }                                                                                                \
  template <>                                                                                      \
  inline P pmul(const P& a, const P& b) {                                                          \
    return each<LANES>([&](std::size_t i) { return a.lane[i] * b.lane[i]; });                      \
  }                                                                                                \
  template <>                                                                                      \
  inline P pmadd(const P& a, const P& b, const P& c) {                                             \
    return halfscope::sim::backend::cpu::fused(a, b, c);                                           \
  }                                                                                                \
  template <>                                                                                      \
  inline P pconj(const P& a) {                                                                     \
    return a;                                                                                      \
  }                                                                                                \
  template <>                                                                                      \
  inline P pzero(const P&) {                                                                       \
    return P{};                                                                                    \
  }
HALFSCOPE_PACKET(Packet8, 8)
HALFSCOPE_PACKET(Packet4, 4)
#undef HALFSCOPE_PACKET
// NOLINTEND(bugprone-macro-parentheses)

template <>
inline Packet4 predux_half_dowto4(const Packet8& a) {
  return each<4>([&](std::size_t i) { return a.lane[i] + a.lane[i + 4]; });
}
template <>
inline Number predux(const Packet4& a) {
  return (a.lane[0] + a.lane[2]) + (a.lane[1] + a.lane[3]);
}
template <>
inline Number predux(const Packet8& a) {
  return predux(predux_half_dowto4(a));
}

template <>
inline Number pmadd(const Number& a, const Number& b, const Number& c) {
  return halfscope::sim::backend::cpu::fused(a.value, b.value, c.value);
}

/// Transposes every square block of kRows vectors; a vector holds one row of kLanes / kRows blocks.
template <int kLanes, int kRows>
void ptranspose(PacketBlock<halfscope::sim::backend::cpu::Packet<kLanes>, kRows>& block) {
  const auto old = block;
  for (std::size_t i = 0; i < std::size_t{kRows} * kLanes; ++i) {
    block.packet[i / kLanes].lane[i % kLanes] = old.packet[i % kRows].lane[i / kRows];
  }
}

}  // namespace internal
}  // namespace Eigen
