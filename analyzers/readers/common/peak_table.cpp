// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/common/peak_table.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace halfscope::analyzers::readers::common {
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

}  // namespace halfscope::analyzers::readers::common
