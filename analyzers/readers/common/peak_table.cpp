// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/common/peak_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace halfscope::analyzers::readers::common {
namespace {

constexpr Contradiction kCrossed{"min is above max", "neither is used"};
constexpr Contradiction kOtherAmax{"the largest magnitude is not that of min and max",
                                   "it is assumed to lie anywhere between them"};
constexpr Contradiction kNorm{"the norm is below the largest magnitude",
                              "the latter is used only as an upper bound"};
// A printed infinity or NaN was there. It may be missing in another number, as in a maximum that is
// reduced over ranks.
constexpr Contradiction kNonfinite{"min, max, amax and norm disagree about infinities or NaN",
                                   "they are assumed to be there"};

bool is_nan(const Bounds& b) { return std::isnan(b.low) || std::isnan(b.high); }
bool is_finite(const Bounds& b) { return std::isfinite(b.low) && std::isfinite(b.high); }
bool are_apart(const Bounds& a, const Bounds& b) { return a.low > b.high || b.low > a.high; }

Magnitudes magnitudes_between(const Bounds& min, const Bounds& max) {
  Magnitudes found;
  found.largest = larger_magnitude(magnitude_bounds(min), magnitude_bounds(max));
  if (is_nan(found.largest)) return found;
  if (min.low > 0) found.smallest_nonzero = min.low;
  if (max.high < 0) found.smallest_nonzero = -max.high;
  return found;
}

/// Combines the magnitudes of min and max with the largest magnitude that is printed separately.
Magnitudes joined(const std::optional<Magnitudes>& between, const Bounds& amax,
                  std::vector<const Contradiction*>& wrong) {
  const Bounds largest{std::max(0.0, amax.low), amax.high};
  if (!between) return {is_nan(amax) ? amax : largest, {}};
  if (!is_finite(amax) || !is_finite(between->largest)) {
    const bool agree = is_nan(amax) == is_nan(between->largest) &&
                       (is_nan(amax) || !are_apart(largest, between->largest));
    if (!agree) wrong.push_back(&kNonfinite);
    return {larger_magnitude(between->largest, amax), {}};
  }
  if (!are_apart(largest, between->largest)) return {largest, between->smallest_nonzero};
  wrong.push_back(&kOtherAmax);
  return {
      {std::min(largest.low, between->largest.low), std::max(largest.high, between->largest.high)},
      {}};
}

/// Widens the known magnitudes if the norm contradicts them. An infinite norm never does, since the
/// norm of finite values overflows in narrow formats.
void doubt_by_norm(const Bounds& norm, double error, Magnitudes& known,
                   std::vector<const Contradiction*>& wrong) {
  const bool lost = !is_finite(known.largest) && is_finite(norm);
  if (lost || (is_nan(norm) && !is_nan(known.largest))) {
    wrong.push_back(&kNonfinite);
    if (is_nan(norm)) known = {norm, {}};
    return;
  }
  if (!is_finite(known.largest) || norm.high * (1 + error) >= known.largest.low) return;
  wrong.push_back(&kNorm);
  known = {{0, known.largest.high}, {}};
}

}  // namespace

void PeakTable::add(const std::string& tensor, log::Role role, std::int64_t step,
                    const Magnitudes& found) {
  const auto [named, is_first] = tensors_.try_emplace(tensor, Tensor{role, {}});
  if (is_first) added_.push_back(named);
  Tensor& of = named->second;
  const auto [place, is_new] = of.steps.try_emplace(step, found);
  if (is_new) return;
  Magnitudes& known = place->second;
  known.largest = larger_magnitude(known.largest, found.largest);
  if (known.smallest_nonzero && found.smallest_nonzero) {
    *known.smallest_nonzero = std::min(*known.smallest_nonzero, *found.smallest_nonzero);
  } else {
    known.smallest_nonzero.reset();
  }
}

bool PeakTable::skips_steps() const {
  return std::any_of(tensors_.begin(), tensors_.end(), [](const auto& named) {
    const auto& steps = named.second.steps;
    const auto skipped = [](const auto& a, const auto& b) { return b.first - 1 != a.first; };
    return std::adjacent_find(steps.begin(), steps.end(), skipped) != steps.end();
  });
}

