// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "analyzers/frames/count_values.hpp"
#include "analyzers/frames/microbatches.hpp"
#include "analyzers/readers/common/roles.hpp"
#include "analyzers/readers/common/timeline.hpp"
#include "analyzers/readers/run_log/run_log.hpp"

namespace halfscope::analyzers::readers::run_log {

using frames::Frame;
using frames::Message;
using frames::Notes;
using frames::Option;
using frames::Selection;

namespace {

using log::printable;
using log::Role;

std::optional<double> magnitude(std::optional<double> x) {
  return x ? std::optional(std::abs(*x)) : std::nullopt;
}

/// Visits the peaks of a step's microbatches, whose gradients may be larger than their sum.
void visit_microbatches(const log::StepScalars& scalars, bool scaled,
                        const frames::PeakVisitor& visit) {
  const double scale = frames::microbatch_scale(scalars, scaled);
  if (!frames::usable_scale(scale)) return;
  for (const auto& [tag, value] : scalars.more) {
    for (const Role role : {Role::weight_grad, Role::activation_grad}) {
      if (!frames::is_microbatch(tag, role)) continue;
      visit({role, scalars.step, std::abs(value) / scale, scalars.loss_scale});
    }
  }
}

/// Returns the largest weight gradient of a step that FP16 must hold. Empty if the gradients are
/// summed in FP32, the sum is finite, and visit_microbatches() visits the parts instead.
std::optional<double> weight_peak(const log::StepScalars& scalars, bool scaled, bool sums_in_fp32) {
  const std::optional<double> max_abs = scalars.max_abs_weight_grad;
  const bool visited = frames::usable_scale(frames::microbatch_scale(scalars, scaled)) &&
                       frames::largest_part(scalars);
  const bool parts = sums_in_fp32 && max_abs && std::isfinite(*max_abs) && visited;
  return parts ? std::nullopt : max_abs;
}

void visit_peaks(const log::RunLog& log, const Selection& s, bool sums_in_fp32,
                 const frames::PeakVisitor& visit) {
  const bool half_loss = log.manifest().loss_dtype == Dtype::f16;
  const bool scaled = log.manifest().gradients == log::ScaleState::scaled;
  for (const log::StepScalars& scalars : log.scalars()) {
    if (!frames::in_steps(s, scalars.step)) continue;
    const std::pair<Role, std::optional<double>> peaks[] = {
        {Role::weight_grad, weight_peak(scalars, scaled, sums_in_fp32)},
        {Role::activation_grad, scalars.max_abs_activation_grad},
        {Role::loss, half_loss ? magnitude(scalars.loss) : std::nullopt}};
    for (const auto& [role, max_abs] : peaks) {
      if (max_abs || (scalars.loss_scale && is_gradient(role))) {
        visit({role, scalars.step, max_abs.value_or(0.0), scalars.loss_scale});
      }
    }
    visit_microbatches(scalars, scaled, visit);
  }
}

/// Returns the loss scale of each step whose scalars have a usable one.
std::map<std::int64_t, double> loss_scales(const log::RunLog& log) {
  std::map<std::int64_t, double> scales;
  for (const log::StepScalars& scalars : log.scalars()) {
    const double scale = scalars.loss_scale.value_or(0);
    if (frames::usable_scale(scale)) scales[scalars.step] = scale;
  }
  return scales;
}

/// Returns the total size of a folder's files, for the progress bar.
std::uint64_t event_bytes(const std::filesystem::path& folder) {
  std::uint64_t bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.is_regular_file()) bytes += entry.file_size();
  }
  return bytes;
}

