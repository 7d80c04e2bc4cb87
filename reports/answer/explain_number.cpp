// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <stdexcept>

#include "halfscope/log/error.hpp"
#include "halfscope/number/convert.hpp"
#include "halfscope/number/neighbour.hpp"
#include "halfscope/number/text.hpp"
#include "reports/answer/explain.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::reports::answer {

namespace {

/// The exact number that is explained.
struct Exact {
  Unpacked unpacked;
  double value;  ///< exact: every format lies within binary64

  bool finite_nonzero() const { return unpacked.kind == halfscope::Kind::finite; }
  int exponent() const { return std::ilogb(value); }
};

/// Returns the number times 2^log2_scale, rounded once to `f`.
Rounded rounded_at(const NamedFormat& f, const NumberAsked& asked, const Exact& x, int log2_scale) {
  if (!x.finite_nonzero()) return convert(f.format, asked.in.format, asked.bits);
  const Unpacked& u = x.unpacked;
  return round_pack(f.format, u.negative, u.significand, u.exponent + log2_scale);
}

std::string value_text_in(Format f, std::uint64_t bits) {
  return f == kBinary64 ? fmt::format("{}", to_double(f, bits)) : to_text(f, bits);
}

/// Returns the exact value: as a decimal of at most 20 digits, else in hexadecimal. Empty if the
/// number is not finite.
std::string exact_text(double x) {
  constexpr int kAllDigits = 767, kShort = 20;  // no binary64 number has more significant digits
  if (!std::isfinite(x)) return "";
  const std::string all = fmt::format("{:.{}e}", std::abs(x), kAllDigits - 1);
  const auto last = static_cast<int>(all.find_last_not_of('0', all.find('e') - 1));
  const int digits = std::max(last, 1);  // the point has the place of a digit
  return digits <= kShort ? fmt::format("{:.{}g}", x, digits) : fmt::format("{:a}", x);
}

std::string encoding_text(Format f, std::uint64_t bits) {
  return fmt::format("0x{:0{}X}", bits, (f.width + 3) / 4);
}

/// Returns the fields of an encoding: "0 01111 1.0000000000". A number's significand begins with
/// its hidden bit.
std::string fields_text(Format f, std::uint64_t bits) {
  const std::uint64_t magnitude = bits & f.magnitude_mask();
  const std::string hidden = magnitude > f.largest_finite()  ? ""
                             : magnitude > f.fraction_mask() ? "1."
                                                             : "0.";
  return fmt::format("{} {:0{}b} {}{:0{}b}", bits >> (f.width - 1), magnitude >> f.fraction_bits(),
                     f.exponent_bits(), hidden, magnitude & f.fraction_mask(), f.fraction_bits());
}

std::string flags_text(const Flags& flags) {
  std::string out;
  const auto add = [&](bool raised, std::string_view name) {
    if (raised) out += (out.empty() ? "" : ", ") + std::string(name);
  };
  add(flags.invalid, "invalid");
  add(flags.overflow, "overflow");
  add(flags.underflow, "underflow");
  add(flags.inexact, "inexact");
  return out;
}

/// Returns what became of a number in a format.
std::string_view outcome_text(Format f, const Exact& x, const Rounded& r) {
  const std::uint64_t magnitude = r.bits & f.magnitude_mask();
  const bool from_finite = r.flags.overflow;
  if (is_nan(f, r.bits)) return from_finite ? "overflow: NaN" : "NaN";
  if (is_infinity(f, r.bits)) return from_finite ? "overflow: infinity" : "infinity";
  if (from_finite || !std::isfinite(x.value)) return "overflow: largest number";
  if (magnitude == 0) return x.finite_nonzero() ? "flushed to zero" : "zero";
  return magnitude > f.fraction_mask() ? "normal" : "subnormal";
}

/// Returns true if the number became a finite one without overflow.
bool kept_finite(Format f, const Exact& x, const Rounded& r) {
  return std::isfinite(x.value) && !r.flags.overflow &&
         (r.bits & f.magnitude_mask()) <= f.largest_finite();
}

/// Returns the error in units of the last place of the binade that the number lies in.
Cell ulps_cell(Format f, const Exact& x, const Rounded& r) {
  if (!x.finite_nonzero() || !kept_finite(f, x, r)) return {"", {}, "", true};
  const double error = to_double(f, r.bits) - x.value;
  if (error == 0) return {"exact", 0.0, "", true};
  const double ulps = std::ldexp(error, -(std::max(x.exponent(), f.emin()) - f.fraction_bits()));
  return {fmt::format("{:+.3g} ulp", ulps), ulps};
}

Table encodings_table(const NumberAsked& asked, const Exact& x) {
  Table table{.title = "Encodings",
              .note =
                  "The fields are the sign, the exponent and the significand with its hidden "
                  "bit.",
              .headings = {"format", "encoding", "fields"},
              .whole = true};
  table.add_rows(kFormats, [&](const NamedFormat& f) {
    const std::uint64_t bits = rounded_at(f, asked, x, 0).bits;
    return Row{{{std::string(f.name)},
                {code(encoding_text(f.format, bits))},
                {code(fields_text(f.format, bits))}},
               f.name == asked.in.name};
  });
  return table;
}

Table values_table(const NumberAsked& asked, const Exact& x) {
  Table table{.title = "Values",
              .note =
                  "Rounded once to nearest, ties to even. An error is in units of the last "
                  "place (ulp).",
              .headings = {"format", "becomes", "value", "exactly", "error", "flags"},
              .whole = true};
  table.add_rows(kFormats, [&](const NamedFormat& f) {
    const Rounded r = rounded_at(f, asked, x, 0);
    return Row{{{std::string(f.name)},
                {std::string(outcome_text(f.format, x, r))},
                {value_text_in(f.format, r.bits)},
                {exact_text(to_double(f.format, r.bits))},
                ulps_cell(f.format, x, r),
                {flags_text(r.flags)}},
               f.name == asked.in.name};
  });
  return table;
}

Table neighbours_table(const NumberAsked& asked, const Exact& x) {
  Table table{.title = "Neighbours",
              .note = "The numbers of the format next to the value, and the gap to the one above.",
              .headings = {"format", "below", "value", "above", "gap"},
              .whole = true};
  for (const NamedFormat& f : kFormats) {
    const Rounded r = rounded_at(f, asked, x, 0);
    const auto text = [&](std::uint64_t bits) { return value_text_in(f.format, bits); };
    if (is_nan(f.format, r.bits)) continue;
    const std::uint64_t below = next_down(f.format, r.bits).bits;
    const std::uint64_t above = next_up(f.format, r.bits).bits;
    const double gap = to_double(f.format, above) - to_double(f.format, r.bits);
    table.rows.push_back({{{std::string(f.name)},
                           {below == r.bits ? "none" : text(below)},
                           {text(r.bits)},
                           {above == r.bits ? "none" : text(above)},
                           {gap > 0 && std::isfinite(gap) ? power_text(std::ilogb(gap)) : ""}},
                          f.name == asked.in.name});
  }
  return table;
}

/// The powers of two k from which on a number times 2^k is no longer flushed to zero, is a normal
/// number, and overflows.
struct ScaleLimits {
  int nonzero, normal, overflow;
};

ScaleLimits limits_in(const NamedFormat& f, const NumberAsked& asked, const Exact& x) {
  ScaleLimits limits{};
  int k = f.format.min_quantum_exponent() - 2 - x.exponent();
  const auto first = [&](const auto& reached) {
    while (!reached(rounded_at(f, asked, x, k))) ++k;
    return k;
  };
  const auto magnitude = [&](const Rounded& r) { return r.bits & f.format.magnitude_mask(); };
  limits.nonzero = first([&](const Rounded& r) { return magnitude(r) != 0; });
  limits.normal = first([&](const Rounded& r) { return magnitude(r) > f.format.fraction_mask(); });
  limits.overflow = first([&](const Rounded& r) { return r.flags.overflow; });
  return limits;
}

Table limits_table(const NumberAsked& asked, const Exact& x) {
  Table table{.title = "Scales",
              .note = "The smallest power of two by which the number must be multiplied.",
              .headings = {"format", "not zero from", "normal from", "overflow from"},
              .whole = true};
  const auto cell = [](int k) { return Cell{power_text(k), static_cast<double>(k)}; };
  table.add_rows(kFormats, [&](const NamedFormat& f) {
    const ScaleLimits limits = limits_in(f, asked, x);
    return Row{
        {{std::string(f.name)}, cell(limits.nonzero), cell(limits.normal), cell(limits.overflow)}};
  });
  return table;
}

std::string relative_text(double found, double x) {
  if (!std::isfinite(found)) return "lost";
  return found == x ? "exact" : fmt::format("{:+.2g} %", (found - x) / x * 100);
}

Table scaled_table(const NumberAsked& asked, const Exact& x, int log2_scale) {
  Table table{
      .title = fmt::format("At scale {}", power_text(log2_scale)),
      .note =
          "The number is multiplied by the scale, rounded to the format, and divided "
          "by the scale again. The errors are relative to the number.",
      .headings = {"format", "encoding", "becomes", "divided again", "error", "error at scale 1"},
      .whole = true};
  table.add_rows(kFormats, [&](const NamedFormat& f) {
    const auto back = [&](int k) {
      return std::ldexp(to_double(f.format, rounded_at(f, asked, x, k).bits), -k);
    };
    const Rounded r = rounded_at(f, asked, x, log2_scale);
    return Row{{{std::string(f.name)},
                {code(encoding_text(f.format, r.bits))},
                {std::string(outcome_text(f.format, x, r))},
                {fmt::format("{:.6g}", back(log2_scale))},
                {relative_text(back(log2_scale), x.value)},
                {relative_text(back(0), x.value)}}};
  });
  return table;
}

std::vector<std::string> number_sentences(const NumberAsked& asked, const Exact& x) {
  std::vector<std::string> out = {
      fmt::format("{} is {} {}: {}{}.", code(asked.text),
                  asked.in.format == kBinary64 ? "read as the number of" : "an encoding of",
                  asked.in.name, value_text_in(asked.in.format, asked.bits),
                  x.finite_nonzero() ? fmt::format(", exactly {}", exact_text(x.value)) : "")};
  if (!x.finite_nonzero()) return out;
  out.push_back(
      fmt::format("Its magnitude is from 2^{} to below 2^{}.", x.exponent(), x.exponent() + 1));
  const NamedFormat& half = *find_format("binary16");
  const ScaleLimits limits = limits_in(half, asked, x);
  out.push_back(fmt::format(
      "In binary16 it becomes {}. Times 2^{} or more it is not flushed to zero, times 2^{} or more "
      "it is a normal number, and times 2^{} or more it overflows.",
      outcome_text(half.format, x, rounded_at(half, asked, x, 0)), limits.nonzero, limits.normal,
      limits.overflow));
  return out;
}

[[noreturn]] void refuse_encoding(const std::string& text, std::size_t digits,
                                  const NamedFormat* format) {
  const std::string shown = log::printable(text);
  if (format == nullptr) {
    throw std::invalid_argument(fmt::format(
        "found '{}', an encoding of {} hexadecimal digits, which no format has; give 1 (e2m1), 2 "
        "(e4m3), 4 (binary16), 5 (tf32), 8 (binary32) or 16 (binary64), or a number as {}p0",
        shown, digits, shown));
  }
  throw std::invalid_argument(
      fmt::format("found '{}', expected an encoding of {}: {} at most", shown, format->name,
                  encoding_text(format->format, 2 * format->format.sign_mask() - 1)));
}

NumberAsked encoding_called(const std::string& text, const NamedFormat* format) {
  const std::size_t digits = text.size() - 2;
  const NamedFormat* found = format;
  for (const NamedFormat& row : kFormats) {
    const auto own = static_cast<std::size_t>(row.format.width + 3) / 4;
    if (found == nullptr && own == digits) found = &row;
  }
  constexpr std::size_t kMost = 16;
  if (found == nullptr || digits > kMost) refuse_encoding(text, digits, format);
  const std::uint64_t bits = std::strtoull(text.c_str() + 2, nullptr, 16);
  if ((bits & ~(found->format.sign_mask() | found->format.magnitude_mask())) != 0) {
    refuse_encoding(text, digits, found);
  }
  return {text, *found, bits};
}

}  // namespace

