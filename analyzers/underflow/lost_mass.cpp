// SPDX-License-Identifier: Apache-2.0
#include "analyzers/underflow/lost_mass.hpp"

#include <tbb/blocked_range.h>
#include <tbb/parallel_reduce.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "analyzers/underflow/step_facts.hpp"

namespace halfscope::analyzers::underflow {
namespace {

using Tensors = std::vector<const TensorFindings*>;

/// Returns the smallest magnitude that is kept at loss scale 2^k, among values times `scale`.
Magnitude kept_from(const Target& target, double scale, int k) {
  return before_scaling(target.boundaries(1.0, scale), k).nonzero;
}

/// Returns true if zeros or infinities stand for values of unknown size.
bool is_censored(const TensorFindings& t) {
  return t.computed_in_fp16() && t.counts.zero.high + t.counts.inf.high != 0;
}

/// Flushed and kept masses: l1 in units of 2^unit, l2 in units of 2^(2 unit).
class Masses {
 public:
  Masses(const Target& target, int k, int unit) : target_(target), k_(k), unit_(unit) {}

  void add(const TensorFindings& t) {
    if (const auto& sums = *t.sums) {
      add(sums->unpacked().split_at(kept_from(target_, 1.0, k_), unit_));
    } else {
      for (const ScaledTable& scaled : t.tables) add(scaled);
    }
    if (is_censored(t)) add_censored(t);
  }

  MassShare share() const {
    return {share(split_.below.l1, split_.above.l1), share(split_.below.l2, split_.above.l2)};
  }

 private:
  static void add(Bounds& to, double low, double high) {
    to.low += low;
    to.high += high;
  }
  static void add(Bounds& to, const Bounds& b) { add(to, b.low, b.high); }
  void add(const MassSplit& s) {
    add(split_.below.l1, s.below.l1);
    add(split_.below.l2, s.below.l2);
    add(split_.above.l1, s.above.l1);
    add(split_.above.l2, s.above.l2);
  }
  /// Adds at least `fewest` values of at least `low`, and at most `most` values of at most `high`.
  static void add(MassShare& to, double fewest, double low, double most, double high) {
    add(to.l1, fewest * low, most * high);
    add(to.l2, fewest * low * low, most * high * high);
  }

  /// Returns `unbounded` if `m` is empty.
  double in_units(const std::optional<Magnitude>& m, double scale, double unbounded) const {
    return m ? in_units(*m, scale) : unbounded;
  }
  double in_units(const Magnitude& m, double scale) const {
    return to_double(Magnitude{m.exponent - unit_, m.fraction}) / scale;
  }

  void add(const ScaledTable& t) {
    const Magnitude limit = kept_from(target_, t.scale, k_);
    const double between = in_units(limit, t.scale);
    t.table.for_each_part([&](const auto& first, const auto& last, const Interval& count) {
      const auto fewest = static_cast<double>(count.low), most = static_cast<double>(count.high);
      const double low = in_units(first, t.scale, 0);
      const double high = in_units(last, t.scale, std::numeric_limits<double>::infinity());
      if (last && *last < limit) {
        add(split_.below, fewest, low, most, high);
      } else if (first && *first >= limit) {
        add(split_.above, fewest, low, most, high);
      } else {  // each value may be on either side
        add(split_.below, 0, low, most, between);
        add(split_.above, 0, between, most, high);
      }
    });
  }

  /// Adds zeros and infinities of values computed in binary16 at a scale S. A zero stands for at
  /// most 2^-25 / S, an infinity for at least 65520 / S.
  void add_censored(const TensorFindings& t) {
    const double limit = in_units(kept_from(target_, 1.0, k_), 1.0);
    for (const StepFindings& step : t.per_step) {
      const double most = in_units(largest_flushed(step), 1.0);
      const auto zeros = static_cast<double>(step.counts.zero.high);
      add(split_.below, 0, 0, zeros, std::min(most, limit));
      if (most > limit) add(split_.above, 0, 0, zeros, most);
      if (step.counts.inf.high == 0) continue;
      const double least =
          as_computed(step) ? in_units(boundaries(kBinary16).overflow, step.scale) : 0.0;
      const double infinity = std::numeric_limits<double>::infinity();
      add(split_.above, static_cast<double>(step.counts.inf.low), least, 1, infinity);
    }
  }

  /// Returns the largest unscaled magnitude that a zero stands for. If S is unknown, the step's
  /// smallest nonzero value is at least 2^-24 / S, so that half of it is a bound.
  static Magnitude largest_flushed(const StepFindings& step) {
    if (!as_computed(step)) return {step.binades.front().exponent, 0};
    return magnitude_of(to_double(boundaries(kBinary16).nonzero) / step.scale);
  }

