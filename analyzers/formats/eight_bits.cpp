// SPDX-License-Identifier: Apache-2.0
#include "analyzers/formats/eight_bits.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "analyzers/formats/quantised.hpp"
#include "halfscope/policy/transformer_engine.hpp"

namespace halfscope::analyzers::formats {

using log::Role;
using policy::TeDelayed;
using underflow::BinadeCount;
using underflow::BinadeCounts;
using underflow::LogFindings;
using underflow::StepFindings;
using underflow::StepList;
using underflow::TensorFindings;

namespace {

const std::int64_t kDefaultLength = TeDelayed().amax_history_len;
const std::array kLengths = {std::int64_t{1},  std::int64_t{4},   std::int64_t{16},
                             std::int64_t{64}, std::int64_t{256}, kDefaultLength};

/// The findings of one step.
struct Parts {
  StepList::Iterator first, last;
  StepList::Iterator begin() const { return first; }
  StepList::Iterator end() const { return last; }
};

/// One tensor at one step, without infinities and NaN. Transformer Engine updates a scale once per
/// step, however many casts the step has.
struct Moment {
  Parts parts;
  double amax = 0;               ///< unscaled
  std::int64_t preceded_by = 0;  ///< earlier steps with a magnitude, for the history
};

bool has_nonfinite(const StepFindings& step) {
  return step.counts.nan.high > 0 || step.counts.inf.high > 0;
}

/// Returns true if the largest magnitude is exactly known.
bool knows_largest(const StepFindings& step) {
  if (step.counts.finite_nonzero.high == 0) return true;
  return step.max_abs && !step.max_abs_at_least && step.counts.finite_nonzero.low > 0;
}

/// The steps of one tensor that can be replayed.
struct Track {
  const TensorFindings* tensor = nullptr;
  Format format = kFloat8E4M3;
  std::vector<Moment> moments;
  std::uint64_t left_out = 0;
};

/// Returns the steps; empty for a tensor with missing steps, or without a history of one step.
std::optional<Track> track_of(const TensorFindings& tensor, Format format) {
  Track track{&tensor, format, {}, 0};
  const StepList& all = tensor.per_step;
  const auto at = [&](std::size_t i) { return all.begin() + static_cast<std::ptrdiff_t>(i); };
  std::int64_t seen = 0;
  for (std::size_t first = 0, last = 0; first < all.size(); first = last) {
    while (last < all.size() && all[last].step == all[first].step) ++last;
    if (first > 0 && all[first].step != all[first - 1].step + 1) return std::nullopt;
    const Parts parts{at(first), at(last)};
    if (std::ranges::any_of(parts, has_nonfinite)) {
      ++track.left_out;
      continue;
    }
    if (!std::ranges::all_of(parts, knows_largest)) return std::nullopt;
    Moment moment{parts, 0, seen};
    for (const StepFindings& part : parts) {
      moment.amax = std::max(moment.amax, part.max_abs.value_or(0));
    }
    track.moments.push_back(moment);
    if (moment.amax > 0) ++seen;
  }
  const bool any = !track.moments.empty() && track.moments.back().preceded_by > 0;
  return any ? std::optional(std::move(track)) : std::nullopt;
}

/// Returns the number of values at or above a limit; in the limit's own binade they may be below.
Interval at_or_above(const BinadeCounts& binades, Magnitude limit) {
  Interval count;
  for (const BinadeCount& binade : binades) {
    const Magnitude start{binade.exponent, 0};
    if (start >= limit) {
      count += binade.count;
    } else if (binade.exponent == limit.exponent) {
      count += Interval(0, binade.count.high);
    }
  }
  return count;
}

Interval below(const BinadeCounts& binades, Magnitude limit) {
  Interval all;
  for (const BinadeCount& binade : binades) all += binade.count;
  return without(all, at_or_above(binades, limit));
}

/// Adds the losses of one cast at this scale. Returns true if it clips the largest magnitude.
bool add_cast(const StepFindings& part, Format format, double scale, HistoryChoice& to) {
  const Boundaries unscaled = boundaries(format, scale);
  to.flushed += below(part.binades, unscaled.nonzero);
  const bool clips =
      part.largest && *part.largest >= boundaries(format, scale, part.scale).overflow;
  if (!clips) return false;
  Interval clipped = at_or_above(part.binades, unscaled.overflow);
  clipped.low = std::max<std::uint64_t>(clipped.low, 1);
  to.clipped += clipped;
  return true;
}

/// Adds one tensor. Returns the number of steps in which its largest magnitude is clipped.
std::uint64_t replay(const Track& track, TeDelayed policy, HistoryChoice& to) {
  policy.fp8_format = track.format == kFloat8E4M3 ? "E4M3" : "E5M2";
  policy.start();
  std::uint64_t clipped_steps = 0;
  for (const Moment& moment : track.moments) {
    if (moment.preceded_by > 0) {
      bool clips = false;
      for (const StepFindings& part : moment.parts) {
        clips = add_cast(part, track.format, policy.scale(), to) || clips;
      }
      if (clips) ++clipped_steps;
      to.by_chance += 1.0 / static_cast<double>(1 + std::min(to.length, moment.preceded_by));
    }
    policy.advance({.max_abs = moment.amax});
  }
  return clipped_steps;
}

HistoryChoice replay(std::span<const Track> tracks, std::int64_t length, std::int64_t margin) {
  HistoryChoice choice;
  choice.length = length;
  TeDelayed policy;
  policy.amax_history_len = length;
  policy.margin = margin;
  std::uint64_t most = 0;
  for (const Track& track : tracks) {
    const std::uint64_t clipped_steps = replay(track, policy, choice);
    choice.clipped_steps += clipped_steps;
    if (clipped_steps <= most) continue;
    most = clipped_steps;
    choice.most_clipped = track.tensor->name;
  }
  return choice;
}

/// Returns the role of the gradients that are cast: activation gradients, else weight gradients.
Role cast_gradients(const LogFindings& log) {
  const bool arriving = std::ranges::any_of(
      log.tensors, [](Role role) { return role == Role::activation_grad; }, &TensorFindings::role);
  return arriving ? Role::activation_grad : Role::weight_grad;
}

/// Returns the format that the recipe casts a tensor to; empty if it casts none, as for a bias.
std::optional<Format> cast_format(const TensorFindings& tensor, Role gradients) {
  if (tensor.shape.size() == 1) return std::nullopt;
  if (tensor.role == gradients) return kFloat8E5M2;
  if (tensor.role == Role::activation || tensor.role == Role::weight) return kFloat8E4M3;
  return std::nullopt;
}

std::vector<Track> tracks_of(const LogFindings& log) {
  std::vector<Track> tracks;
  const Role gradients = cast_gradients(log);
  for (const TensorFindings& tensor : log.tensors) {
    const std::optional<Format> format = cast_format(tensor, gradients);
    if (!format) continue;
    if (auto track = track_of(tensor, *format)) tracks.push_back(std::move(*track));
  }
  return tracks;
}

AmaxHistory history_of(const LogFindings& log, std::span<const Track> tracks) {
  AmaxHistory history;
  history.log = log.name;
  history.tensors = tracks.size();
  std::int64_t longest = 0;
  for (const Track& track : tracks) {
    history.left_out += track.left_out;
    for (const Moment& moment : track.moments) {
      if (moment.preceded_by == 0) continue;
      ++history.steps;
      for (const StepFindings& part : moment.parts) history.values += part.counts.finite_nonzero;
      longest = std::max(longest, moment.preceded_by);
    }
  }
  for (const std::int64_t length : kLengths) {  // if it covers the whole log, it equals the default
    if (length != kDefaultLength && length >= longest) continue;
    history.choices.push_back(replay(tracks, length, 0));
  }
  history.with_margin = replay(tracks, kDefaultLength, 1);
  return history;
}

std::optional<double> noise_in(const TensorFindings& tensor, block::Element element) {
  for (const underflow::RecipeFit& fit : tensor.whole->mx_fits) {
    if (fit.recipe->element == element && fit.noise) return fit.noise->db;
  }
  return std::nullopt;
}

/// Results collected over gradients.
struct Sums {
  MxGradients found;
  std::vector<double> e4m3_db, e5m2_db;

