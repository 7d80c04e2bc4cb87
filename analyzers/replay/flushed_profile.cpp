// SPDX-License-Identifier: Apache-2.0
#include "analyzers/replay/step_series_parts.hpp"

#include <algorithm>
#include <cmath>

namespace halfscope::analyzers::replay {

using underflow::ScaledTable;

namespace {

/// Returns the count at scale 2^k for any k: the profile is constant beyond both ends.
Interval entry(const FlushedProfile& profile, long long k) {
  const long long last = static_cast<long long>(profile.flushed.size()) - 1;
  return profile
      .flushed[static_cast<std::size_t>(std::clamp<long long>(k - profile.first_log2, 0, last))];
}

void add_to(FlushedProfile& sum, const FlushedProfile& more) {
  if (more.flushed.empty()) return;
  if (sum.flushed.empty()) {
    sum.first_log2 = more.first_log2;
    sum.flushed = more.flushed;
    sum.of += more.of;
    return;
  }
  const int first = std::min(sum.first_log2, more.first_log2);
  const int end = std::max(sum.first_log2 + static_cast<int>(sum.flushed.size()),
                           more.first_log2 + static_cast<int>(more.flushed.size()));
  std::vector<Interval> flushed;
  for (int k = first; k < end; ++k) flushed.push_back(entry(sum, k) + entry(more, k));
  sum.first_log2 = first;
  sum.flushed = std::move(flushed);
  sum.of += more.of;
}

/// The range of binades of a histogram's values, as far as they have bounds.
struct Reach {
  std::optional<int> first, last;
};

Reach reach_of(const BoundedTable& table) {
  Reach reach;
  table.for_each_part([&](const auto& from, const auto& to, const Interval&) {
    for (const auto& end : {from, to}) {
      if (!end) continue;
      reach.first = std::min(reach.first.value_or(end->exponent), end->exponent);
      reach.last = std::max(reach.last.value_or(end->exponent), end->exponent);
    }
  });
  return reach;
}

/// Returns the profile from the largest power of two at which everything is flushed to the smallest
/// at which nothing is; for values without bounds, to the scale from which on nothing changes.
FlushedProfile profile_of(const ScaledTable& scaled, const underflow::Target& target) {
  FlushedProfile profile;
  profile.of = scaled.table.finite_nonzero();
  const Interval zero = scaled.table.zero();
  // Values that may be zero may be flushed or kept, so the total includes them for both bounds.
  if (!zero.exact()) profile.of = Interval(profile.of.low + zero.high - zero.low);
  const auto [smallest, largest] = reach_of(scaled.table);
  if (!largest) return profile;
  const Boundaries limits = target.boundaries(1.0, scaled.scale);
  profile.first_log2 = limits.nonzero.exponent - *largest - 1;
  const int last = limits.nonzero.exponent + 1 - *smallest;
  for (int k = profile.first_log2; k <= last; ++k) {
    profile.flushed.push_back(classify(scaled.table, before_scaling(limits, k)).flushed_to_zero);
  }
  return profile;
}

}  // namespace

Interval FlushedProfile::at(double scale) const {
  if (flushed.empty()) return {};
  if (!(scale > 0)) return scale == 0 ? of : flushed.back();
  if (!std::isfinite(scale)) return flushed.back();
  const int k = std::ilogb(scale);
  const Interval below = entry(*this, k);
  if (std::scalbn(1.0, k) == scale) return below;
  return {entry(*this, k + 1LL).low, below.high};
}

void FlushedSum::add(const frames::Frame& frame) {
  if (open_ && step_ != frame.step) close();
  open_ = true;
  step_ = frame.step;
  const int exponent = std::ilogb(frame.scale);
  const double significand = std::scalbn(frame.scale, -exponent);
  std::optional<BoundedTable> moved;
  const BoundedTable& shifted =
      exponent == 0 ? frame.table : moved.emplace(frame.table.scaled_by_power_of_two(-exponent));
  for (ScaledTable& sum : tables_) {
    // Histograms with other cuts are kept separately: merging keeps only common cuts.
    if (sum.scale == significand && sum.table.exact().cuts() == shifted.exact().cuts()) {
      sum.table.merge(shifted);
      return;
    }
  }
  tables_.push_back({significand, shifted});
}

void FlushedSum::close() {
  FlushedProfile& profile = steps_[step_];
  profile.step = step_;
  for (const ScaledTable& table : tables_) add_to(profile, profile_of(table, target_));
  tables_.clear();
  open_ = false;
}

void FlushedSum::add_perhaps(std::int64_t step, std::uint64_t zeros) {
  if (open_) close();
  FlushedProfile& profile = steps_[step];
  profile.step = step;
  profile.of.high += zeros;
  if (profile.flushed.empty()) profile.flushed.emplace_back();
  for (Interval& flushed : profile.flushed) flushed.high += zeros;
}

std::vector<FlushedProfile> FlushedSum::finish() {
  if (open_) close();
  std::vector<FlushedProfile> all;
  for (auto& [step, profile] : steps_) {
    if (profile.of.high != 0) all.push_back(std::move(profile));
  }
  return all;
}

}  // namespace halfscope::analyzers::replay
