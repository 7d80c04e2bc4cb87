// SPDX-License-Identifier: Apache-2.0
// What a log holds, step by step, put in order for the analyzers: what readers of logs that are no
// run logs hand their findings to.
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

/// The largest number that is read as a step: differences of steps are numbers too, and a binary64
/// holds them.
inline constexpr std::int64_t kLargestStep = std::int64_t{1} << 53;

/// Whether a number that a log tells can be a loss scale. 0 is what is left of one that collapsed.
bool can_be_scale(double scale);

/// The loss scale that recorded values carry at each step, told by a scalar.
class ScaleSeries {
 public:
  void add(std::int64_t step, double scale) { scales_[step] = scale; }
  void restart(std::int64_t step) { scales_.erase_from(step); }
  bool empty() const { return scales_.empty(); }
  /// At a step without one: where the steps around it have the same. Empty: not known.
  std::optional<double> at(std::int64_t step) const;

 private:
  StepMap<double> scales_;  // the last value of a step holds
};

/// The bounds of the largest unscaled magnitude of a role at a step.
struct Extreme {
  bool any = false;  ///< some tensor was there
  double at_least = 0, at_most = 0;
  bool nan = false, infinite = false;  ///< some value surely is
  bool unknown = false;  ///< some tensor's largest has no bound, or may be infinite or NaN
};

/// What is collected of a log, or of several that are one timeline.
struct TimelineState {
  bool joined = false;                ///< told by whoever joins, not at the end of each log
  ScaleSeries carried;                ///< --recorded-scale TAG
  ScaleSeries of_steps;               ///< the loss scale the log tells
  std::set<std::string> scalar_tags;  ///< a few, for messages
  StepMap<log::StepScalars> scalars;
  std::map<std::int64_t, std::array<Extreme, 2>> extremes;  ///< of weights, of activations
  std::vector<frames::StepPeak> peaks;                      ///< of single tensors, unscaled
  std::vector<frames::SkippedSteps> skips;
  std::set<std::string> broken;  ///< tags of which some value was NaN or infinite
  std::set<std::int64_t> without_scale;
  std::set<std::int64_t> odd_scales;  ///< steps whose loss scale can be none
  std::uint64_t left_out = 0;         ///< tables and magnitudes of these steps
  bool any_assumed = false, any_gradient = false;
};

/// What is wanted of a log.
struct TimelineSelection : frames::Selection {
  TimelineSelection() = default;
  TimelineSelection(const frames::Selection& selection)  // NOLINT(google-explicit-constructor)
      : frames::Selection(selection) {}
  /// Set while the logs of a folder that holds several kinds are read: one timeline of all.
  std::shared_ptr<TimelineState> joined = nullptr;
};

/// Collects a log and tells the visitor. Scalars and magnitudes may come in any order and again;
/// frames are passed on at once, so that scalars are to be told before them. Only selected steps
/// and tensors are told.
class Timeline {
 public:
  Timeline(std::string log, const TimelineSelection& selection, const frames::Visitor& visit);

  /// Scalars of a step; those that are there already are replaced.
  void loss(std::int64_t step, double value);
  void learning_rate(std::int64_t step, double value);
  /// What can be no scale is skipped, with a note.
  void loss_scale(std::int64_t step, double value);
  void found_inf(std::int64_t step, bool value);
  /// Kept where they tell that something broke, and how it went on: a norm, or an evaluation's
  /// loss, from the first that is NaN or infinite, iterations with NaN.
  void gradient_norm(std::int64_t step, double value);
  void evaluation_loss(std::int64_t step, double value);
  void nan_iterations(std::int64_t step, std::int64_t count);

  /// The run came to this step, whether anything is told of it or not.
  void reached(std::int64_t step);

  /// The run started again: what is told of this step and later ones holds no more, scalars and
  /// skipped steps.
  void restart(std::int64_t step);
  /// Steps of which some were skipped; which is unknown.
  void skipped(const frames::SkippedSteps& steps);

  /// Whether a tensor of this step is wanted: before its table is made.
  bool wants(const std::string& name, std::int64_t step) const;
  /// A tensor's counts at a step. The timeline sets the role (unless it is known), its source,
  /// `counted`, the shape, and the scales, and takes the largest magnitude for the step's scalars.
  /// Tables of a name and step that come again are told again: readers keep the last.
  void tensor(frames::Frame&& frame);
  /// The same of a frame that is complete but for `counted` and Frame::run_scale. scale_told:
  /// somebody said which scale its values carry.
  void pass_on(frames::Frame&& frame, bool scale_told);
  /// A tensor's largest magnitude where there are no counts; as recorded: role and scales as above.
  void peak(frames::StepPeak peak);

  /// Whether some name carries a role; otherwise all are taken as weight_grad. Tell it before the
  /// first tensor: all names, selected or not.
  void names(const std::vector<std::string>& all);

  /// Whether the scalars hold what --recorded-scale TAG names; readers tell each scalar by its tag,
  /// before the first tensor. Returns true where the tag is the one: it is then the loss scale of
  /// the step as well.
  bool recorded_scale(const std::string& tag, std::int64_t step, double value);

  /// Tells peaks and scalars, and notes what was assumed. Throws log::BadInput where
  /// --recorded-scale names a scalar that was not there, listing those that were.
  void finish(frames::Notes& notes);

 private:
  std::pair<log::Role, frames::RoleSource> role_of(const std::string& name, log::Role known) const;
  /// The scale that values of a gradient carry. Empty where it is unknown: then it is counted.
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

/// Throws frames::OptionHelps: --recorded-scale names `tag`, which no scalar of the log has;
/// `instead` says what it has.
[[noreturn]] void refuse_scale_tag(const std::string& log, const std::string& tag,
                                   const std::string& instead);

}  // namespace halfscope::analyzers::readers::common