  void add(const TensorFindings& gradient) {
    const auto e4m3 = noise_in(gradient, block::Element::e4m3),
               e5m2 = noise_in(gradient, block::Element::e5m2);
    if (!e4m3 || !e5m2) return;
    e4m3_db.push_back(*e4m3);
    e5m2_db.push_back(*e5m2);
    if (*e4m3 > *e5m2) ++found.e4m3_better;
    if (*e5m2 <= *e4m3) return;
    ++found.e5m2_better;
    const double gained = *e5m2 - *e4m3;
    if (gained <= found.gained_db) return;
    found.gained_db = gained;
    found.most_for_e5m2 = gradient.name;
  }

  std::optional<MxGradients> finish() && {
    if (e4m3_db.empty()) return std::nullopt;
    found.tensors = e4m3_db.size();
    found.e4m3_db = median_of(std::move(e4m3_db));
    found.e5m2_db = median_of(std::move(e5m2_db));
    return found;
  }
};

}  // namespace

const HistoryChoice* AmaxHistory::better() const {
  const std::uint64_t lost = at_default().lost().low;
  const double matters = kUnderflowLimits[kKeepLimit] * static_cast<double>(values.high);
  const HistoryChoice* best = nullptr;
  for (const HistoryChoice& choice : choices) {
    const std::uint64_t most = choice.lost().high;
    if (most >= lost || static_cast<double>(lost - most) < matters) continue;
    if (best == nullptr || most <= best->lost().high) best = &choice;  // the longer of equal ones
  }
  return best;
}

bool AmaxHistory::clips() const {
  const auto clipped = static_cast<double>(with_margin.clipped_steps);
  return clipped >= kLastingShare * static_cast<double>(steps) &&
         clipped > 2 * with_margin.by_chance;
}

std::vector<AmaxHistory> amax_histories(const underflow::Analysis& analysis) {
  std::vector<AmaxHistory> all;
  for (const LogFindings& log : analysis.logs) {
    const std::vector<Track> tracks = tracks_of(log);
    if (!tracks.empty()) all.push_back(history_of(log, tracks));
  }
  return all;
}

std::optional<MxGradients> mx_gradients(const underflow::Analysis& analysis) {
  for (const log::Role role : {log::Role::activation_grad, log::Role::weight_grad}) {
    Sums sums;
    for (const TensorFindings& tensor : analysis.tensors()) {
      if (tensor.role == role) sums.add(tensor);
    }
    if (auto found = std::move(sums).finish()) return found;
  }
  return std::nullopt;
}

}  // namespace halfscope::analyzers::formats
