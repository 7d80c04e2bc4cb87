// SPDX-License-Identifier: Apache-2.0
// What of a replay is drawn: which traces, and of each so many points and marks that a page stays
// small however long the run was.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analyzers/replay/policy_study.hpp"

namespace halfscope::reports::answer {

/// Most changes of scale a line gets, marks of one kind on a line, and recorded steps a line of
/// flushed shares.
inline constexpr std::size_t kScalesDrawn = 1000, kMarksDrawn = 80;
/// Most lines of a chart, the static recommendation's included: more cannot be told apart.
inline constexpr std::size_t kPoliciesDrawn = 6;

struct PolicyLine {
  std::string name;  ///< of all traces that did the same
  const analyzers::replay::Trace* trace = nullptr;
  bool fixed = false;  ///< the recommended static scale
};

/// The run itself, torch, the best of the rest, the best dynamic settings, and the recommended
/// static scale. Traces that did the same share a line. A trace whose every step is unknown has
/// none; without any line the page has no chart of scales.
std::vector<PolicyLine> policy_lines(const analyzers::replay::PolicyStudy& study);

/// "torch, apex and 3 more"
std::string group_name(const analyzers::replay::PolicyStudy& study,
                       const std::vector<std::size_t>& group);

/// One scale, held from one index to another.
struct Plateau {
  std::size_t first = 0, last = 0;  ///< where it really holds
  std::size_t until = 0;            ///< drawn up to here
  double scale = 0;                 ///< positive and finite
};
/// The whole of a line where it has at most kScalesDrawn changes; else the least and the largest of
/// every stretch. It ends where the scale becomes 0 or infinite.
std::vector<Plateau> plateaus(const analyzers::replay::Trace& trace);

enum class Happening : std::uint8_t {
  overflow,  ///< skipped: a gradient overflowed at the scale
  in_model,  ///< skipped: NaN or infinity that no scale would have cured
  unknown,   ///< the run overflowed there at a larger scale; at this one it is unknown
  applied,   ///< infinity or NaN went into the weights
  retried    ///< tried again and done
};
std::string_view name_of(Happening what);

/// Steps at which the same happened; several where there are too many to draw.
struct Mark {
  Happening what = Happening::overflow;
  std::int64_t first = 0, last = 0;
  std::uint64_t count = 1;
  double scale = 0;  ///< at `first`
};
std::vector<Mark> marks(const analyzers::replay::Trace& trace,
                        const analyzers::replay::StepSeries& series);

/// What the charts leave out, as sentences; empty where they show all.
std::string thinned_text(const analyzers::replay::PolicyStudy& study);

}  // namespace halfscope::reports::answer
