// SPDX-License-Identifier: Apache-2.0
#include "analyzers/underflow/tensor_collector.hpp"

#include <fmt/format.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "analyzers/underflow/provenance.hpp"
#include "halfscope/log/error.hpp"
#include "halfscope/log/tensor_file.hpp"
#include "halfscope/log/user_limit.hpp"

namespace halfscope::analyzers::underflow {

using frames::Frame;

namespace {

/// Splits scale = significand * 2^exponent, with the significand in [1, 2).
std::pair<double, int> normalised(double scale) {
  int exponent = 0;
  const double half = std::frexp(scale, &exponent);
  return {2 * half, exponent - 1};
}

/// Returns the first and the last binade that values may lie in. A bucket that contains zero has no
/// lowest binade: it is extended down to kLowest, below which values do not matter.
std::pair<int, int> binades_of(const BoundedTable& table) {
  constexpr int kLowest = -40;
  int first = std::numeric_limits<int>::max(), last = std::numeric_limits<int>::min();
  const auto reach = [&](int from, int to) {
    first = std::min(first, from);
    last = std::max(last, to);
  };
  const auto see = [&](const auto& from, const auto& to, const Interval&) {
    if (!from && !to) return;
    const int high = to ? to->exponent : from->exponent;
    const int low = from ? from->exponent : std::min(kLowest, high);
    // Also limits a bucket next to zero that begins at the smallest positive number.
    reach(low == high ? low : std::max(low, std::min(kLowest, high)), high);
  };
  table.for_each_part(see);
  return {first, last};
}

/// Returns the unscaled binades of a histogram of values times `scale`, which is in [1, 2).
BinadeCounts unscaled_binades(const BoundedTable& table, double scale) {
  BinadeCounts binades;
  if (table.is_exact() && scale == 1.0) {
    for (const BinadeTable::Row& row : table.exact().rows()) {
      binades.push_back({row.exponent, row.count()});
    }
    return binades;
  }
  const auto [first, last] = binades_of(table);
  if (first > last) return binades;
  std::vector<Magnitude> starts;
  for (int e = first - 1; e <= last + 1; ++e) starts.push_back(unscaled_binade(e, scale));
  const std::vector<Interval> from = table.at_or_above(starts);
  for (std::size_t i = 0; i + 1 < from.size(); ++i) {
    const Interval count = without(from[i], from[i + 1]);
    if (count.high != 0) binades.push_back({first - 1 + static_cast<int>(i), count});
  }
  return binades;
}

/// Returns the sum over all steps.
BinadeCounts sum_of_binades(const StepList& steps) {
  BinadeCounts binades;
  if (steps.size() == 1) {
    binades = steps.back().binades;
  } else {
    std::map<int, Interval> sum;
    for (const StepFindings& step : steps) {
      for (const BinadeCount& b : step.binades) sum[b.exponent] += b.count;
    }
    for (const auto& [exponent, count] : sum) binades.push_back({exponent, count});
  }
  binades.shrink_to_fit();
  return binades;
}

/// Returns all counts except the classes.
Counts counts_of(const BoundedTable& table) {
  return {
      table.total(),          table.zero(), table.nan(), table.inf(), table.finite_nonzero(), {},
      table.nonfinite_known()};
}

/// Returns true if the histogram has the cut that unscaling by this scale needs.
bool unscales_exactly(const BoundedTable& bounded, double scale) {
  const BinadeTable& table = bounded.exact();
  const std::uint64_t fraction = unscaled_binade(0, scale).fraction;
  return fraction == 0 || std::binary_search(table.cuts().begin(), table.cuts().end(), fraction);
}

/// A frame's histogram without the power of two of its scale, and the rest of the scale.
struct Normalised {
  double scale;
  std::optional<BoundedTable> moved;  ///< empty if the power of two is 1
  const BoundedTable& table;

  explicit Normalised(const Frame& frame) : Normalised(frame, normalised(frame.scale)) {}
  Normalised(const Normalised&) = delete;

