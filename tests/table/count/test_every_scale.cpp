// SPDX-License-Identifier: Apache-2.0
// Structured samples of every source format, at every k in [-40, 40], into every 16- and 8-bit
// target: the table's counts against rounding 2^k * x one by one, by the scalar emulator and, for
// the magnitudes, by the oracle.
#include <array>
#include <cmath>
#include <cstdint>
#include <set>
#include <vector>

#include "catch.hpp"
#include "halfscope/number/convert.hpp"
#include "halfscope/table/count/count.hpp"
#include "table/grid.hpp"

namespace test_every_scale {

using namespace halfscope;

constexpr int kLargestScale = 40;
constexpr const char* kTargets[] = {"binary16", "bfloat16", "tf32", "e4m3", "e5m2"};

struct Source {
  const char* name;
  Dtype dtype;
};
constexpr Source kSources[] = {{"binary32", Dtype::f32}, {"binary64", Dtype::f64},
                               {"binary16", Dtype::f16}, {"bfloat16", Dtype::bf16},
                               {"e4m3", Dtype::f8_e4m3}, {"e5m2", Dtype::f8_e5m2}};

/// Fractions, in units of 2^-52, where some target's classes meet: from the oracle.
const std::set<std::uint64_t>& boundary_fractions() {
  static const std::set<std::uint64_t> fractions = [] {
    std::set<std::uint64_t> all = {0, kFractionUnit / 2, kFractionUnit / 3};
    for (const char* target : kTargets) {
      for (const auto c :
           {oracle::Class::subnormal, oracle::Class::normal, oracle::Class::overflow}) {
        all.insert(grid::magnitude(grid::first_of(oracle::layout(target), c, 1)).fraction);
      }
    }
    return all;
  }();
  return fractions;
}

/// Positive encodings of one exponent field, in order: all of them where there are few; else every
/// boundary fraction with three units to each side, subnormals shifted to every binade they have.
std::set<std::uint64_t> encodings_of_field(const oracle::Layout& f, std::uint64_t field) {
  std::set<std::uint64_t> codes;
  const std::uint64_t unit = std::uint64_t{1} << f.fraction_bits;
  const auto insert = [&](std::uint64_t fraction) {
    const std::uint64_t code = (field << f.fraction_bits) + fraction;
    if (fraction < unit && code != 0 && code <= f.last()) codes.insert(code);
  };
  if (f.fraction_bits <= 10) {
    for (std::uint64_t fraction = 0; fraction < unit; ++fraction) insert(fraction);
    return codes;
  }
  for (const std::uint64_t fraction : boundary_fractions()) {
    const std::uint64_t centre = unit + (fraction >> (52 - f.fraction_bits));
    for (std::uint64_t significand = centre - 3; significand <= centre + 3; ++significand) {
      if (field != 0) insert(significand - unit);
      for (int shift = 1; field == 0 && shift <= f.fraction_bits; ++shift) {
        insert(significand >> shift);
      }
    }
  }
  return codes;
}

/// A tensor: its little-endian bytes, and what they encode (each magnitude with both signs, in
/// ascending order).
struct Sample {
  std::vector<std::uint64_t> encodings;
  std::vector<std::byte> bytes;

