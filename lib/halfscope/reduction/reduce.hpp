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
  int threads = 0;  ///< 0: as many as there are cores. The facts have the same bits for any number
  /// The addends are the elements from `first` on of tensors of `of` elements; 0: of all. In a ring
  /// the place of an element matters.
  std::size_t first = 0, of = 0;
};

/// A format that sums can be computed in: binary32, or one with infinities, at most 11 bits of
/// precision and binary32's exponents (binary16, bfloat16, tf32, e5m2).
bool can_accumulate(Format f);

/// Elements that reduce() sums together. Facts of parts of a tensor, each but the last a multiple
/// of this, add up to the bits of the whole.
inline constexpr std::size_t kBlock = 1024;

/// Sums W tensors of n elements each, element by element. addends[r]: those of rank r. results:
/// empty, or n elements, which become the sums (values of f, as binary32; with an addend that is
/// not finite, an infinity or a NaN). Facts definitions: facts.hpp.
/// Errors: std::invalid_argument if there are no addends, lengths differ, or f cannot accumulate.
Facts reduce(Format f, std::span<const std::span<const float>> addends, const Options& options = {},
             std::span<float> results = {});

/// Addends that are read when they are needed. Returns the addends from the i-th one on, as many as
/// are held, at least one; of sums of n elements each addend has n values, [addend][element]. What
/// is returned stays valid until the next call.
using AddendsFrom = std::function<std::span<const float>(std::size_t i)>;

/// The same sums of `addends` addends of `elements` elements each, on one thread.
Facts reduce(Format f, std::size_t elements, std::size_t addends, const AddendsFrom& from,
             const Options& options = {});

/// One sum.
struct LongSum {
  Facts facts;       ///< of one element
  float result = 0;  ///< a value of the format; if an addend is not finite, infinite or NaN
  double exact = 0;  ///< of the rounded addends: within K^2 2^-106 of the sum of their magnitudes
  /// Sequential order: the sum does not change from this addend (counted from 0) to the last one,
  /// though at least one of them is not zero. Empty if the last addends change it, if it is
  /// infinite or NaN, and in the other orders.
  std::optional<std::size_t> stalled_at;
};

/// Sums K addends in one chain (or tree) of K - 1 additions; a ring starts at the second one, as
/// for a tensor of one element. The same errors. On one thread: each addition needs the one before.
LongSum sum(Format f, std::span<const float> addends, Order order = Order::sequential);
/// The same of `addends` addends. Every order but the tree needs them one after the other.
LongSum sum(Format f, std::size_t addends, const AddendsFrom& from, Order order);

}  // namespace halfscope::reduction
