// SPDX-License-Identifier: Apache-2.0
// The contents of a log, ordered by step for the analyzers. All readers use it, except the reader
// of run logs.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "analyzers/frames/source.hpp"
#include "analyzers/readers/common/step_map.hpp"

namespace halfscope::analyzers::readers::common {

/// The largest number that is read as a step. Differences of steps stay exact in binary64.
inline constexpr std::int64_t kLargestStep = std::int64_t{1} << 53;

/// Returns true if a number in a log can be a loss scale: finite and not negative. It may be 0,
/// after a collapse.
bool can_be_scale(double scale);

/// A loss scale by step, as a scalar of the log has it.
class ScaleSeries {
 public:
  void add(std::int64_t step, double scale) { scales_[step] = scale; }
  void restart(std::int64_t step) { scales_.erase_from(step); }
  bool empty() const { return scales_.empty(); }
  /// Returns the scale at a step. If the step has no entry, returns the value of the entries before
  /// and after it if these are equal, else nullopt.
  std::optional<double> at(std::int64_t step) const;

 private:
  StepMap<double> scales_;  ///< the last value of each step
};

/// The bounds of the largest unscaled magnitude of a role at a step.
struct Extreme {
  bool any = false;  ///< the step has a tensor of the role
  double at_least = 0, at_most = 0;
  bool nan = false, infinite = false;  ///< true if a value certainly is
  bool unknown = false;  ///< a tensor's largest value has no bound, or may be infinite or NaN
};

/// The contents of a log, or of several logs that are one timeline.
struct TimelineState {
  bool joined = false;                ///< more logs follow: finish() reports nothing yet
  ScaleSeries carried;                ///< values of the scalar that --recorded-scale names
  ScaleSeries of_steps;               ///< the loss scale in the log
  std::set<std::string> scalar_tags;  ///< some tags, for messages
  StepMap<log::StepScalars> scalars;
  std::map<std::int64_t, std::array<Extreme, 2>> extremes;  ///< weight_grad, activation_grad
  std::vector<frames::StepPeak> peaks;  ///< magnitudes of single tensors, unscaled
  std::vector<frames::SkippedSteps> skips;
  std::set<std::string> broken;          ///< tags that had a value that was NaN or infinite
  std::set<std::int64_t> without_scale;  ///< steps whose gradients carry an unknown scale
  std::set<std::int64_t> odd_scales;     ///< steps for which can_be_scale() was false
  std::uint64_t left_out = 0;            ///< tables and magnitudes skipped at these steps
  bool any_assumed = false, any_gradient = false;
};

/// The part of a log to read, and whether other logs join it.
struct TimelineSelection : frames::Selection {
  TimelineSelection() = default;
  TimelineSelection(const frames::Selection& selection)  // NOLINT(google-explicit-constructor)
      : frames::Selection(selection) {}
  /// The common timeline of the logs in a folder that holds several kinds; null for other logs.
  std::shared_ptr<TimelineState> joined = nullptr;

  /// Returns true if --recorded-scale says which loss scale the values carry.
  bool knows_scale() const { return recorded_scale || scale_tag; }
};

/// The signature of a function that recognises a kind of log: as Kind::recognises.
using Recognises = bool(const log::OpenPath& log);
/// The signature of a reader of a kind of log: as Kind::read.
using Reads = void(const log::OpenPath& log, const TimelineSelection& selection,
                   const frames::Visitor& visit, frames::Notes& notes,
                   const frames::Progress& progress);

/// Returns true if a step is missing between the first and the last.
bool skips_steps(const std::set<std::int64_t>& steps);

/// Collects the contents of a log for the visitor. Scalars and magnitudes may come in any order and
/// more than once. Frames are passed on at once, so scalars must come before them. Steps and
/// tensors that are not selected are dropped.
class Timeline {
 public:
  Timeline(std::string log, const TimelineSelection& selection, const frames::Visitor& visit);

  /// Scalars of a step. A later value replaces an earlier one.
  void loss(std::int64_t step, double value);
  void learning_rate(std::int64_t step, double value);
  /// A value for which can_be_scale() is false is skipped, with a note.
  void loss_scale(std::int64_t step, double value);
  void found_inf(std::int64_t step, bool value);
  /// Norms and evaluation losses are kept only from their first NaN or infinite value on, counts of
  /// iterations with NaN only if they are above 0.
  void gradient_norm(std::int64_t step, double value);
  void evaluation_loss(std::int64_t step, double value);
  void nan_iterations(std::int64_t step, std::int64_t count);

  /// Adds a step that the run reached, even if nothing else is known about it.
  void reached(std::int64_t step);

  /// Drops scalars and skipped steps from `step` on, since the run started again there.
  void restart(std::int64_t step);
  /// Adds a range of steps that includes skipped steps.
  void skipped(const frames::SkippedSteps& steps);

  /// Returns true if a tensor of this step is selected; cheaper than making its table.
  bool wants(const std::string& name, std::int64_t step) const;
  /// A tensor's counts at a step. The timeline sets the role (unless it is known), its source,
  /// Frame::loss_scaled, the shape and the scales, and uses the largest magnitude for the step's
  /// scalars. It passes on every table of a name and step; callers pass only the last.
  void tensor(frames::Frame&& frame);
  /// The same for a frame that lacks only Frame::loss_scaled and Frame::run_scale.
  /// `scale_told` is true if the scale that its values carry is known.
  void emit(frames::Frame&& frame, bool scale_told);
  /// A tensor's largest magnitude, as recorded, without counts. Role and scales as for tensor().
  void peak(frames::StepPeak peak);

  /// Sets all names of tensors, selected or not. Must be called before the first tensor. If no name
  /// has a role, all tensors are treated as weight_grad.
  void names(const std::vector<std::string>& all);

  /// Adds a scalar by its tag. Must be called before the first tensor. Returns true if
  /// --recorded-scale names the tag; the value is then also the loss scale of the step.
  bool recorded_scale(const std::string& tag, std::int64_t step, double value);

  /// Reports peaks and scalars, and notes the assumptions. Throws log::BadInput with a list of the
  /// scalars if --recorded-scale names another one.
  void finish(frames::Notes& notes);

 private:
  std::pair<log::Role, frames::RoleSource> role_of(const std::string& name, log::Role known) const;
  /// Returns the scale that a gradient's values carry. If it is unknown, counts the gradient as
  /// skipped and returns nullopt.
  std::optional<double> scale_of(std::int64_t step);
  log::StepScalars& scalars_at(std::int64_t step);
  void keep_once_broken(std::string_view tag, std::int64_t step, double value);
  void add_extreme(log::Role role, std::int64_t step, const Extreme& found);
  void tell_step(log::StepScalars& scalars) const;
  void tell_assumptions(frames::Notes& notes) const;

  std::string log_;
  TimelineSelection selection_;
  const frames::Visitor& visit_;
  bool assume_roles_ = false;
  std::shared_ptr<TimelineState> state_;
};

/// Throws frames::InputNeedsOption: --recorded-scale names `tag`, which no scalar of the log has.
/// `instead` says which scalars it has.
[[noreturn]] void refuse_scale_tag(const std::string& log, const std::string& tag,
                                   const std::string& instead);

}  // namespace halfscope::analyzers::readers::common
