// SPDX-License-Identifier: Apache-2.0
// One operation on given operands against the oracle, in all modes, with subnormals as they are and
// as zeros; and sweeps of such judgements on all cores.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

#include "halfscope/number/arithmetic.hpp"
#include "halfscope/number/remainder.hpp"
#include "number/judge.hpp"
#include "oracle_operations.hpp"
#include "parallel.hpp"

namespace judge {

/// A format in the library's words and in the oracle's.
struct Target {
  const char* name;
  halfscope::Format ours;
  oracle::Layout want;

  explicit Target(const halfscope::NamedFormat& row)
      : name(row.name.data()), ours(row.format), want(oracle::layout(row.name)) {}
  explicit Target(const char* format_name) : Target(*halfscope::find_format(format_name)) {}
};

/// Every format of arithmetic: all but binary64.
inline std::vector<Target> arithmetic_formats() {
  std::vector<Target> out;
  for (const halfscope::NamedFormat& row : halfscope::kFormats) {
    if (row.format.precision <= 24) out.emplace_back(row);
  }
  return out;
}

inline std::vector<Target> small_formats() {
  std::vector<Target> out;
  for (const Target& t : arithmetic_formats()) {
    if (t.ours.width <= 8) out.push_back(t);
  }
  return out;
}

template <std::size_t N>
using Bits = std::array<std::uint64_t, N>;
template <std::size_t N>
using Operands = std::array<oracle::Operand, N>;

template <std::size_t N>
Operands<N> operands(const oracle::Layout& f, const Bits<N>& bits, bool daz) {
  Operands<N> out;
  for (std::size_t i = 0; i < N; ++i) out[i] = oracle::operand(f, bits[i], daz);
  return out;
}

template <std::size_t N>
std::string in_hex(const Bits<N>& bits) {
  return fmt::format("{:#x}", fmt::join(bits, " "));
}

/// Empty when `ours(bits, modes)` is `want(operands, precise)` under all modes. `result` is the
/// format of the result. Operands that are no subnormals must not notice denormals_are_zero.
template <std::size_t N, typename Want, typename Ours>
std::string judged(const Target& from, const oracle::Layout& result, const Bits<N>& bits,
                   Scope scope, const Want& want, const Ours& ours) {
  const oracle::Precise precise = {.stochastic = scope.stochastic};
  const auto call = [&](const halfscope::Modes& modes) { return ours(bits, modes); };
  const Operands<N> plain = operands(from.want, bits, false);
  const Operands<N> flushed = operands(from.want, bits, true);
  const oracle::Outcome outcome = want(plain, precise);
  std::string wrong = disagreement(result, outcome, scope, call);
  bool any_subnormal = false;
  for (std::size_t i = 0; i < N; ++i) any_subnormal |= plain[i].code != flushed[i].code;
  if (wrong.empty() && any_subnormal) {
    scope.daz = true;
    wrong = disagreement(result, want(flushed, precise), scope, call);
  } else if (wrong.empty()) {
    const halfscope::Modes daz = {.denormals_are_zero = true};
    const oracle::Result expected = oracle::finish(result, outcome, {});
    if (!same(call(daz), expected)) wrong = difference(daz, call(daz), expected);
  }
  return wrong.empty() ? wrong : fmt::format("{} {}: {}", from.name, in_hex(bits), wrong);
}

/// Calls `judge_one(i)` for i in [0, count) on all cores; the message of the lowest i with one.
template <typename Judge>
std::string first_wrong_of(std::uint64_t count, const Judge& judge_one) {
  std::atomic<std::uint64_t> lowest = count;
  std::string message;
  std::mutex lock;
  parallel_for(count, [&](std::uint64_t i) {
    if (i > lowest) return;
    const std::string wrong = judge_one(i);
    if (wrong.empty()) return;
    const std::scoped_lock guard(lock);
    if (i >= lowest) return;
    lowest = i;
    message = wrong;
  });
  return message;
}

/// A binary operation that rounds.
struct Binary {
  const char* name;
  halfscope::Rounded (*ours)(halfscope::Format, std::uint64_t, std::uint64_t,
                             const halfscope::Modes&);
  oracle::Outcome (*want)(const oracle::Layout&, const oracle::Operand&, const oracle::Operand&,
                          oracle::Precise);
};

inline constexpr Binary kBinary[] = {{"add", halfscope::add, oracle::add},
                                     {"subtract", halfscope::subtract, oracle::subtract},
                                     {"multiply", halfscope::multiply, oracle::multiply},
                                     {"divide", halfscope::divide, oracle::divide},
                                     {"remainder", halfscope::remainder, oracle::remainder}};

inline std::string judged_binary(const Binary& op, const Target& t, std::uint64_t a,
                                 std::uint64_t b, bool stochastic) {
  const std::string wrong = judged(
      t, t.want, Bits<2>{a, b}, {.stochastic = stochastic},
      [&](const Operands<2>& x, oracle::Precise precise) {
        return op.want(t.want, x[0], x[1], precise);
      },
      [&](const Bits<2>& x, const halfscope::Modes& modes) {
        return op.ours(t.ours, x[0], x[1], modes);
      });
  return wrong.empty() ? wrong : fmt::format("{} {}", op.name, wrong);
}

inline std::string judged_fma(const Target& t, const Bits<3>& bits, bool stochastic) {
  return judged(
      t, t.want, bits, {.stochastic = stochastic},
      [&](const Operands<3>& x, oracle::Precise precise) {
        return oracle::fused_multiply_add(t.want, x[0], x[1], x[2], precise);
      },
      [&](const Bits<3>& x, const halfscope::Modes& modes) {
        return halfscope::fused_multiply_add(t.ours, x[0], x[1], x[2], modes);
      });
}

inline std::string judged_square_root(const Target& t, std::uint64_t a, bool stochastic) {
  return judged(
      t, t.want, Bits<1>{a}, {.stochastic = stochastic},
      [&](const Operands<1>& x, oracle::Precise precise) {
        return oracle::square_root(t.want, x[0], precise);
      },
      [&](const Bits<1>& x, const halfscope::Modes& modes) {
        return halfscope::square_root(t.ours, x[0], modes);
      });
}

}  // namespace judge
