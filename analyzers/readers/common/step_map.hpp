// SPDX-License-Identifier: Apache-2.0
// Values by step, for logs with a million steps.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <utility>
#include <vector>

namespace halfscope::analyzers::readers::common {

/// A map from steps to values, sorted by step and stored in pieces of bounded size. It needs eight
/// bytes beside each value if steps come in order, as they mostly do. In any order, an insertion
/// moves the entries of at most one piece.
template <typename T>
class StepMap {
 public:
  struct Entry {
    std::int64_t step;
    T value;
  };

  bool empty() const { return pieces_.empty(); }
  const Entry& back() const { return pieces_.back().back(); }  ///< the entry of the last step
  /// The value of a step; T{} if the step is new. The reference is valid until the next call.
  T& operator[](std::int64_t step) {
    if (empty() || step > back().step) return append(step);
    if (find_near_last(step)) return pieces_[last_.piece][last_.at].value;
    auto piece = piece_of(step);
    auto at = std::ranges::lower_bound(*piece, step, {}, &Entry::step);
    if (at == piece->end() || at->step != step) {
      if (piece->size() == kMost) piece = halve(piece, step);
      at = std::ranges::lower_bound(*piece, step, {}, &Entry::step);
      at = piece->insert(at, Entry{step, T{}});
    }
    last_ = {static_cast<std::size_t>(piece - pieces_.begin()),
             static_cast<std::size_t>(at - piece->begin())};
    return at->value;
  }
  /// Removes a step and all later ones.
  void erase_from(std::int64_t step) {
    last_ = {};
    while (!empty() && pieces_.back().front().step >= step) pieces_.pop_back();
    if (empty()) return;
    Piece& piece = pieces_.back();
    piece.erase(std::ranges::lower_bound(piece, step, {}, &Entry::step), piece.end());
  }
  /// The last entry before a step and the first entry from the step on; null if there is none.
  std::pair<const Entry*, const Entry*> around(std::int64_t step) const {
    const Entry *before = nullptr, *from = nullptr;
    const auto next = std::ranges::partition_point(
        pieces_, [&](const Piece& piece) { return piece.back().step < step; });
    if (next != pieces_.begin()) before = &std::prev(next)->back();
    if (next == pieces_.end()) return {before, from};
    const auto at = std::ranges::lower_bound(*next, step, {}, &Entry::step);
    if (at != next->begin()) before = &*std::prev(at);
    return {before, &*at};
  }
  void for_each(const auto& visit) {
    for (Piece& piece : pieces_) {
      for (Entry& entry : piece) visit(entry.step, entry.value);
    }
  }
  /// Calls visit for each value and removes all. Each piece is freed once it was visited.
  void drain(const auto& visit) {
    last_ = {};
    for (Piece& piece : pieces_) {
      for (Entry& entry : piece) visit(std::move(entry.value));
      piece = {};
    }
    pieces_ = {};
  }

 private:
  using Piece = std::vector<Entry>;
  using Pieces = std::vector<Piece>;
  static constexpr std::size_t kMost = 256;  ///< the most entries in a piece

  T& append(std::int64_t step) {
    if (empty() || pieces_.back().size() == kMost) pieces_.emplace_back();
    Piece& piece = pieces_.back();
    if (piece.size() == kMost / 4) piece.reserve(kMost);
    piece.push_back(Entry{step, T{}});
    return piece.back().value;
  }
  /// Returns true, and moves last_ to the step, if the entry at last_ or the next one has the step.
  /// This is common, since the values of one tag come in the order of steps.
  bool find_near_last(std::int64_t step) {
    for (std::size_t i = 0; i < 2 && last_.piece < pieces_.size(); ++i) {
      const Piece& piece = pieces_[last_.piece];
      const std::size_t at = last_.at + i;
      if (at >= piece.size() || piece[at].step != step) continue;
      last_.at = at;
      return true;
    }
    return false;
  }
  /// The piece that has the step or, if none has it, the piece to insert it into.
  typename Pieces::iterator piece_of(std::int64_t step) {
    const auto next = std::ranges::partition_point(
        pieces_, [&](const Piece& piece) { return piece.front().step <= step; });
    return next == pieces_.begin() ? next : std::prev(next);
  }
  /// Splits a piece in two. Returns the half for the step.
  typename Pieces::iterator halve(typename Pieces::iterator piece, std::int64_t step) {
    last_ = {};
    const auto middle = piece->begin() + static_cast<std::ptrdiff_t>(kMost / 2);
    Piece second(std::make_move_iterator(middle), std::make_move_iterator(piece->end()));
    piece->erase(middle, piece->end());
    const bool in_second = second.front().step <= step;
    piece = pieces_.insert(std::next(piece), std::move(second));
    return in_second ? piece : std::prev(piece);
  }

  struct Last {
    std::size_t piece = std::numeric_limits<std::size_t>::max(), at = 0;
  };
  Pieces pieces_;  ///< no piece is empty
  Last last_;      ///< the last entry accessed
};

}  // namespace halfscope::analyzers::readers::common
