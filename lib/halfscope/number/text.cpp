// SPDX-License-Identifier: Apache-2.0
#include "halfscope/number/text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <stdexcept>
#include <string_view>

#include "halfscope/number/convert.hpp"
#include "halfscope/number/nan.hpp"

namespace halfscope {
namespace {

// Every value is exactly representable in binary64, and std::to_chars with a precision is exact to
// the last digit. m * 2^-149 with m < 2^24 has at most 112 significant digits.
constexpr int kExactDigits = 112;

void require_supported(Format f) {
  if (f.precision <= kBinary32.precision && f.emax <= kBinary32.emax) return;
  throw std::invalid_argument("to_text: the format must lie within binary32");
}

template <typename... Arguments>
std::string chars_of(double x, Arguments... arguments) {
  std::array<char, 192> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), x, arguments...);
  return {buffer.data(), end.ptr};
}

/// The value 0.DIGITS * 10^point. The first and the last digit are nonzero, except in "0".
struct Decimal {
  std::string digits;
  int point;
};

/// The exact value of x > 0.
Decimal decimal_of(double x) {
  const std::string text = chars_of(x, std::chars_format::scientific, kExactDigits - 1);
  const std::size_t e = text.find('e');
  Decimal out = {text.substr(0, 1) + text.substr(2, e - 2), std::stoi(text.substr(e + 1)) + 1};
  out.digits.erase(out.digits.find_last_not_of('0') + 1);
  return out;
}

/// Returns the first n digits, rounded away from zero if `up`. Zeros at the end are kept.
Decimal cut(const Decimal& x, std::size_t n, bool up) {
  Decimal out = {x.digits.substr(0, n), x.point};
  out.digits.resize(n, '0');
  if (!up) return out;
  std::size_t i = n;
  while (i > 0 && out.digits[i - 1] == '9') out.digits[--i] = '0';
  if (i > 0) {
    ++out.digits[i - 1];
    return out;
  }
  out.digits.insert(0, 1, '1');
  out.digits.pop_back();
  ++out.point;
  return out;
}

/// Returns true if the magnitude of x is rounded up when cut to n digits.
bool rounds_up(const Decimal& x, std::size_t n, bool negative, const Modes& modes) {
  if (x.digits.size() <= n) return false;
  const bool odd = (x.digits[n - 1] - '0') % 2 != 0;
  const std::string_view rest = std::string_view(x.digits).substr(n);  // its last digit is nonzero
  switch (modes.rounding) {
    case Rounding::ties_to_even: return rest > "5" || (rest == "5" && odd);
    case Rounding::ties_to_away: return rest >= "5";
    case Rounding::toward_zero: return false;
    case Rounding::upward: return !negative;
    case Rounding::downward: return negative;
    case Rounding::to_odd: return !odd;
    case Rounding::stochastic: break;
  }
  // Compares 0.REST with R / 2^r digit by digit; both are below one and end in a nonzero digit.
  const double threshold = std::ldexp(static_cast<double>(modes.random), -modes.random_bits);
  if (threshold == 0) return true;
  const Decimal t = decimal_of(threshold);
  return rest > std::string(static_cast<std::size_t>(-t.point), '0') + t.digits;
}

std::string scientific(const Decimal& x) {
  const int exponent = x.point - 1;
  std::string out = x.digits.substr(0, 1);
  if (x.digits.size() > 1) out += "." + x.digits.substr(1);
  const std::string power = std::to_string(std::abs(exponent));
  return out + (exponent < 0 ? "e-" : "e+") + (power.size() < 2 ? "0" : "") + power;
}

bool reads_back(Format f, std::uint64_t magnitude, const Decimal& x) {
  const std::optional<Rounded> read = from_text(f, scientific(x));
  // In a format without infinity the largest number is also the result of every overflow.
  return read && read->bits == magnitude && !read->flags.overflow;
}