void PeakTable::report(Timeline& timeline, bool as_added) const {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors_) {
    // A known role counts like a name that has the role.
    if (tensor.role == log::Role::unknown) names.push_back(name);
  }
  if (names.size() == tensors_.size()) timeline.names(names);
  auto order = added_;
  if (!as_added) {
    std::ranges::sort(order, {}, [](const auto& at) -> const std::string& { return at->first; });
  }
  for (const auto& at : order) {
    for (const auto& [step, found] : at->second.steps) {
      frames::StepPeak peak;
      peak.role = at->second.role;
      peak.step = step;
      peak.tensor = at->first;
      peak.max_abs = found.largest.high;
      if (found.largest.low < found.largest.high) peak.at_least = found.largest.low;
      if (std::isfinite(peak.max_abs)) peak.min_abs_nonzero = found.smallest_nonzero;
      timeline.peak(std::move(peak));
    }
  }
}

namespace {

void report_kind(const PeakLog& of, const PeakTable& peaks, const TimelineSelection& selection,
                 const frames::Visitor& visit) {
  if (!visit.kind) return;
  using frames::Gap;
  frames::LogKind kind{of.name, {}};
  if (peaks.empty()) return visit.kind(kind);
  if (of.rounded) kind.gaps.push_back(Gap::rounded);
  if (!of.has_dtypes) kind.gaps.push_back(Gap::dtype);
  if (!selection.knows_scale()) kind.gaps.push_back(Gap::loss_scale);
  kind.gaps.insert(kind.gaps.end(), {Gap::counts, Gap::updates});
  if (peaks.skips_steps()) kind.gaps.push_back(Gap::every_step);
  visit.kind(kind);
}

}  // namespace

void read_peaks(const PeakLog& kind, const log::OpenPath& log,
                const std::vector<std::filesystem::path>& files, const PeakReader& read,
                const TimelineSelection& selection, const frames::Visitor& visit,
                frames::Notes& notes, const frames::Progress& progress) {
  PeakTable peaks;
  TextFiles text(log, files, notes, progress);
  for (const std::filesystem::path& file : files) read(file, text, peaks);
  Timeline timeline(log.path.string(), selection, visit);
  peaks.report(timeline, kind.in_order);
  report_kind(kind, peaks, selection, visit);
  timeline.finish(notes);
}

Bounds larger_magnitude(const Bounds& a, const Bounds& b) {
  if (is_nan(a)) return a;
  if (is_nan(b)) return b;
  return {std::max(a.low, b.low), std::max(a.high, b.high)};
}

std::string text_of(const Bounds& printed) {
  const double middle = printed.low + (printed.high - printed.low) / 2;
  return fmt::format("{:.6g}", is_finite(printed) ? middle : printed.low);
}

std::string text_of(const PrintedExtremes& printed) {
  std::string text;
  const auto say = [&text](std::string_view name, const std::optional<Bounds>& value) {
    if (!value) return;
    text += fmt::format("{}{}={}", text.empty() ? "" : ", ", name, text_of(*value));
  };
  say("min", printed.min);
  say("max", printed.max);
  say("amax", printed.amax);
  say("norm", printed.norm);
  return text;
}

std::optional<Magnitudes> magnitudes_of(const PrintedExtremes& printed,
                                        std::vector<const Contradiction*>& wrong) {
  std::optional<Magnitudes> known;
  if (printed.min && printed.max) {
    if (printed.min->low > printed.max->high) {
      wrong.push_back(&kCrossed);
    } else {
      if (is_nan(*printed.min) != is_nan(*printed.max)) wrong.push_back(&kNonfinite);
      known = magnitudes_between(*printed.min, *printed.max);
    }
  }
  if (printed.amax) known = joined(known, *printed.amax, wrong);
  if (known && printed.norm) doubt_by_norm(*printed.norm, printed.norm_error, *known, wrong);
  return known;
}

}  // namespace halfscope::analyzers::readers::common
