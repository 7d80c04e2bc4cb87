// SPDX-License-Identifier: Apache-2.0
// The contents of a log, ordered by step for the analyzers. Readers of all logs but run logs fill
// it.
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
  /// The scale at a step. If the step has none, the scale of the steps around it if they have the
  /// same, else empty.
  std::optional<double> at(std::int64_t step) const;

 private:
  StepMap<double> scales_;  ///< the last value of each step
};

/// The bounds of the largest unscaled magnitude of a role at a step.
struct Extreme {
  bool any = false;  ///< a tensor of the role was there
  double at_least = 0, at_most = 0;
  bool nan = false, infinite = false;  ///< a value certainly is
  bool unknown = false;  ///< a tensor's largest value has no bound, or may be infinite or NaN
};

/// The contents of a log, or of several logs that are one timeline.
struct TimelineState {
  bool joined = false;                ///< more logs follow: finish() reports nothing yet
  ScaleSeries carried;                ///< --recorded-scale TAG
  ScaleSeries of_steps;               ///< the loss scale in the log
  std::set<std::string> scalar_tags;  ///< some tags, for messages
  StepMap<log::StepScalars> scalars;
  std::map<std::int64_t, std::array<Extreme, 2>> extremes;  ///< gradients of weights, activations
  std::vector<frames::StepPeak> peaks;  ///< unscaled largest magnitudes of single tensors
  std::vector<frames::SkippedSteps> skips;
  std::set<std::string> broken;  ///< tags that had a value that was NaN or infinite
  std::set<std::int64_t> without_scale;
  std::set<std::int64_t> odd_scales;  ///< steps for which can_be_scale() was false
  std::uint64_t left_out = 0;         ///< tables and magnitudes of the steps without a scale
  bool any_assumed = false, any_gradient = false;
};

/// The part of a log to read, and whether other logs join it.
struct TimelineSelection : frames::Selection {
  TimelineSelection() = default;
  TimelineSelection(const frames::Selection& selection)  // NOLINT(google-explicit-constructor)
      : frames::Selection(selection) {}
  /// Set while the logs of a folder that holds several kinds are read: their one timeline.
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
  /// A norm or an evaluation's loss is kept from its first value that is NaN or infinite on; counts
  /// of iterations with NaN are kept if they are above 0.
  void gradient_norm(std::int64_t step, double value);
  void evaluation_loss(std::int64_t step, double value);
  void nan_iterations(std::int64_t step, std::int64_t count);

  /// The run came to this step, even if nothing is known about it.
  void reached(std::int64_t step);

  /// The run started again at this step: drops scalars and skipped steps from there on.
  void restart(std::int64_t step);
  /// A range of steps in which an unknown part was skipped.
  void skipped(const frames::SkippedSteps& steps);

  /// Returns true if a tensor of this step is selected; cheaper than making its table.
  bool wants(const std::string& name, std::int64_t step) const;
  /// A tensor's counts at a step. The timeline sets the role (unless it is known), its source,
  /// Frame::loss_scaled, the shape and the scales, and uses the largest magnitude for the step's
  /// scalars. It passes on every table of a name and step; callers pass only the last.
  void tensor(frames::Frame&& frame);
  /// The same for a frame that is complete but for Frame::loss_scaled and Frame::run_scale.
  /// `scale_told` is true if the scale that its values carry is known.
  void emit(frames::Frame&& frame, bool scale_told);
  /// A tensor's largest magnitude, as recorded, if there are no counts. Role and scales as above.
  void peak(frames::StepPeak peak);

  /// All names of tensors, selected or not, before the first tensor. If no name has a role, all
  /// tensors are treated as weight_grad.
  void names(const std::vector<std::string>& all);

  /// A scalar by its tag, before the first tensor. Returns true if --recorded-scale names the tag:
  /// then it is the loss scale of the step as well.
  bool recorded_scale(const std::string& tag, std::int64_t step, double value);

  /// Reports peaks and scalars, and notes the assumptions. Throws log::BadInput with a list of the
  /// scalars if --recorded-scale names another one.
  void finish(frames::Notes& notes);

 private:
  std::pair<log::Role, frames::RoleSource> role_of(const std::string& name, log::Role known) const;
  /// The scale that values of a gradient carry. If it is unknown, empty, and the entry is counted.
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