/// Returns the shortest decimal that reads back. The two n-digit neighbours enclose the exact
/// decimal, so if any n-digit decimal reads back, one of them does. Below a power of two, numbers
/// are twice as close, so the nearer neighbour may fail although the other one succeeds. If both
/// are equally near, the one with an even digit is tried first.
Decimal shortest(Format f, std::uint64_t magnitude, const Decimal& exact) {
  for (std::size_t n = 1; n < exact.digits.size(); ++n) {
    const bool nearer = rounds_up(exact, n, false, {});
    for (const bool up : {nearer, !nearer}) {
      Decimal candidate = cut(exact, n, up);
      if (reads_back(f, magnitude, candidate)) return candidate;
    }
  }
  return exact;
}

/// Fixed notation: 0.00123, 12.3 or, for a whole number, x itself.
std::string fixed(const Decimal& d, double x) {
  const int count = static_cast<int>(d.digits.size());
  if (d.point >= count) return chars_of(x, std::chars_format::fixed, 0);
  if (d.point <= 0) return "0." + std::string(static_cast<std::size_t>(-d.point), '0') + d.digits;
  const auto point = static_cast<std::size_t>(d.point);
  return d.digits.substr(0, point) + "." + d.digits.substr(point);
}

/// Number of characters of fixed(), computed without writing them.
int fixed_length(const Decimal& d) {
  const int count = static_cast<int>(d.digits.size());
  if (d.point >= count) return d.point;
  return d.point <= 0 ? 2 - d.point + count : count + 1;
}

std::string hexadecimal(std::uint64_t x) {
  std::array<char, 16> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), x, 16);
  return "0x" + std::string(buffer.data(), end.ptr);
}

/// Returns "inf" or a NaN without its sign; empty for a number.
std::string special(Format f, std::uint64_t magnitude) {
  if (magnitude <= f.largest_finite()) return {};
  if (!is_nan(f, magnitude)) return "inf";
  if (magnitude == f.quiet_nan()) return "nan";
  const bool signaling = is_signaling(f, magnitude);
  const std::uint64_t base = signaling ? f.infinity() : f.quiet_nan();
  return (signaling ? "snan(" : "nan(") + hexadecimal(magnitude ^ base) + ")";
}

/// Returns the sign followed by a special value or by write(magnitude).
template <typename Function>
std::string with_sign(Format f, std::uint64_t bits, Function write) {
  require_supported(f);
  const std::uint64_t magnitude = bits & f.magnitude_mask();
  const std::string sign = (bits & f.sign_mask()) != 0 ? "-" : "";
  const std::string name = special(f, magnitude);
  return sign + (name.empty() ? write(magnitude) : name);
}

}  // namespace

std::string to_text(Format f, std::uint64_t bits) {
  return with_sign(f, bits, [&](std::uint64_t magnitude) -> std::string {
    if (magnitude == 0) return "0";
    const double x = to_double(f, magnitude);
    const Decimal d = shortest(f, magnitude, decimal_of(x));
    std::string text = scientific(d);
    return fixed_length(d) <= static_cast<int>(text.size()) ? fixed(d, x) : text;
  });
}

std::string to_text(Format f, std::uint64_t bits, int digits, const Modes& modes) {
  if (digits < 1) throw std::invalid_argument("to_text: at least one digit");
  const auto n = static_cast<std::size_t>(digits);
  return with_sign(f, bits, [&](std::uint64_t magnitude) {
    const bool zero = magnitude == 0;
    const Decimal x = zero ? Decimal{"0", 1} : decimal_of(to_double(f, magnitude));
    return scientific(cut(x, n, rounds_up(x, n, (bits & f.sign_mask()) != 0, modes)));
  });
}

std::string to_hex_text(Format f, std::uint64_t bits) {
  return with_sign(f, bits, [&](std::uint64_t magnitude) {
    return "0x" + chars_of(to_double(f, magnitude), std::chars_format::hex);
  });
}

}  // namespace halfscope