/// Computes histograms from the sampled tensors of a run log that has no histograms.
void read_samples(const log::RunLog& log, const Selection& s, const frames::FrameVisitor& visit,
                  Notes& notes, const frames::Progress& progress) {
  const frames::WholeVisitor see = [&](const frames::WholeTensor& whole) {
    std::uint64_t done = 0;
    const auto read = [&](std::uint64_t bytes) {
      done += bytes;
      if (whole.tell) {
        whole.tell(static_cast<double>(done) /
                   static_cast<double>(std::max<std::uint64_t>(1, whole.view.bytes())));
      }
    };
    Frame frame;
    std::tie(frame.role, frame.role_source) = readers::common::role_of(s, whole.name);
    frame.name = whole.name;
    frame.step = whole.step;
    frame.source_dtype = whole.view.dtype;
    frame.scale = whole.scale;
    frame.shape = whole.shape;
    const bool compared = frame.role == Role::weight_grad;  // clipped.hpp compares steps
    MomentSums moments;
    frame.table = frames::count_values(whole.view, s, whole.scale, read,
                                       {compared ? &moments : nullptr, nullptr});
    if (compared) frame.moments = moments.value();
    visit(std::move(frame));
  };
  notes.add(printable(log.folder().string()) +
            ": holds sampled tensors but no histograms; histograms are made from the "
            "tensors, for the sampled steps only");
  frames::TensorsOfSteps tensors(s, see);
  const auto take = [&](const frames::WholeStep& step) { tensors.take(step, step.tell); };
  visit_run_samples(log.opened(), s, take, notes, progress);
  tensors.finish(log.folder(), notes);
}

/// Skips histograms whose loss scale is unknown, 0 or too small to undo, as after a collapse of the
/// scale. The rest of the run can then show the cause.
class LeftOut {
 public:
  /// Returns true if the record must be skipped.
  bool takes(log::TensorRecord& record, const Selection& s) {
    if (record.state == log::ScaleState::unscaled || s.recorded_scale) return false;
    if (record.scale_known && frames::usable_scale(record.scale)) {
      any_usable_ = true;
      return false;
    }
    ++tables_;
    if (!first_ || record.step < first_->step) first_ = std::move(record);
    return true;
  }

  /// Notes the skipped histograms. Throws log::BadInput if no scale of the log is usable.
  void tell(const std::filesystem::path& log, const Selection& s, bool run_has_scale,
            Notes& notes) const {
    if (!first_) return;
    const bool known = first_->scale_known;
    if (!any_usable_ && !(known && run_has_scale)) frames::scale_of(*first_, s, log);
    const std::string why =
        known ? fmt::format(
                    "with a loss scale that is not a positive normal binary32 number ({} "
                    "first); the scale collapsed, or the log has a wrong scale; then ",
                    first_->scale)
              : "with a loss scale that the log does not have; ";
    notes.add(fmt::format("{}: {} {} skipped, from step {} on: recorded as scaled {}give it with ",
                          printable(log.string()), tables_,
                          tables_ == 1 ? "histogram is" : "histograms are", first_->step, why) +
              Message(Option::recorded_scale, "S"));
  }

 private:
  std::uint64_t tables_ = 0;
  bool any_usable_ = false;
  std::optional<log::TensorRecord> first_;
};

/// The loss scales that the named scalar has, by step.
class ScaleTag {
 public:
  /// Throws log::BadInput if the log has the scalar at no step; the message lists its scalars.
  ScaleTag(const log::RunLog& log, const frames::Selection& selection);

  /// Sets a scaled record's loss scale to the scalar of its step; unknown if the step has none.
  /// Does nothing without a tag.
  void set(log::TensorRecord& record) const;

 private:
  std::optional<std::map<std::int64_t, double>> scales_;  ///< by step; empty if no tag was given
};

ScaleTag::ScaleTag(const log::RunLog& log, const frames::Selection& selection) {
  if (!selection.scale_tag) return;
  constexpr const char* kLossScale = "loss_scale";  // docs/run-log.md
  scales_.emplace();
  std::set<std::string> tags;
  for (const log::StepScalars& scalars : log.scalars()) {
    std::map<std::string, double> all = scalars.more.map();
    if (scalars.loss_scale) all[kLossScale] = *scalars.loss_scale;
    for (const auto& [tag, value] : all) {
      tags.insert(tag);
      if (tag == *selection.scale_tag) (*scales_)[scalars.step] = value;
    }
  }
  if (!scales_->empty()) return;
  constexpr std::size_t kMostNames = 12;
  std::string list;
  std::size_t named = 0;
  for (const std::string& tag : tags) {
    if (named++ == kMostNames) break;
    list += (list.empty() ? "it has '" : ", '") + log::printable(tag) + "'";
  }
  if (tags.size() > kMostNames) list += fmt::format(" and {} more", tags.size() - kMostNames);
  common::refuse_scale_tag(
      log.folder().string(), *selection.scale_tag,
      list.empty() ? "it has none that may be a loss scale: give a number" : list);
}

