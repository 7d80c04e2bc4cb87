// SPDX-License-Identifier: Apache-2.0
// Losses of reductions in 16 bits: W addends of each of n elements (ranks of an all-reduce,
// microbatches of gradient accumulation), or one long sum.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>

#include "halfscope/number/format.hpp"
#include "halfscope/reduction/facts.hpp"
#include "halfscope/reduction/order.hpp"

namespace halfscope::reduction {

struct Options {
  Order order = Order::sequential;
  int threads = 0;  ///< 0: one per core. The results have the same bits for any number
  /// The addends are elements [first, first + n) of tensors with `of` elements; 0: whole tensors.
  /// Only a ring uses this, where an element's position matters.
  std::size_t first = 0, of = 0;
};

/// Returns true if sums can be computed in the format: binary32, or a format with infinities, at
/// most 11 bits of precision and exponents within binary32's (binary16, bfloat16, tf32, e5m2).
bool can_accumulate(Format f);

/// Number of elements that reduce() sums together. If a tensor is split into parts whose lengths,
/// except the last, are multiples of this, the sum of their Facts has the bits of the whole.
inline constexpr std::size_t kBlock = 1024;

/// Sums W tensors of n elements each, element by element. addends[r]: the tensor of rank r.
/// results: empty, or n elements that receive the sums (values of f, as binary32; infinity or NaN
/// if an addend is not finite). Throws std::invalid_argument if there are no addends, lengths
/// differ, or f cannot accumulate. facts.hpp defines the result.
Facts reduce(Format f, std::span<const std::span<const float>> addends, const Options& options = {},
             std::span<float> results = {});

/// Reads addends on demand. Returns as many addends from the i-th on as are available, at least
/// one; for sums of n elements each addend has n values, [addend][element]. Valid until the next
/// call.
using AddendsFrom = std::function<std::span<const float>(std::size_t i)>;

/// Sums `addends` addends of `elements` elements each, on one thread.
Facts reduce(Format f, std::size_t elements, std::size_t addends, const AddendsFrom& from,
             const Options& options = {});

/// The result of one sum.
struct LongSum {
  Facts facts;       ///< facts of one element
  float result = 0;  ///< a value of the format; infinite or NaN if an addend is not finite
  double exact = 0;  ///< sum of the rounded addends; error K^2 2^-106 of magnitudes
  /// In sequential order: the first addend (from 0) from which on the sum no longer changes,
  /// although at least one of the remaining addends is nonzero. Empty if the sum changes until the
  /// end, if it is infinite or NaN, and in other orders.
  std::optional<std::size_t> stalled_at;
};

/// Sums K addends in one chain (or tree) of K - 1 additions, on one thread, since each addition
/// needs the one before. A ring starts at the second addend, as for one element. Throws as reduce()
/// does.
LongSum sum(Format f, std::span<const float> addends, Order order = Order::sequential);
/// Sums `addends` addends. Every order except the tree reads them in sequence.
LongSum sum(Format f, std::size_t addends, const AddendsFrom& from, Order order);

}  // namespace halfscope::reduction
