// SPDX-License-Identifier: Apache-2.0
#include "analyzers/reduction/element_sums.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "analyzers/frames/elements.hpp"
#include "analyzers/frames/tensor_parts.hpp"
#include "analyzers/reduction/terms.hpp"

namespace halfscope::analyzers::reduction {
namespace {

/// Number of elements that are held in memory at a time.
constexpr std::size_t kTile = std::size_t{1} << 18;

}  // namespace

/// A block of addends of a range of sums.
struct ElementSums::Tile {
  std::size_t addend = 0, addends = 0;  ///< first addend, and number of addends
  std::size_t sum = 0, sums = 0;

  std::size_t size() const { return addends * sums; }
  bool holds(std::size_t a) const { return a >= addend && a - addend < addends; }
};

/// Reads addends of sums [first, first + sums) in binary32, in the order [addend][sum].
class ElementSums::Reader {
 public:
  Reader(const ElementSums& of, std::size_t first, std::size_t sums, bool in_order) : of_(of) {
    const std::size_t all = of.layout_.addends(), most = std::max<std::size_t>(1, kTile / sums);
    tile_.sum = first;
    tile_.sums = sums;
    step_ = all <= most || in_order ? std::min(all, most) : 1;
  }

  /// Returns the addends from `a` on, as many as are held.
  std::span<const float> from(std::size_t a) {
    if (!tile_.holds(a)) {
      Tile next = tile_;
      next.addend = a / step_ * step_;
      next.addends = std::min(step_, of_.layout_.addends() - next.addend);
      if (!same_bytes(next)) load(next);
      tile_ = next;
    }
    return std::span<const float>(values_).subspan((a - tile_.addend) * tile_.sums);
  }

 private:
  /// Returns true if the next tile has equal bytes and need not be read: zeros are frequent.
  bool same_bytes(const Tile& next) const {
    return of_.layout_.sums() == 1 && next.addends == tile_.addends &&
           frames::same_bytes(of_.tensor_.view, next.addend, tile_.addend, next.addends);
  }

  void load(const Tile& next) {
    const std::vector<double> elements = of_.elements(next);
    values_.resize(elements.size());
    for (std::size_t i = 0; i < values_.size(); ++i) {
      values_[i] = static_cast<float>(of_.addend(elements[i], next.sum + i % next.sums));
    }
  }

