// SPDX-License-Identifier: Apache-2.0
#include "halfscope/array/array.hpp"

#include <tbb/blocked_range.h>
#include <tbb/parallel_reduce.h>

#include <algorithm>
#include <stdexcept>
#include <string>

#include "halfscope/array/job.hpp"
#include "halfscope/device/arena.hpp"
#include "halfscope/number/require.hpp"

namespace halfscope {
namespace {

constexpr std::size_t kPart = std::size_t{1} << 16;  // elements; a multiple of every kernel's block

/// Calls work(first, n) for parts that do not depend on the number of threads and returns the union
/// of the flags, in any order.
template <class Work>
Flags in_parts(std::size_t count, int threads, const Work& work) {
  if (count == 0) return {};
  if (threads == 1 || count <= kPart) return work(std::size_t{0}, count);
  using Range = tbb::blocked_range<std::size_t>;
  const std::size_t parts = (count + kPart - 1) / kPart;
  const auto some = [&](const Range& range, Flags flags) {
    const std::size_t first = range.begin() * kPart;
    const std::size_t end = range.end() == parts ? count : range.end() * kPart;
    return flags | work(first, end - first);
  };
  return in_arena(threads, [&] {
    return tbb::parallel_reduce(Range(0, parts), Flags{}, some,
                                [](const Flags& a, const Flags& b) { return a | b; });
  });
}

std::string prefix(const char* function) { return std::string("halfscope::") + function + ": "; }

void check_lengths(const char* function, std::size_t a, std::size_t b) {
  if (a == b) return;
  throw std::invalid_argument(prefix(function) + "arrays of " + std::to_string(a) + " and " +
                              std::to_string(b) + " elements");
}

std::string name_of(Format f) {
  for (const NamedFormat& row : kFormats) {
    if (row.format == f) return std::string(row.name);
  }
  return "a format of precision " + std::to_string(f.precision) + ", emax " +
         std::to_string(f.emax) + " and width " + std::to_string(f.width);
}

/// storage: number of bits of an element.
void check_storage(const char* function, Format f, int storage) {
  if (f.width <= storage && (storage == 8 || f.width > 8)) return;
  throw std::invalid_argument(prefix(function) + name_of(f) + " has encodings of " +
                              std::to_string(f.width) + " bits, which do not fit elements of " +
                              std::to_string(storage));
}

/// Larger output leaves the caches before it is read, so stores bypass them.
constexpr std::size_t kStreamBytes = std::size_t{16} << 20;

template <class T>
bool streams(std::span<T> out) {
  return out.size_bytes() >= kStreamBytes;
}

Way way_of(Format f, const Modes& modes, bool vector) {
  if (modes.rounding == Rounding::stochastic) detail::require_random_bits(modes);
  if (f16c_rounds(f, modes)) return Way::f16c;
  return vector ? Way::vector : Way::scalar;
}

template <class Bits>
Flags narrow(Format to, std::span<const float> in, std::span<Bits> out,
             const ArrayOptions& options) {
  check_storage("convert", to, 8 * static_cast<int>(sizeof(Bits)));
  check_lengths("convert", in.size(), out.size());
  const Way way = way_of(to, options.modes, can_narrow(to));
  NarrowingJob job = {to, options, way, streams(out), {}};
  if (way != Way::scalar) job.plan = narrowing_plan(to, options.modes);
  return in_parts(in.size(), options.threads, [&](std::size_t first, std::size_t n) {
    return narrow_part(job, in.data() + first, out.data() + first, first, n);
  });
}

template <class Bits>
Flags widen(Format from, std::span<const Bits> in, std::span<float> out,
            const ArrayOptions& options) {
  check_storage("convert", from, 8 * static_cast<int>(sizeof(Bits)));
  check_lengths("convert", in.size(), out.size());
  const Way way = way_of(from, options.modes, can_widen(from, options.modes));
  WideningJob job = {from, options, way, streams(out), {}};
  if (way != Way::scalar) job.plan = widening_plan(from, options.modes);
  return in_parts(in.size(), options.threads, [&](std::size_t first, std::size_t n) {
    return widen_part(job, in.data() + first, out.data() + first, first, n);
  });
}

using Encodings = std::span<const std::uint16_t>;

/// c: empty unless there are three operands.
Flags compute(ArrayOperation operation, Format f, Encodings a, Encodings b, Encodings c,
              std::span<std::uint16_t> out, const ArrayOptions& options) {
  const bool in_place = out.data() == a.data() || out.data() == b.data() || out.data() == c.data();
  const Way way = way_of(f, options.modes, can_compute(operation, f, options.modes));
  ArithmeticJob job = {operation, options, way, streams(out) && !in_place, {}};
  job.plan.format = f;
  if (way != Way::scalar) job.plan = arithmetic_plan(f, options.modes);
  return in_parts(out.size(), options.threads, [&](std::size_t first, std::size_t n) {
    return compute_part(job, a.data() + first, b.data() + first,
                        c.empty() ? nullptr : c.data() + first, out.data() + first, first, n);
  });
}

}  // namespace

Flags convert(Format to, std::span<const float> in, std::span<std::uint16_t> out,
              const ArrayOptions& options) {
  return narrow(to, in, out, options);
}

Flags convert(Format to, std::span<const float> in, std::span<std::uint8_t> out,
              const ArrayOptions& options) {
  return narrow(to, in, out, options);
}

Flags convert(Format from, std::span<const std::uint16_t> in, std::span<float> out,
              const ArrayOptions& options) {
  return widen(from, in, out, options);
}

Flags convert(Format from, std::span<const std::uint8_t> in, std::span<float> out,
              const ArrayOptions& options) {
  return widen(from, in, out, options);
}

Flags quantise(Format f, std::span<float> values, const ArrayOptions& options) {
  const bool fits = f.precision <= 24 && f.emax <= kBinary32.emax &&
                    f.min_quantum_exponent() >= kBinary32.min_quantum_exponent();
  if (!fits) {
    throw std::invalid_argument(prefix("quantise") + "binary32 does not hold the values of " +
                                name_of(f));
  }
  const Way way = way_of(f, options.modes, can_narrow(f));
  NarrowingJob job = {f, options, way, false, {}};
  if (way != Way::scalar) job.plan = narrowing_plan(f, options.modes);
  return in_parts(values.size(), options.threads, [&](std::size_t first, std::size_t n) {
    return quantise_part(job, values.data() + first, first, n);
  });
}

Flags add(Format f, std::span<const std::uint16_t> a, std::span<const std::uint16_t> b,
          std::span<std::uint16_t> out, const ArrayOptions& options) {
  check_storage("add", f, 16);
  check_lengths("add", a.size(), b.size());
  check_lengths("add", a.size(), out.size());
  return compute(ArrayOperation::add, f, a, b, {}, out, options);
}

Flags multiply(Format f, std::span<const std::uint16_t> a, std::span<const std::uint16_t> b,
               std::span<std::uint16_t> out, const ArrayOptions& options) {
  check_storage("multiply", f, 16);
  check_lengths("multiply", a.size(), b.size());
  check_lengths("multiply", a.size(), out.size());
  return compute(ArrayOperation::multiply, f, a, b, {}, out, options);
}

Flags fused_multiply_add(Format f, std::span<const std::uint16_t> a,
                         std::span<const std::uint16_t> b, std::span<const std::uint16_t> c,
                         std::span<std::uint16_t> out, const ArrayOptions& options) {
  check_storage("fused_multiply_add", f, 16);
  check_lengths("fused_multiply_add", a.size(), b.size());
  check_lengths("fused_multiply_add", a.size(), c.size());
  check_lengths("fused_multiply_add", a.size(), out.size());
  return compute(ArrayOperation::fused_multiply_add, f, a, b, c, out, options);
}

}  // namespace halfscope