void ScaleTag::set(log::TensorRecord& record) const {
  if (!scales_ || record.state == log::ScaleState::unscaled) return;
  const auto of_step = scales_->find(record.step);
  record.scale_known = of_step != scales_->end();
  if (record.scale_known) record.scale = of_step->second;
}

}  // namespace

void read_run_log(const log::RunLog& log, const Selection& s, const frames::Visitor& visit,
                  Notes& notes, const frames::Progress& progress) {
  const bool half_loss = log.manifest().loss_dtype == Dtype::f16;
  const std::uint64_t bytes = event_bytes(log.folder());
  std::uint64_t records = 0;
  const std::map<std::int64_t, double> run_scales = loss_scales(log);
  const auto wanted = [&](const std::string& name, std::int64_t step) {
    ++records;
    if (progress) progress(bytes * records / log.record_count(), bytes);
    return frames::selects(s, name) && frames::in_steps(s, step);
  };
  const auto emit = [&](Frame&& frame, bool carried) {
    frame.loss_scaled = is_gradient(frame.role) || (frame.role == Role::loss && half_loss);
    if (frame.loss_scaled) {
      const auto of_step = run_scales.find(frame.step);
      frame.run_scale = carried || of_step == run_scales.end() ? frame.scale : of_step->second;
    }
    visit.frame(std::move(frame));
  };
  LeftOut left_out;
  frames::SumFormat sums;
  const ScaleTag tag(log, s);
  const auto take = [&](log::TensorRecord&& record) {
    tag.set(record);
    if (left_out.takes(record, s)) return;
    Frame frame;
    std::tie(frame.role, frame.role_source) = readers::common::role_of(s, record.name);
    if (frame.role == Role::weight_grad) sums.add(record.source_dtype);
    frame.step = record.step;
    frame.source_dtype = record.source_dtype;
    frame.computed_dtype = record.computed_dtype;
    frame.scale = frames::scale_of(record, s, log.folder());
    frame.name = std::move(record.name);
    frame.shape = std::move(record.shape);
    frame.table = std::move(record.table);
    frame.moments = record.moments;
    emit(std::move(frame), record.state == log::ScaleState::scaled);
  };
  const auto take_sample = [&](Frame&& frame) {
    const bool carried = frame.scale != 1.0;
    if (frame.role == Role::weight_grad) sums.add(frame.source_dtype);
    emit(std::move(frame), carried);
  };
  log.for_each(take, wanted);
  left_out.tell(log.folder(), s, !run_scales.empty(), notes);
  if (log.record_count() == 0 && !log.samples().empty()) {
    read_samples(log, s, take_sample, notes, progress);
  }
  if (visit.peak && !s.tensor_glob) visit_peaks(log, s, sums.is_fp32(), visit.peak);
  if (visit.manifest) visit.manifest(log.manifest());
  for (const log::StepScalars& scalars : log.scalars()) {
    if (visit.scalars && frames::in_steps(s, scalars.step)) visit.scalars(scalars);
  }
  if (s.recorded_scale || s.scale_tag) {
    const bool scaled = log.manifest().gradients == log::ScaleState::scaled;
    notes.add(
        printable(log.folder().string()) +
        (scaled
             ? ": " + Message(Option::recorded_scale) + " is used instead of the scales in the log"
             : ": says that its gradients are unscaled; " + Message(Option::recorded_scale) +
                   " is used only where a tensor says otherwise"));
  }
  notes.add_all(log.notes());
}

}  // namespace halfscope::analyzers::readers::run_log
