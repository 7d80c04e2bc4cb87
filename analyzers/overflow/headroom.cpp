// SPDX-License-Identifier: Apache-2.0
// Headroom of each tensor, and its trend over the steps.
#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "analyzers/overflow/overflow.hpp"
#include "analyzers/underflow/step_facts.hpp"

namespace halfscope::analyzers::overflow {

using underflow::Analysis;
using underflow::StepFindings;
using underflow::TensorFindings;

namespace {

/// log2 of a tensor's largest magnitude at a step.
struct Point {
  double step, log2_max;
};

/// A least-squares line. `uncertainty` is the slope's standard error. It is larger if neighbouring
/// residuals are alike, since the steps then say less than as many independent ones.
struct Line {
  double slope = 0, uncertainty = 0, at_last = 0;
};

Line fit(const std::vector<Point>& points) {
  const auto n = static_cast<double>(points.size());
  double mean_x = 0, mean_y = 0;
  for (const Point& p : points) mean_x += p.step / n, mean_y += p.log2_max / n;
  double xx = 0, xy = 0;
  for (const Point& p : points) {
    xx += (p.step - mean_x) * (p.step - mean_x);
    xy += (p.step - mean_x) * (p.log2_max - mean_y);
  }
  Line line;
  line.slope = xy / xx;
  line.at_last = mean_y + line.slope * (points.back().step - mean_x);
  double squares = 0, products = 0, before = 0;
  for (const Point& p : points) {
    const double residual = p.log2_max - mean_y - line.slope * (p.step - mean_x);
    squares += residual * residual;
    products += residual * before;
    before = residual;
  }
  const double alike = squares > 0 ? std::clamp(products / squares, 0.0, 0.99) : 0.0;
  line.uncertainty = std::sqrt(squares / (n - 2) / xx * (1 + alike) / (1 - alike));
  return line;
}

/// Returns the step at which a clear trend reaches overflow. Clear: at least eight steps, a rise of
/// half a binade, a slope of four times its uncertainty; not extrapolated for longer than it was
/// seen.
std::optional<std::int64_t> expected_overflow(const std::vector<Point>& points, const Line& line,
                                              double limit) {
  constexpr std::size_t kFewest = 8;
  constexpr double kRise = 0.5, kSure = 4;
  const double seen = points.back().step - points.front().step;
  const bool clear = points.size() >= kFewest && line.slope * seen >= kRise &&
                     line.slope >= kSure * line.uncertainty;
  if (!clear || line.at_last >= limit) return std::nullopt;
  const double ahead = std::ceil((limit - line.at_last) / line.slope);
  if (!(ahead <= seen)) return std::nullopt;
  return static_cast<std::int64_t>(points.back().step + ahead);
}

/// A log, its scalars, and the findings that decide which infinities count.
struct Known {
  const Analysis& analysis;
  const underflow::LogFindings& log;
  const underflow::LogScalars& scalars;
  const OverflowFindings& overflow;  ///< decides which infinities are bounds
};

/// `limit`: log2 of the smallest unscaled magnitude that overflows. `room`: its distance from log2
/// of the largest magnitude present.
struct StepHeadroom {
  double limit, room;
  bool censored;
  double at_1;  ///< headroom at loss scale 1
};

/// Returns log2 of the part of a finite magnitude that FP16 holds: FP32 may add up parts of it.
double log2_in_fp16(const TensorFindings& tensor, const StepFindings& step,
                    const underflow::StepMagnitude& finite, const underflow::LogScalars& scalars) {
  const double whole = finite.unscaled();
  const double part = scalars.in_fp16(tensor.role, step.step, whole);
  return part < whole ? std::log2(part) : finite.log2();
}

std::optional<StepHeadroom> room_of(const TensorFindings& tensor, const StepFindings& step,
                                    const Known& known) {
  const bool bounds = step.counts.inf.low != 0 && known.overflow.bounds(tensor, step);
  const auto infinite = bounds ? underflow::infinite_magnitude(tensor, step, known.scalars)
                               : std::optional<underflow::StepMagnitude>();
  const auto finite = underflow::finite_magnitude(step);
  if (!finite && !infinite) return std::nullopt;
  const double limit_at_1 = std::log2(to_double(boundaries(known.analysis.target.format).overflow));
  const double limit = limit_at_1 - std::log2(underflow::scale_seen(tensor, step));
  const bool is_censored = infinite && (!finite || infinite->log2() >= finite->log2());
  const double largest =
      is_censored ? infinite->log2() : log2_in_fp16(tensor, step, *finite, known.scalars);
  const bool clipped = known.log.was_clipped(tensor.role);
  return StepHeadroom{limit, limit - largest, is_censored || clipped, limit_at_1 - largest};
}

void put_trend(const std::vector<Point>& points, double limit, Headroom& to) {
  if (points.size() < 3) return;
  const Line line = fit(points);
  to.trend = line.slope * 1000;
  to.trend_from = static_cast<std::int64_t>(points.front().step);
  to.trend_to = static_cast<std::int64_t>(points.back().step);
  if (to.least > 0) to.overflow_expected_at = expected_overflow(points, line, limit);
}

std::optional<Headroom> headroom_of(const TensorFindings& tensor, const Known& known) {
  Headroom h;
  h.least = h.least_at_1 = INFINITY;
  std::vector<Point> points;
  double limit = 0;
  for (const StepFindings& step : tensor.per_step) {
    const std::optional<StepHeadroom> room = room_of(tensor, step, known);
    if (!room) continue;
    if (room->room < h.least) {
      h.scale = underflow::scale_seen(tensor, step);
      h.least = room->room;
      h.least_at = step.step;
      h.censored = room->censored;
    }
    h.least_at_1 = std::min(h.least_at_1, room->at_1);
    h.last = room->room;
    h.last_at_1 = room->at_1;
    limit = room->limit;
    if (!underflow::nonfinite(step)) {
      points.push_back({static_cast<double>(step.step), underflow::finite_magnitude(step)->log2()});
    }
  }
  if (h.least == INFINITY) return std::nullopt;
  put_trend(points, limit, h);
  return h;
}

}  // namespace

std::vector<Headroom> find_headroom(const Analysis& analysis, const OverflowFindings& overflow) {
  std::vector<Headroom> all;
  std::size_t index = 0;
  for (const underflow::LogFindings& log : analysis.logs) {
    const underflow::LogScalars scalars(log);
    const Known known{analysis, log, scalars, overflow};
    for (const TensorFindings& tensor : log.tensors) {
      if (auto found = headroom_of(tensor, known)) {
        found->tensor = index;
        all.push_back(*found);
      }
      ++index;
    }
  }
  return all;
}

}  // namespace halfscope::analyzers::overflow
