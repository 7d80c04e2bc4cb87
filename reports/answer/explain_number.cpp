// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>

#include "halfscope/number/convert.hpp"
#include "halfscope/number/neighbour.hpp"
#include "reports/answer/explain.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::reports::answer {

namespace {

/// The number that is explained: an encoding of a format, and its value, exact in binary64.
struct Explained {
  NamedFormat in;
  std::uint64_t bits;
  double value = to_double(in.format, bits);

  bool finite() const { return std::isfinite(value); }
  bool finite_nonzero() const { return finite() && value != 0; }
  /// Returns the number times 2^k, rounded once to `f`.
  Rounded in_format(Format f, int k = 0) const {
    const Unpacked x = unpack(in.format, bits);
    if (!finite_nonzero()) return convert(f, in.format, bits);
    return round_pack(f, x.negative, x.significand, x.exponent + k);
  }
};

/// Returns the shortest decimal that binary64 reads as the value.
std::string number_text(Format f, std::uint64_t bits) {
  return fmt::format("{}", to_double(f, bits));
}

std::string encoding_text(Format f, std::uint64_t bits) {
  return code(fmt::format("0x{:0{}X}", bits, (f.width + 3) / 4));
}

/// Returns the sign, the exponent and the significand with its hidden bit: "0 01111 1.0000000000".
std::string fields_text(Format f, std::uint64_t bits) {
  const std::uint64_t size = bits & f.magnitude_mask();
  const bool number = size <= f.largest_finite(), subnormal = size <= f.fraction_mask();
  return code(fmt::format("{} {:0{}b} {}{:0{}b}", bits >> (f.width - 1), size >> f.fraction_bits(),
                          f.exponent_bits(), number ? (subnormal ? "0." : "1.") : "",
                          size & f.fraction_mask(), f.fraction_bits()));
}

std::string flags_text(const Flags& flags) {
  std::vector<std::string_view> raised;
  if (flags.invalid) raised.emplace_back("invalid");
  if (flags.overflow) raised.emplace_back("overflow");
  if (flags.underflow) raised.emplace_back("underflow");
  if (flags.inexact) raised.emplace_back("inexact");
  return fmt::format("{}", fmt::join(raised, ", "));
}

/// Returns what became of a number in a format.
std::string outcome_text(Format f, const Explained& x, const Rounded& r) {
  const std::uint64_t size = r.bits & f.magnitude_mask();
  const std::string from = r.flags.overflow ? "overflow: " : "";
  if (is_nan(f, r.bits)) return from + "NaN";
  if (is_infinity(f, r.bits)) return from + "infinity";
  if (r.flags.overflow || !x.finite()) return from + "largest number";
  if (size == 0) return x.value == 0 ? "zero" : "flushed to zero";
  return size > f.fraction_mask() ? "normal" : "subnormal";
}

/// Returns the error in units of the last place of the binade that the number lies in.
std::string ulps_text(Format f, const Explained& x, const Rounded& r) {
  if (!x.finite() || r.flags.overflow) return "";
  if (!r.flags.inexact) return "exact";
  const int place = std::max(std::ilogb(x.value), f.emin()) - f.fraction_bits();
  return fmt::format("{:+.3g} ulp", std::ldexp(to_double(f, r.bits) - x.value, -place));
}

/// Returns the error of a number that was rounded at scale 2^k and is divided by it again.
std::string relative_text(Format f, const Explained& x, int k) {
  const Rounded r = x.in_format(f, k);
  const double left = std::ldexp(to_double(f, r.bits), -k);
  if (!std::isfinite(left)) return "lost";
  return r.flags.inexact ? fmt::format("{:+.3g} %", (left - x.value) / x.value * 100) : "exact";
}

/// Returns the tables without rows. Rows begin with the name of a format.
std::vector<Table> empty_tables(int log2_scale) {
  return {
      {.title = "At scale " + power_text(log2_scale),
       .note = "The number is multiplied by the scale, rounded to the format, and divided by "
               "the scale again. The errors are relative to the number.",
       .headings = {"format", "encoding", "outcome", "divided again", "error", "error at scale 1"}},
      {.title = "Values",
       .note = "Rounded once to nearest, ties to even. Errors are in units of the last place "
               "(ulp). Overflow becomes infinity, in e4m3 NaN, in e3m2, e2m3 and e2m1 the "
               "largest number; casts that saturate make it the largest number everywhere.",
       .headings = {"format", "value", "outcome", "error", "flags"}},
      {.title = "Encodings",
       .note = "Fields: sign, exponent, significand with its hidden bit.",
       .headings = {"format", "encoding", "fields"}},
      {.title = "Neighbours",
       .note = "The numbers of the format next to the value.",
       .headings = {"format", "below", "value", "above"}}};
}

std::vector<Table> tables_of(const Explained& x, int k) {
  std::vector<Table> tables = empty_tables(k);
  for (const auto& [name, f] : kFormats) {
    const Rounded r = x.in_format(f), scaled = x.in_format(f, k);
    const std::string value = number_text(f, r.bits);
    const std::vector<std::string> cells[] = {
        {encoding_text(f, scaled.bits), outcome_text(f, x, scaled),
         fmt::format("{:.6g}", std::ldexp(to_double(f, scaled.bits), -k)), relative_text(f, x, k),
         relative_text(f, x, 0)},
        {value, outcome_text(f, x, r), ulps_text(f, x, r), flags_text(r.flags)},
        {encoding_text(f, r.bits), fields_text(f, r.bits)},
        {number_text(f, next_down(f, r.bits).bits), value,
         number_text(f, next_up(f, r.bits).bits)}};
    for (std::size_t i = 0; i < tables.size(); ++i) {
      Row& row = tables[i].rows.emplace_back(Row{{{std::string(name)}}, name == x.in.name});
      for (const std::string& text : cells[i]) row.cells.push_back({text});
    }
  }
  if (k == 0 || !x.finite_nonzero()) tables.erase(tables.begin());
  return tables;
}

/// Returns the least scales at which binary16 keeps a number from zero, keeps all its digits, and
/// overflows.
std::string scales_sentence(const Explained& x) {
  int k = kBinary16.min_quantum_exponent() - 2 - std::ilogb(x.value);
  const auto first = [&](std::uint64_t above) {
    while ((x.in_format(kBinary16, k).bits & kBinary16.magnitude_mask()) <= above) ++k;
    return power_text(k);
  };
  const std::string nonzero = first(0), normal = first(kBinary16.fraction_mask());
  return fmt::format(
      "In binary16 it is flushed to zero at scales below {}, a normal number from {} on, and "
      "overflows from {} on.",
      nonzero, normal, first(kBinary16.largest_finite()));
}

}  // namespace

std::string rounded_text(Format f, double value, int log2_scale, bool with_value) {
  const Explained x{*find_format("binary64"), detail::bit_cast<std::uint64_t>(value)};
  const Rounded r = x.in_format(f, log2_scale);
  return outcome_text(f, x, r) +
         (with_value ? fmt::format(", {:.6g}", to_double(f, r.bits)) : std::string());
}

Section number_section(const std::string& text, const NamedFormat& in, std::uint64_t bits,
                       int log2_scale) {
  const Explained x{in, bits};
  Section section{.title = "", .tables = tables_of(x, log2_scale)};
  section.sentences = {fmt::format(
      "{} is {} {}: {}{}.", code(text),
      in.format == kBinary64 ? "read as the nearest number of" : "an encoding of", in.name,
      number_text(in.format, bits), x.finite() ? fmt::format(", exactly {:a}", x.value) : "")};
  if (x.finite_nonzero()) section.sentences.push_back(scales_sentence(x));
  return section;
}

}  // namespace halfscope::reports::answer
