// SPDX-License-Identifier: Apache-2.0
// The lines and marks of a chart of replayed policies, limited in number for long runs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analyzers/replay/policy_study.hpp"

namespace halfscope::reports::answer {

/// Most scale changes drawn for a line, and most marks of one kind on a line. kScalesDrawn also
/// limits the recorded steps of a line of flushed shares.
inline constexpr std::size_t kScalesDrawn = 1000, kMarksDrawn = 80;
/// Most lines of a chart, with the recommended static scale. More lines cannot be distinguished.
inline constexpr std::size_t kPoliciesDrawn = 6;

struct PolicyLine {
  std::string name;  ///< names of all traces that are equal
  const analyzers::replay::Trace* trace = nullptr;
  bool fixed = false;  ///< true for the recommended static scale
};

/// Returns the run itself, torch, the best other policies, the best dynamic settings, and the
/// recommended static scale. Equal traces share a line. A trace in which every step is unknown has
/// no line; the recommended scale has one if there are other lines. If the result is empty, the
/// page has no chart of scales.
std::vector<PolicyLine> policy_lines(const analyzers::replay::PolicyStudy& study);

/// For example "torch, apex and 3 more".
std::string group_name(const analyzers::replay::PolicyStudy& study,
                       const std::vector<std::size_t>& group);

/// A constant scale over a range of steps, given as indices into the series.
struct Plateau {
  std::size_t first = 0, last = 0;  ///< first and last step with this scale
  std::size_t until = 0;            ///< end of the drawn line
  double scale = 0;                 ///< positive and finite
};
/// Returns the plateaus of a trace. If there are more than kScalesDrawn, only the least and the
/// largest scale of each interval. The result ends before the scale becomes 0 or infinite.
std::vector<Plateau> plateaus(const analyzers::replay::Trace& trace);

enum class Happening : std::uint8_t {
  overflow,  ///< skipped: a gradient overflowed at this scale
  in_model,  ///< skipped: NaN or infinity that no scale prevents
  unknown,   ///< the run overflowed at a larger scale; at this scale it is unknown
  applied,   ///< NaN or infinity was added to the weights
  retried    ///< tried again and then applied
};
std::string_view name_of(Happening what);

/// One or more steps with the same event. A mark has several if there are too many to draw.
struct Mark {
  Happening what = Happening::overflow;
  std::int64_t first = 0, last = 0;
  std::uint64_t count = 1;
  double scale = 0;  ///< at `first`
};
std::vector<Mark> marks(const analyzers::replay::Trace& trace,
                        const analyzers::replay::StepSeries& series);

/// Returns sentences on what the charts omit. Empty if they show everything.
std::string thinned_text(const analyzers::replay::PolicyStudy& study);

}  // namespace halfscope::reports::answer
