// SPDX-License-Identifier: Apache-2.0
#include "analyzers/underflow/step_list.hpp"

#include <algorithm>
#include <numeric>

namespace halfscope::analyzers::underflow {
namespace {

/// Bits for the fields of a step that are present, or differ from their usual value.
enum Flag : unsigned {
  kScale = 1,
  kLossScale = 2,
  kNonfiniteUnknown = 4,
  kFitsAsIs = 8,
  kLargest = 16,
  kMaxAbs = 32,  // differs from `largest` over the scale
  kHasMaxAbs = 64,
  kAtLeast = 128,
  kMoments = 256,
  kInBfloat16 = 512
};

/// Returns the value of max_abs if values are known exactly.
std::optional<double> unscaled(const StepFindings& step) {
  if (!step.largest) return std::nullopt;
  return to_double(*step.largest) / step.scale;
}

unsigned flags_of(const StepFindings& step) {
  unsigned flags = 0;
  const auto flag = [&](Flag bit, bool set) { flags |= set ? unsigned{bit} : 0U; };
  flag(kScale, step.scale != 1.0);
  flag(kLossScale, step.loss_scale != 1.0);
  flag(kNonfiniteUnknown, !step.counts.nonfinite_known);
  flag(kFitsAsIs, step.fits_as_is);
  flag(kLargest, step.largest.has_value());
  flag(kMaxAbs, step.max_abs != unscaled(step));
  flag(kHasMaxAbs, step.max_abs.has_value());
  flag(kAtLeast, step.max_abs_at_least.has_value());
  flag(kMoments, step.moments.has_value());
  flag(kInBfloat16, step.in_bfloat16.has_value());
  return flags;
}

void pass(Packer& to, const Interval& count) { to.interval(count); }
void pass(Unpacker& from, Interval& count) { count = from.interval(); }

/// Writes the classes with a Packer, or reads them with an Unpacker.
void pass_classes(auto& packer, auto& classes) {
  pass(packer, classes.flushed_to_zero);
  pass(packer, classes.subnormal);
  pass(packer, classes.normal);
  pass(packer, classes.overflow);
}

/// The same for all counts but the total.
void pass_counts(auto& packer, auto& counts) {
  pass(packer, counts.zero);
  pass(packer, counts.nan);
  pass(packer, counts.inf);
  pass(packer, counts.finite_nonzero);
  pass_classes(packer, counts.classes);
}

std::vector<std::byte> packed(const StepFindings& step) {
  std::vector<std::byte> bytes;
  bytes.reserve(256);
  Packer to(bytes);
  to.integer(step.step);
  const unsigned flags = flags_of(step);
  to.natural(flags);
  if (flags & kScale) to.real(step.scale);
  if (flags & kLossScale) to.real(step.loss_scale);
  to.natural(step.counts.total);
  pass_counts(to, step.counts);
  if (step.largest) {
    to.integer(step.largest->exponent);
    to.natural(step.largest->fraction);
  }
  if ((flags & kMaxAbs) && step.max_abs) to.real(*step.max_abs);
  if (step.max_abs_at_least) to.real(*step.max_abs_at_least);
  to.interval(step.overflow_at_1);
  if (step.moments) {
    to.real(step.moments->mean);
    to.real(step.moments->sum_squares);
  }
  if (step.in_bfloat16) {
    pass_classes(to, step.in_bfloat16->classes);
    to.interval(step.in_bfloat16->overflow_at_1);
  }
  const std::vector<std::byte>& binades = step.binades.packed();
  to.natural(binades.size());
  bytes.insert(bytes.end(), binades.begin(), binades.end());
  return bytes;
}

StepFindings unpacked(Unpacker from) {
  StepFindings step;
  step.step = from.integer();
  const auto flags = static_cast<unsigned>(from.natural());
  if (flags & kScale) step.scale = from.real();
  if (flags & kLossScale) step.loss_scale = from.real();
  step.counts.total = from.natural();
  pass_counts(from, step.counts);
  step.counts.nonfinite_known = !(flags & kNonfiniteUnknown);
  step.fits_as_is = flags & kFitsAsIs;
  if (flags & kLargest) {
    const int exponent = static_cast<int>(from.integer());
    step.largest = Magnitude{exponent, from.natural()};
  }
  if (!(flags & kMaxAbs)) step.max_abs = unscaled(step);
  if ((flags & kMaxAbs) && (flags & kHasMaxAbs)) step.max_abs = from.real();
  if (flags & kAtLeast) step.max_abs_at_least = from.real();
  step.overflow_at_1 = from.interval();
  if (flags & kMoments) {
    const double mean = from.real();
    step.moments = Moments{mean, from.real()};
  }
  if (flags & kInBfloat16) {
    pass_classes(from, step.in_bfloat16.emplace().classes);
    step.in_bfloat16->overflow_at_1 = from.interval();
  }
  const std::uint64_t size = from.natural();
  step.binades = BinadeCounts(std::vector<std::byte>(from.at(), from.at() + size));
  return step;
}

}  // namespace

StepFindings StepList::operator[](std::size_t i) const { return unpacked(Unpacker(bytes_of(i))); }

std::int64_t StepList::number_of(std::size_t i) const { return Unpacker(bytes_of(i)).integer(); }

std::optional<std::size_t> StepList::place_of(std::int64_t step) const {
  std::size_t first = 0, last = size();
  while (first < last) {
    const std::size_t middle = first + (last - first) / 2;
    if (number_of(middle) < step) {
      first = middle + 1;
    } else {
      last = middle;
    }
  }
  return first < size() && number_of(first) == step ? std::optional(first) : std::nullopt;
}

std::optional<StepFindings> StepList::find(std::int64_t step) const {
  const auto place = place_of(step);
  return place ? std::optional((*this)[*place]) : std::nullopt;
}

void StepList::push_back(const StepFindings& step) {
  if (!empty()) later_.set().push_back(bytes_.size());
  const std::vector<std::byte> bytes = packed(step);
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
}

void StepList::shrink_to_fit() {
  bytes_.shrink_to_fit();
  if (!later_->empty()) later_.set().shrink_to_fit();
}

void StepList::finish() {
  if (size() < 2) return shrink_to_fit();
  std::vector<std::size_t> order(size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto number = [&](std::size_t i) { return number_of(i); };
  if (!std::ranges::is_sorted(order, {}, number)) {
    std::ranges::stable_sort(order, {}, number);
    StepList sorted;
    for (const std::size_t i : order) sorted.push_back((*this)[i]);
    *this = std::move(sorted);
  }
  shrink_to_fit();
}

}  // namespace halfscope::analyzers::underflow
