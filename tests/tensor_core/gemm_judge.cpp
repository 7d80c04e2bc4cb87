// SPDX-License-Identifier: Apache-2.0
#include "tensor_core/gemm_judge.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>

namespace halfscope::test {
namespace {

using namespace tensor_core;
constexpr Modes kCuda = {.nan = NanPolicy::cuda};

float widened(Format f, std::uint32_t code) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(convert(kBinary32, f, code, kCuda).bits));
}

float to_format_of_d(const Gemm& how, float x) {
  const bool narrow = how.d == Accumulator::binary16 || how.accumulator == Accumulator::binary16;
  if (!narrow) return x;
  return widened(kBinary16, static_cast<std::uint32_t>(from_float(kBinary16, x, kCuda).bits));
}

/// One output: pointers to k elements.
class Dot {
 public:
  Dot(const Gemm& how, const std::uint16_t* a, const std::uint16_t* b) : how_(how), a_(a), b_(b) {}

  float sum(std::int64_t k, std::uint32_t c) const {
    k -= how_.plan.dropped;
    const Format f = format_of(how_.accumulator);
    const std::int64_t slice =
        how_.plan.slice == 0 ? std::max<std::int64_t>(k, 1) : how_.plan.slice;
    float sum = widened(f, c);
    for (std::int64_t first = 0; first < k; first += slice) {
      float part = widened(f, slice_sum(first, std::min(first + slice, k), first == 0 ? c : 0));
      if (how_.plan.merge == Merge::rounded_partials) part = to_format_of_d(how_, part);
      sum = first == 0 ? part : sum + part;
      if (std::isnan(sum)) sum = std::bit_cast<float>(0x7FFFFFFFu);
      if (how_.plan.merge == Merge::running_sum) sum = to_format_of_d(how_, sum);
    }
    return to_format_of_d(how_, sum);
  }

 private:
  std::uint32_t slice_sum(std::int64_t first, std::int64_t last, std::uint32_t c) const {
    if (how_.plan.residue != 0) {
      const std::int64_t rest = (last - first) % how_.plan.residue;
      c = groups(first, first + rest, c);
      first += rest;
    }
    return groups(first, last, c);
  }

  std::uint32_t groups(std::int64_t first, std::int64_t last, std::uint32_t c) const {
    while (first < last) {
      std::int64_t count = last - first;
      if (how_.plan.group != 0) count = std::min<std::int64_t>(count, how_.plan.group);
      c = chain_of(how_.a, how_.b)(how_.unit, how_.accumulator, a_ + first, b_ + first,
                                   static_cast<int>(count), c);
      first += count;
    }
    return c;
  }

  const Gemm& how_;
  const std::uint16_t *a_, *b_;
};

}  // namespace

std::vector<std::uint32_t> judged(const Gemm& how, const GemmInput& in) {
  std::vector<std::uint32_t> out;
  const auto [m, n, k] = in.shape;
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      const Dot dot(how, in.a.data() + i * k, in.b.data() + j * k);
      const std::uint32_t c = in.c[static_cast<std::size_t>(i * n + j)];
      out.push_back(std::bit_cast<std::uint32_t>(dot.sum(k, c)));
    }
  }
  return out;
}

std::vector<std::uint32_t> computed(const Gemm& how, const GemmInput& in) {
  const auto [m, n, k] = in.shape;
  const std::vector<float> a = floats(how.a, in.a), b = floats(how.b, in.b);
  std::vector<float> d = floats(format_of(how.accumulator), in.c);
  gemm(how, in.shape, {a.data(), k, 1}, {b.data(), 1, k}, {d.data(), n, 1});
  std::vector<std::uint32_t> out;
  for (const float x : d) out.push_back(std::bit_cast<std::uint32_t>(x));
  return out;
}

std::string first_difference(const GemmInput& in, const std::vector<std::uint32_t>& found,
                             const std::vector<std::uint32_t>& expected) {
  if (found.size() != expected.size()) return "another number of outputs";
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (found[i] == expected[i]) continue;
    char text[120];
    std::snprintf(text, sizeof text, "row %lld, column %lld: %08X, expected %08X",
                  static_cast<long long>(i) / static_cast<long long>(in.shape.n),
                  static_cast<long long>(i) % static_cast<long long>(in.shape.n), found[i],
                  expected[i]);
    return text;
  }
  return "";
}

}  // namespace halfscope::test