  /// Returns the flushed share of all mass. It is least if all that may be kept is kept.
  static Bounds share(const Bounds& lost, const Bounds& kept) {
    constexpr double kSlack = 1e-9;  // about 10^5 roundings of 2^-53
    const auto part = [](double of, double beside) {
      return of == 0 ? 0 : std::isinf(beside) ? 0 : of / (of + beside);
    };
    const double low = part(lost.low, kept.high), high = part(lost.high, kept.low);
    return {std::max(0.0, low * (1 - kSlack)), std::min(1.0, high * (1 + kSlack))};
  }

  const Target& target_;
  int k_, unit_;
  MassSplit split_;
};

/// Returns the exponent of the largest values; in units of it no square exceeds binary64's range.
int top_exponent(const Tensors& tensors) {
  int top = std::numeric_limits<int>::min();
  for (const TensorFindings* t : tensors) {
    for (const ScaledTable& scaled : t->tables) {
      const auto largest = scaled.table.largest();
      if (largest) top = std::max(top, largest->exponent);
    }
  }
  return top == std::numeric_limits<int>::min() ? 0 : top;
}

bool has_exact_sums(const TensorFindings& t) { return t.sums->has_value() && !is_censored(t); }

// There may be a million tensors, so each thread processes a range of them.
using Range = tbb::blocked_range<std::size_t>;
constexpr std::size_t kGrain = 256;

std::span<const TensorFindings* const> part_of(const Tensors& tensors, const Range& range) {
  return std::span(tensors).subspan(range.begin(), range.size());
}

MassShare bounds_of(const Tensors& tensors, const Target& target, int k) {
  Masses masses(target, k, top_exponent(tensors));
  for (const TensorFindings* t : tensors) masses.add(*t);
  return masses.share();
}

}  // namespace

std::vector<const TensorFindings*> loss_scaled_tensors(const Analysis& analysis) {
  Tensors tensors;
  for (const TensorFindings& t : analysis.tensors()) {
    if (t.loss_scaled) tensors.push_back(&t);
  }
  return tensors;
}

MagnitudeSums sums_for(const Target& target) {
  const std::uint64_t cut = kept_from(target, 1.0, 0).fraction;
  return MagnitudeSums(cut == 0 ? std::vector<std::uint64_t>() : std::vector{cut});
}

LostMass::LostMass(Tensors tensors, const Target& target)
    : tensors_(std::move(tensors)), target_(target) {
  if (!std::ranges::all_of(tensors_, [](const auto* t) { return has_exact_sums(*t); })) return;
  const MagnitudeSums none = sums_for(target);
  const auto add = [&](const Range& range, MagnitudeSums sums) {
    for (const TensorFindings* t : part_of(tensors_, range)) {
      sums.merge((*t->sums)->unpacked());
    }
    return sums;
  };
  const auto join = [](MagnitudeSums a, const MagnitudeSums& b) {
    a.merge(b);
    return a;
  };
  exact_ = tbb::parallel_reduce(Range(0, tensors_.size(), kGrain), none, add, join);
}

MassShare LostMass::at(int k) const {
  if (exact_) return exact_->share_below(kept_from(target_, 1.0, k));
  return bounds_of(tensors_, target_, k);
}

MassShare lost_mass(const TensorFindings& tensor, const Target& target, int k) {
  return has_exact_sums(tensor) ? (*tensor.sums)->unpacked().share_below(kept_from(target, 1.0, k))
                                : bounds_of({&tensor}, target, k);
}

std::optional<WorstLoss> worst_loss(const Tensors& tensors, const Target& target, int k) {
  using Worst = std::pair<const TensorFindings*, Bounds>;
  const auto worse = [](const Worst& a, const Worst& b) {  // the first of equal ones
    return a.first == nullptr || (b.first != nullptr && b.second.low > a.second.low) ? b : a;
  };
  const auto find = [&](const Range& range, Worst worst) {
    for (const TensorFindings* t : part_of(tensors, range)) {
      const bool all_noise = t->without_noise(t->counts.finite_nonzero).high == 0;
      if (all_noise && t->rounding_noise != 0) continue;
      worst = worse(worst, {t, lost_mass(*t, target, k).l2});
    }
    return worst;
  };
  const auto [tensor, l2] =
      tbb::parallel_reduce(Range(0, tensors.size(), kGrain), Worst(), find, worse);
  return tensor == nullptr ? std::nullopt : std::optional(WorstLoss{tensor->name, l2});
}

bool is_negligible(const MassShare& all, const std::optional<WorstLoss>& worst,
                   const RecommendOptions& options) {
  return all.l2.high < options.negligible_loss && (!worst || worst->l2.low < options.harmed_tensor);
}

}  // namespace halfscope::analyzers::underflow