  const ElementSums& of_;
  std::size_t step_ = 1;
  Tile tile_;
  std::vector<float> values_;
};

ElementSums::ElementSums(const frames::WholeTensor& tensor, Sum sum, const Layout& layout)
    : tensor_(tensor), sum_(sum), layout_(layout) {
  find_centres();
  std::vector<bool> beyond(layout_.sums());
  for_each_tile([&](const Tile& tile, std::span<const double> addends) {
    for (std::size_t i = 0; i < addends.size(); ++i) {
      const float x = static_cast<float>(addends[i]);
      all_zero_ = all_zero_ && x == 0;
      if (std::isfinite(x)) {
        all_ += std::fabs(static_cast<double>(x));
      } else if (std::isfinite(addends[i])) {
        beyond[tile.sum + i % tile.sums] = true;
      }
    }
  });
  beyond_ = static_cast<std::size_t>(std::count(beyond.begin(), beyond.end(), true));
}

template <class Visit>
void ElementSums::for_each_tile(const Visit& visit) const {
  const std::size_t sums = std::min(layout_.sums(), kTile), step = kTile / sums;
  for (std::size_t a = 0; a < layout_.addends(); a += step) {
    for (std::size_t s = 0; s < layout_.sums(); s += sums) {
      const Tile tile = {a, std::min(step, layout_.addends() - a), s,
                         std::min(sums, layout_.sums() - s)};
      std::vector<double> addends = elements(tile);
      for (std::size_t i = 0; i < addends.size(); ++i) {
        addends[i] = addend(addends[i], tile.sum + i % tile.sums);
      }
      visit(tile, addends);
    }
  }
}

/// Returns the elements of a tile in the order [addend][sum].
std::vector<double> ElementSums::elements(const Tile& tile) const {
  const auto [outer, width, inner, by_width] = layout_;
  if (layout_.sums() == 1) return frames::elements(tensor_.view, tile.addend, tile.addends);
  std::vector<double> to(tile.size());
  // A row of memory has the sums' elements of one index of `outer`.
  const std::size_t row = by_width ? tile.addend / inner : tile.sum;
  const std::size_t end =
      by_width ? (tile.addend + tile.addends - 1) / inner + 1 : tile.sum + tile.sums;
  const std::size_t first = by_width ? tile.sum * inner : tile.addend;
  const std::size_t length = by_width ? tile.sums * inner : tile.addends;
  const std::size_t together = length == width * inner ? end - row : 1;
  for (std::size_t o = row; o < end; o += together) {
    const std::vector<double> x =
        frames::elements(tensor_.view, o * width * inner + first, together * length);
    const double* from = x.data();
    for (std::size_t r = o; r < o + together; ++r) {
      for (std::size_t w = 0; w < length / inner; ++w) {
        for (std::size_t i = 0; i < inner; ++i, ++from) {
          const std::size_t a = by_width ? r * inner + i : first + w;
          const std::size_t sum = by_width ? w : r - tile.sum;
          if (tile.holds(a)) to[(a - tile.addend) * tile.sums + sum] = *from;
        }
      }
    }
  }
  return to;
}

/// Returns the addend for an element.
double ElementSums::addend(double element, std::size_t sum) const {
  switch (sum_) {
    case Sum::variance: return (element - centres_[sum]) * (element - centres_[sum]);
    case Sum::softmax: return std::exp(element - centres_[sum]);
    case Sum::mean_square:
    case Sum::gradient_norm: return element * element;
    case Sum::gradient:
    case Sum::bias_gradient:
    case Sum::mean: break;
  }
  return element;
}

void ElementSums::find_centres() {
  const Sum sum = sum_;
  if (sum != Sum::variance && sum != Sum::softmax) return;
  std::vector<double> found(layout_.sums(), sum == Sum::variance ? 0.0 : -HUGE_VAL);
  sum_ = Sum::mean;  // the elements as they are
  for_each_tile([&](const Tile& tile, std::span<const double> elements) {
    for (std::size_t i = 0; i < elements.size(); ++i) {
      double& of = found[tile.sum + i % tile.sums];
      of = sum == Sum::variance ? of + elements[i] : std::max(of, elements[i]);
    }
  });
  sum_ = sum;
  const auto n = static_cast<double>(layout_.addends());
  if (sum == Sum::variance) {
    for (double& x : found) x /= n;
  }
  centres_ = std::move(found);
}

double ElementSums::magnitudes(double largest) const {
  if (largest >= std::numeric_limits<float>::max()) return all_;
  double sum = 0;
  for_each_tile([&](const Tile&, std::span<const double> addends) {
    for (const double x : addends) {
      const double magnitude = std::fabs(static_cast<double>(static_cast<float>(x)));
      if (magnitude <= largest) sum += magnitude;
    }
  });
  return sum;
}

Facts ElementSums::facts(Format format, Order order) const {
  Facts all;
  const std::size_t sums = layout_.sums();
  if (all_zero_) {
    all.elements = sums;
    all.additions = sums * (addends() - 1);
    return all;
  }
  const std::size_t together = sums < kFewSums ? 1 : halfscope::reduction::kBlock;
  frames::in_order<Facts>((sums + together - 1) / together, 0,
                          [&](std::size_t i) {
                            const std::size_t first = i * together;
                            return facts_of(first, std::min(together, sums - first), format, order);
                          },
                          [&](const Facts& some) { all += some; });
  add_beyond(beyond_, addends(), all);
  return all;
}

Facts ElementSums::facts_of(std::size_t first, std::size_t sums, Format format, Order order) const {
  Reader reader(*this, first, sums, order != Order::tree);
  const auto from = [&](std::size_t a) { return reader.from(a); };
  if (layout_.sums() < kFewSums) {
    return halfscope::reduction::sum(format, addends(), from, order).facts;
  }
  return halfscope::reduction::reduce(format, sums, addends(), from, {.order = order});
}

}  // namespace halfscope::analyzers::reduction
