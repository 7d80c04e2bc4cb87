// SPDX-License-Identifier: Apache-2.0
// Hand-picked rows: operands, the result and the flags, under a name that is the reason for the
// row.
//
// The results were worked out from IEEE 754-2019's definitions in exact fractions (Python's
// fractions.Fraction: the exact value first, then one step of clause 4.3 and the tests of clause
// 7), never by running the library. Rows that are one operation in one format form a table; a table
// registers itself, and test_rows.cpp counts them all.
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "halfscope/number/compare.hpp"
#include "halfscope/number/convert.hpp"
#include "halfscope/number/format.hpp"
#include "halfscope/number/integral.hpp"
#include "halfscope/number/modes.hpp"

namespace rows {

using halfscope::Flags;
using halfscope::Format;
using halfscope::Modes;
using halfscope::OnNan;
using halfscope::Rounded;
using halfscope::Rounding;

using Operands = std::array<std::uint64_t, 3>;

// Flags come in few combinations.
inline constexpr Flags kNone = {};
inline constexpr Flags kInexact = {.inexact = true};
inline constexpr Flags kTiny = {.underflow = true, .inexact = true};
inline constexpr Flags kOverflow = {.overflow = true, .inexact = true};
inline constexpr Flags kInvalid = {.invalid = true};
inline constexpr Flags kByZero = {.divide_by_zero = true};

inline constexpr Modes kEven = {};
inline constexpr Modes kAway = {.rounding = Rounding::ties_to_away};
inline constexpr Modes kToZero = {.rounding = Rounding::toward_zero};
inline constexpr Modes kUp = {.rounding = Rounding::upward};
inline constexpr Modes kDown = {.rounding = Rounding::downward};
inline constexpr Modes kOdd = {.rounding = Rounding::to_odd};
inline constexpr Modes kCanonical = {.nan = halfscope::NanPolicy::canonical};
inline constexpr Modes kCuda = {.nan = halfscope::NanPolicy::cuda};
// "DAZ" in a reason: subnormal operands count as zeros; "flushed": tiny results become zeros.
inline constexpr Modes kDaz = {.denormals_are_zero = true};
inline constexpr Modes kFtz = {.flush_to_zero = true};
inline constexpr Modes kFtzResult = {.flush_to_zero = true, .flush = halfscope::Flush::subnormal};
inline constexpr Modes kSaturate = {.saturate = true};

constexpr Modes before(Modes modes) {
  modes.tininess = halfscope::Tininess::before_rounding;
  return modes;
}

struct Row {
  const char* reason;
  Operands operands;
  std::uint64_t bits;  ///< 0 or 1 of a predicate
  Flags flags = {};
  Modes modes = {};
};

using Apply = Rounded (*)(Format, const Operands&, const Modes&);

// The shapes of operations as one.
template <Rounded (*kFunction)(Format, std::uint64_t, const Modes&)>
Rounded unary(Format f, const Operands& x, const Modes& modes) {
  return kFunction(f, x[0], modes);
}
template <Rounded (*kFunction)(Format, std::uint64_t, std::uint64_t, const Modes&)>
Rounded binary(Format f, const Operands& x, const Modes& modes) {
  return kFunction(f, x[0], x[1], modes);
}
template <Rounded (*kFunction)(Format, std::uint64_t, std::uint64_t, std::uint64_t, const Modes&)>
Rounded ternary(Format f, const Operands& x, const Modes& modes) {
  return kFunction(f, x[0], x[1], x[2], modes);
}
template <auto kFunction, OnNan kOnNan>
Rounded comparison(Format f, const Operands& x, const Modes& modes) {
  const halfscope::Compared c = kFunction(f, x[0], x[1], kOnNan, modes);
  return {c.result ? 1U : 0U, c.flags};
}
template <Format kFrom>
Rounded convert_from(Format to, const Operands& x, const Modes& modes) {
  return halfscope::convert(to, kFrom, x[0], modes);
}
template <halfscope::IntegerType kType, bool kExact>
Rounded to_integer(Format f, const Operands& x, const Modes& modes) {
  return halfscope::to_integer(kType, f, x[0], modes, kExact);
}
template <halfscope::IntegerType kType>
Rounded from_integer(Format f, const Operands& x, const Modes& modes) {
  return halfscope::from_integer(f, kType, x[0], modes);
}
template <bool kExact>
Rounded round_to_integral(Format f, const Operands& x, const Modes& modes) {
  return halfscope::round_to_integral(f, x[0], modes, kExact);
}

class Table;

/// Every table of the program, in no particular order.
inline std::vector<const Table*>& tables() {
  static std::vector<const Table*> all;
  return all;
}

class Table {
 public:
  Table(const char* name, Format format, Apply apply, std::vector<Row> rows)
      : name_(name), format_(format), apply_(apply), rows_(std::move(rows)) {
    tables().push_back(this);
  }
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  const char* name() const { return name_; }
  const std::vector<Row>& rows() const { return rows_; }

  /// Compares bits and flags, row by row.
  void check() const {
    for (const Row& row : rows_) {
      const Rounded got = apply_(format_, row.operands, row.modes);
      INFO(fmt::format("{}: {} ({:#x} {:#x} {:#x})", name_, row.reason, row.operands[0],
                       row.operands[1], row.operands[2]));
      INFO(fmt::format("found {}, expected {}", text(got), text({row.bits, row.flags})));
      CHECK((got.bits == row.bits && got.flags == row.flags));
    }
  }

 private:
  static std::string text(const Rounded& r) {
    return fmt::format("{:#x}{}{}{}{}{}", r.bits, r.flags.invalid ? " invalid" : "",
                       r.flags.divide_by_zero ? " divide by zero" : "",
                       r.flags.overflow ? " overflow" : "", r.flags.underflow ? " underflow" : "",
                       r.flags.inexact ? " inexact" : "");
  }

  const char* name_;
  Format format_;
  Apply apply_;
  std::vector<Row> rows_;
};

}  // namespace rows