std::optional<NumberAsked> number_called(const std::string& text, const NamedFormat* format) {
  const bool prefix = text.starts_with("0x") || text.starts_with("0X");
  if (prefix && text.size() > 2 &&
      text.find_first_not_of("0123456789abcdefABCDEF", 2) == std::string::npos) {
    return encoding_called(text, format);
  }
  if (text.empty() || text.find_first_of(" \t\r\n\v\f(") != std::string::npos) return std::nullopt;
  char* end = nullptr;
  errno = 0;
  const double value = std::strtod(text.c_str(), &end);
  if (end != text.c_str() + text.size()) return std::nullopt;
  if (errno == ERANGE && (std::isinf(value) || value == 0)) {
    throw std::invalid_argument(
        fmt::format("found '{}', beyond the range of binary64; give a magnitude from 5e-324 to "
                    "1.79e308",
                    log::printable(text)));
  }
  return NumberAsked{text, *find_format("binary64"), detail::bit_cast<std::uint64_t>(value)};
}

std::string rounded_text(const NamedFormat& f, double value, int log2_scale) {
  const NumberAsked asked = {"", *find_format("binary64"), detail::bit_cast<std::uint64_t>(value)};
  const Exact x = {unpack(kBinary64, asked.bits), value};
  const Rounded r = rounded_at(f, asked, x, log2_scale);
  return fmt::format("{}, {}", outcome_text(f.format, x, r), value_text_in(f.format, r.bits));
}

std::vector<Section> number_sections(const NumberAsked& asked, int log2_scale) {
  const Exact x = {unpack(asked.in.format, asked.bits), to_double(asked.in.format, asked.bits)};
  Section section{.title = "", .sentences = number_sentences(asked, x)};
  if (x.finite_nonzero() && log2_scale != 0) {
    section.tables.push_back(scaled_table(asked, x, log2_scale));
  }
  section.tables.push_back(values_table(asked, x));
  section.tables.push_back(encodings_table(asked, x));
  section.tables.push_back(neighbours_table(asked, x));
  if (x.finite_nonzero()) section.tables.push_back(limits_table(asked, x));
  return {section};
}

}  // namespace halfscope::reports::answer
