// SPDX-License-Identifier: Apache-2.0
// The orders in which W addends of an element are summed (docs/numerics/reductions.md).
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace halfscope::reduction {

enum class Order : std::uint8_t {
  sequential,  ///< ((x0 + x1) + x2) + ...
  ring,        ///< sequential starting at rank c + 1, for the elements of chunk c: NCCL's ring
  tree,        ///< recursive halving, as MPICH's MPI_Reduce_scatter: x[r] + x[r + W / 2] first
  pairwise     ///< the sum of both halves of the list, each summed in the same way
};

struct NamedOrder {
  std::string_view name;
  Order order;
};

/// All orders, by their names on the command line.
inline constexpr std::array kOrders = {
    NamedOrder{"sequential", Order::sequential}, NamedOrder{"ring", Order::ring},
    NamedOrder{"tree", Order::tree}, NamedOrder{"pairwise", Order::pairwise}};

constexpr std::string_view name_of(Order order) {
  for (const NamedOrder& row : kOrders) {
    if (row.order == order) return row.name;
  }
  return "unknown";
}

/// Returns null if no order has that name.
constexpr const NamedOrder* find_order(std::string_view name) {
  for (const NamedOrder& row : kOrders) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

/// The ring's chunks: the n elements are split into W chunks of ceil(n / W), the last ones shorter
/// or empty. In NCCL (src/device/all_reduce.h, runRing) rank r first sends chunk r - 1, so chunk c
/// starts at rank c + 1 and ends at rank c. NCCL splits long tensors into several such rounds, by
/// channels and buffer sizes. This is not modelled: it only changes the rank at which an element
/// starts.
struct Ring {
  std::size_t elements, ranks;

  constexpr std::size_t chunk() const { return (elements + ranks - 1) / ranks; }
  /// Returns the end of an element's chunk, possibly beyond the last element.
  constexpr std::size_t end(std::size_t element) const { return (element / chunk() + 1) * chunk(); }
  /// Returns the rank at which the sum of an element starts.
  constexpr std::size_t start(std::size_t element) const { return (element / chunk() + 1) % ranks; }
};

namespace detail {

template <class Leaf, class Add>
void visit_halves(std::size_t first, std::size_t count, Leaf& leaf, Add& add) {
  if (count == 1) return leaf(first);
  visit_halves(first, count / 2, leaf, add);
  visit_halves(first + count / 2, count - count / 2, leaf, add);
  add();
}

/// Recursive halving first adds ranks that are half of `power` apart, then a quarter, down to
/// neighbours. So the operands of the last addition are the sums of the even and of the odd ranks,
/// and so on. The `extra` ranks beyond a power of two are added first, rank 2r to rank 2r + 1.
template <class Leaf, class Add>
void visit_tree(std::size_t node, std::size_t stride, std::size_t power, std::size_t extra,
                Leaf& leaf, Add& add) {
  if (stride < power) {
    visit_tree(node, 2 * stride, power, extra, leaf, add);
    visit_tree(node + stride, 2 * stride, power, extra, leaf, add);
    add();
  } else if (node < extra) {
    leaf(2 * node);
    leaf(2 * node + 1);
    add();
  } else {
    leaf(node + extra);
  }
}

}  // namespace detail

/// Visits an order as a program for a stack: leaf(i) pushes addend i, add() replaces the top two
/// values by their sum. The stack has at most log2(count) + 3 values. A ring's addend i is rank
/// start + i, modulo the ranks. count >= 1.
template <class Leaf, class Add>
void visit(Order order, std::size_t count, Leaf leaf, Add add) {
  switch (order) {
    case Order::sequential:
    case Order::ring:
      leaf(std::size_t{0});
      for (std::size_t i = 1; i < count; ++i) {
        leaf(i);
        add();
      }
      return;
    case Order::tree: {
      const std::size_t power = std::bit_floor(count);
      return detail::visit_tree(0, 1, power, count - power, leaf, add);
    }
    case Order::pairwise: return detail::visit_halves(0, count, leaf, add);
  }
}

}  // namespace halfscope::reduction