 private:
  Normalised(const Frame& frame, const std::pair<double, int>& parts)
      : scale(parts.first),
        table(parts.second == 0
                  ? frame.table
                  : moved.emplace(frame.table.scaled_by_power_of_two(-parts.second))) {}
};

StepFindings find_step(const Frame& frame, const Normalised& normal, const Target& target,
                       double loss_scale) {
  StepFindings step;
  step.step = frame.step;
  step.scale = frame.scale;
  step.loss_scale = loss_scale;
  step.counts = counts_of(frame.table);
  const StepClasses found = classes_of(frame, target, loss_scale);
  step.counts.classes = found.classes;
  step.overflow_at_1 = found.overflow_at_1;
  step.binades = unscaled_binades(normal.table, normal.scale);
  step.moments = frame.moments;
  step.fits_as_is = underflow::fits_as_is(frame.table);
  step.largest = frame.table.largest();
  if (step.largest) step.max_abs = to_double(*step.largest) / frame.scale;
  const auto least = frame.table.largest_at_least();
  if (least && least != step.largest) step.max_abs_at_least = to_double(*least) / frame.scale;
  return step;
}

void add_table(TensorFindings& tensor, const Normalised& normal) {
  for (ScaledTable& sum : tensor.tables) {
    if (sum.scale == normal.scale) {
      sum.table.merge(normal.table);
      return;
    }
  }
  tensor.tables.push_back({normal.scale, normal.table});
}

/// Throws log::BadInput if a tensor's name is too long: reports repeat it many times.
void check_name(const std::string& log, const std::string& name) {
  constexpr std::uint64_t kLongestName = 4096;
  if (name.size() <= kLongestName) return;
  const std::uint64_t most = log::user_limit(log::kNameLimit, kLongestName);
  if (name.size() <= most) return;
  throw log::BadInput(fmt::format(
      "{} has a name of {} bytes, expected at most {}; rename the tensor, or set the environment "
      "variable HALFSCOPE_NAME_LIMIT={}",
      log::place_text(log::printable(log), name), name.size(), most, name.size()));
}

TensorFindings begun(const log::SharedText& log, const Frame& first) {
  TensorFindings tensor;
  tensor.log = log;
  tensor.name = first.name;
  tensor.role = first.role;
  tensor.role_source = first.role_source;
  tensor.loss_scaled = first.loss_scaled;
  return tensor;
}

/// Sets the extreme magnitudes. In a histogram with values, an empty extreme is unbounded.
void set_extremes(TensorFindings& t) {
  constexpr double kUnbounded = std::numeric_limits<double>::infinity();
  std::optional<double> max_abs, at_least, min_abs, at_most;
  for (const ScaledTable& sum : t.tables) {
    if (sum.table.finite_nonzero().high == 0) continue;
    const auto unscaled = [&](const std::optional<Magnitude>& m, double unbounded) {
      return m ? to_double(*m) / sum.scale : unbounded;
    };
    const auto raise = [](std::optional<double>& most, double x) {
      most = std::max(most.value_or(x), x);
    };
    const auto lower = [](std::optional<double>& least, double x) {
      least = std::min(least.value_or(x), x);
    };
    raise(max_abs, unscaled(sum.table.largest(), kUnbounded));
    raise(at_least, unscaled(sum.table.largest_at_least(), 0));
    lower(min_abs, unscaled(sum.table.smallest(), 0));
    lower(at_most, unscaled(sum.table.smallest_at_most(), kUnbounded));
  }
  if (!max_abs) return;
  if (std::isfinite(*max_abs)) t.max_abs = max_abs;
  t.min_abs_nonzero = min_abs;
  if (at_least != max_abs) t.max_abs_at_least = at_least;
  if (at_most != min_abs) t.min_abs_at_most = at_most;
}

}  // namespace

std::size_t TensorCollector::place_of(const Frame& frame) {
  if (const auto known = places_.find(frame.name)) return *known;
  check_name(log_, frame.name);
  const std::size_t place = tensors_.size();
  tensors_.push_back(begun(log_, frame));
  pending_.emplace_back();
  places_.add(place);
  return place;
}

void TensorCollector::add(const Frame& frame, double loss_scale) {
  const std::size_t place = place_of(frame);
  TensorFindings& tensor = tensors_[place];
  PendingState& beside = pending_[place];
  if (tensor.per_step.empty() || frame.step >= beside.last_step) {
    tensor.shape = frame.shape;
    beside.last_step = frame.step;
  }
  beside.provenance.add(frame, target_.format);
  tensor.unscale_exact = tensor.unscale_exact && unscales_exactly(frame.table, frame.scale);
  const Normalised normal(frame);
  add_table(tensor, normal);
  StepFindings step = find_step(frame, normal, target_, loss_scale);
  known_in_bfloat16_ = known_in_bfloat16_ && may_judge_in_bfloat16(frame, loss_scale);
  if (known_in_bfloat16_) {
    step.in_bfloat16 = unusual_in_bfloat16(frame, target_, loss_scale);
    tensor.hidden_in_bfloat16 = tensor.hidden_in_bfloat16 || hides_flushed(frame, kBfloat16);
  }
  tensor.per_step.push_back(step);
}

void TensorCollector::finish(std::size_t place) {
  TensorFindings& t = tensors_[place];
  t.per_step.finish();
  for (const StepFindings& step : t.per_step) t.counts += step.counts;
  t.binades = sum_of_binades(t.per_step);
  set_extremes(t);
  pending_[place].provenance.tell(t, target_.format);
}

std::vector<TensorFindings> TensorCollector::finish() && {
  places_.clear();
  tbb::parallel_for(std::size_t{0}, tensors_.size(), [&](std::size_t i) { finish(i); });
  pending_ = {};
  if (!std::ranges::is_sorted(tensors_, {}, &TensorFindings::role)) {
    std::ranges::stable_sort(tensors_, {}, &TensorFindings::role);
  }
  return std::move(tensors_);
}

}  // namespace halfscope::analyzers::underflow
