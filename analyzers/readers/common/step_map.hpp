// SPDX-License-Identifier: Apache-2.0
// Values by step, of logs of a million steps.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <utility>
#include <vector>

namespace halfscope::analyzers::readers::common {

/// A sorted map in pieces: eight bytes beside each value where steps come in order, as they mostly
/// do; in any order an insertion moves no more than a piece.
template <typename T>
class StepMap {
 public:
  struct Entry {
    std::int64_t step;
    T value;
  };

  bool empty() const { return pieces_.empty(); }
  const Entry& back() const { return pieces_.back().back(); }  ///< the last step's
  /// T{} where the step is new. Valid until the next call.
  T& operator[](std::int64_t step) {
    if (empty() || step > back().step) return append(step);
    if (is_at_hand(step)) return pieces_[last_.piece][last_.at].value;
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
  /// Leaves the steps before this one.
  void erase_from(std::int64_t step) {
    last_ = {};
    while (!empty() && pieces_.back().front().step >= step) pieces_.pop_back();
    if (empty()) return;
    Piece& piece = pieces_.back();
    piece.erase(std::ranges::lower_bound(piece, step, {}, &Entry::step), piece.end());
  }
  /// The last entry before a step, and the first from it on; null where there is none.
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
  /// Calls visit for each, and leaves nothing: a piece that was seen takes no more memory.
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
  static constexpr std::size_t kMost = 256;  ///< entries of a piece

  T& append(std::int64_t step) {
    if (empty() || pieces_.back().size() == kMost) pieces_.emplace_back();
    Piece& piece = pieces_.back();
    if (piece.size() == kMost / 4) piece.reserve(kMost);
    piece.push_back(Entry{step, T{}});
    return piece.back().value;
  }
  /// Tags are told one after the other: the next step is at hand.
  bool is_at_hand(std::int64_t step) {
    for (std::size_t i = 0; i < 2 && last_.piece < pieces_.size(); ++i) {
      const Piece& piece = pieces_[last_.piece];
      const std::size_t at = last_.at + i;
      if (at >= piece.size() || piece[at].step != step) continue;
      last_.at = at;
      return true;
    }
    return false;
  }
  /// The one that has the step, or could have it.
  typename Pieces::iterator piece_of(std::int64_t step) {
    const auto next = std::ranges::partition_point(
        pieces_, [&](const Piece& piece) { return piece.front().step <= step; });
    return next == pieces_.begin() ? next : std::prev(next);
  }
  /// The half of a piece that the step belongs to.
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
  Pieces pieces_;  ///< none is empty
  Last last_;      ///< looked at
};

}  // namespace halfscope::analyzers::readers::common