  void add(Dtype dtype, std::uint64_t bits) {
    encodings.push_back(bits);
    for (int i = 0; i < format_of(dtype).width / 8; ++i) {
      bytes.push_back(static_cast<std::byte>(bits >> (8 * i) & 0xFF));
    }
  }
  TensorView view(Dtype dtype) const { return {dtype, bytes.data(), encodings.size()}; }
};

/// One sample an exponent field.
std::vector<Sample> samples_of(const Source& source) {
  const oracle::Layout& f = oracle::layout(source.name);
  std::vector<Sample> samples;
  for (std::uint64_t field = 0; field <= f.last() >> f.fraction_bits; ++field) {
    Sample sample;
    for (const std::uint64_t code : encodings_of_field(f, field)) {
      sample.add(source.dtype, code);
      sample.add(source.dtype, code | f.sign());
    }
    samples.push_back(std::move(sample));
  }
  return samples;
}

std::vector<BinadeTable> tables_of(const std::vector<Sample>& samples, Dtype dtype) {
  std::vector<BinadeTable> tables;
  for (const Sample& sample : samples) tables.push_back(count_binades(sample.view(dtype), 1));
  return tables;
}

using Counts = std::array<std::uint64_t, 4>;  // zero, subnormal, normal, overflow

Counts counts(const Classes& c) {
  for (const Interval& i : {c.flushed_to_zero, c.subnormal, c.normal, c.overflow}) {
    if (!i.exact()) return {};
  }
  return {c.flushed_to_zero.low, c.subnormal.low, c.normal.low, c.overflow.low};
}

Counts by_emulator(const Sample& sample, Format from, Format to, int k) {
  Counts count{};
  for (const std::uint64_t bits : sample.encodings) {
    const Unpacked x = unpack(from, bits);
    const Rounded r = round_pack(to, x.negative, x.significand, x.exponent + k);
    const std::uint64_t magnitude = r.bits & to.magnitude_mask();
    const bool subnormal = magnitude <= to.fraction_mask();
    ++count[r.flags.overflow ? 3 : magnitude == 0 ? 0 : subnormal ? 1 : 2];
  }
  return count;
}

/// Adds elements [first, last] by class. Rounding keeps the order of magnitudes, so a run whose
/// ends fall in one class falls in it whole.
void tally(const Sample& sample, const oracle::Layout& from, const oracle::Layout& to, int k,
           std::size_t first, std::size_t last, Counts& count) {
  const auto class_at = [&](std::size_t i) {
    const std::uint64_t code = sample.encodings[i] & (from.sign() - 1);
    const oracle::Rational x = oracle::value(from, code) * oracle::power_of_two(k);
    return static_cast<std::size_t>(oracle::class_of(to, x));
  };
  if (class_at(first) == class_at(last)) {
    count[class_at(first)] += last - first + 1;
    return;
  }
  const std::size_t middle = first + (last - first) / 2;
  tally(sample, from, to, k, first, middle, count);
  tally(sample, from, to, k, middle + 1, last, count);
}

/// Judges every sample's table at scale 2^k; `judge(sample)` gives the counts that are right.
template <typename Judge>
void require_all(const Source& source, const char* target, int k,
                 const std::vector<Sample>& samples, const std::vector<BinadeTable>& tables,
                 Judge judge) {
  const Boundaries limits = boundaries(find_format(target)->format, std::ldexp(1.0, k));
  for (std::size_t field = 0; field < samples.size(); ++field) {
    const Counts got = counts(classify(tables[field], limits));
    const Counts want = judge(samples[field]);
    if (got == want) continue;
    CAPTURE(source.name, target, k, field);
    REQUIRE(got == want);
  }
}

TEST_CASE("tables agree with the emulator at every power-of-two scale", "[table][every_scale]") {
  for (const Source& source : kSources) {
    const std::vector<Sample> samples = samples_of(source);
    const std::vector<BinadeTable> tables = tables_of(samples, source.dtype);
    for (const char* target : kTargets) {
      const Format to = find_format(target)->format;
      for (int k = -kLargestScale; k <= kLargestScale; ++k) {
        require_all(source, target, k, samples, tables, [&](const Sample& sample) {
          return by_emulator(sample, format_of(source.dtype), to, k);
        });
      }
    }
  }
  SUCCEED("every table agreed");
}

TEST_CASE("tables agree with the oracle at power-of-two scales", "[table][every_scale][oracle]") {
  for (const Source& source : kSources) {
    const std::vector<Sample> samples = samples_of(source);
    const std::vector<BinadeTable> tables = tables_of(samples, source.dtype);
    const oracle::Layout& from = oracle::layout(source.name);
    const int step = source.dtype == Dtype::f32 ? 1 : 8;
    for (const char* target : kTargets) {
      const oracle::Layout& to = oracle::layout(target);
      for (int k = -kLargestScale; k <= kLargestScale; k += step) {
        require_all(source, target, k, samples, tables, [&](const Sample& sample) {
          Counts count{};
          tally(sample, from, to, k, 0, sample.encodings.size() - 1, count);
          return count;
        });
      }
    }
  }
  SUCCEED("every table agreed");
}

TEST_CASE("the table of a whole tensor is the sum of its parts", "[table][every_scale]") {
  // Large enough for the vector and the encoding-counting paths, which small tensors do not take.
  for (const Source& source : kSources) {
    CAPTURE(source.name);
    const oracle::Layout& f = oracle::layout(source.name);
    Sample whole;
    BinadeTable parts;
    for (const Sample& sample : samples_of(source)) {
      for (const std::uint64_t bits : sample.encodings) whole.add(source.dtype, bits);
      parts.merge(count_binades(sample.view(source.dtype), 1));
    }
    SpecialCounts specials = {.zero = 3, .negative_zero = 2, .nan = 2};
    for (const std::uint64_t bits :
         {std::uint64_t{0}, f.sign(), f.sign(), f.sign() - 1, 2 * f.sign() - 1}) {
      whole.add(source.dtype, bits);
    }
    if (f.top == oracle::Top::infinity_and_nan) {
      specials.positive_infinity = 1;
      specials.negative_infinity = 2;
      for (const std::uint64_t sign : {std::uint64_t{0}, f.sign(), f.sign()}) {
        whole.add(source.dtype, sign | f.after_last());
      }
    }
    parts.add_specials(specials);
    const BinadeTable table = count_binades(whole.view(source.dtype), 1);
    CHECK(table.specials() == specials);
    CHECK(table == parts);
    CHECK(table == count_binades_scalar(whole.view(source.dtype), standard_cuts()));
    CHECK(table.total() == whole.encodings.size());
  }
}

}  // namespace test_every_scale
