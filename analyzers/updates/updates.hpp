// SPDX-License-Identifier: Apache-2.0
// Weight updates that FP16 loses, counted element by element in pairs of whole tensors.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "analyzers/frames/source.hpp"
#include "analyzers/frames/whole_counts.hpp"
#include "analyzers/frames/whole_tensors.hpp"
#include "analyzers/readers/logs.hpp"
#include "analyzers/underflow/whole_findings.hpp"

namespace halfscope::analyzers::underflow {
struct Analysis;
struct LogFindings;
struct TensorFindings;
}  // namespace halfscope::analyzers::underflow

namespace halfscope::analyzers::updates {

/// The format of the weights to which updates are added.
enum class AddedTo : std::uint8_t {
  target,  ///< the target format, whatever the run used
  kept     ///< the run's own 16-bit format of the weight; the target format if that is wider
};

struct UpdateRequest {
  bool what_if = false;  ///< also count updates in other arithmetic
  AddedTo added_to = AddedTo::target;
};

/// Sets TensorFindings::updates of the weights (or of master weights that have no weight) that have
/// pairs in the logs' whole tensors, while these are read: log after log, step after step. Does
/// nothing for targets whose width is not 16 bits.
class UpdatePass {
 public:
  /// Called with each tensor of a pair while it is loaded.
  using TensorCallback = std::function<void(const log::NamedTensor&)>;

  UpdatePass(underflow::Analysis& analysis, const frames::Selection& selection,
             const UpdateRequest& asked);
  /// Returns true if the pass needs the logs' whole tensors at all.
  bool needs_steps() const;
  void begin(underflow::LogFindings& log);
  /// Counts the pairs of a step; loads one pair at a time. `tell`: the step's progress callback.
  void take(const frames::WholeStep& step, const frames::ProgressCallback& tell,
            const TensorCallback& beside = {});
  /// Adds updates that were counted earlier, in the format of this pass.
  void take(const frames::CountedUpdates& counted);
  /// Ends the log that begin() started.
  void finish_log();
  /// Call it after the last log.
  void finish();

 private:
  /// Findings of one weight by source, since steps may have different sources.
  using BySource = std::map<underflow::UpdateSource, underflow::UpdateFindings>;

  bool has_table(const std::string& weight);

  underflow::Analysis& analysis_;
  const frames::Selection& selection_;
  UpdateRequest asked_;
  underflow::LogFindings* log_ = nullptr;
  std::map<std::string, underflow::TensorFindings*> tensors_;  ///< tensors of the log by name
  std::map<std::string, BySource> found_;
};

/// Reads the logs' whole tensors only for their updates. Throws log::BadInput.
void add_updates(underflow::Analysis& analysis, const frames::Selection& selection,
                 const UpdateRequest& asked, const frames::Progress& progress = {},
                 const readers::Logs& opened = {});

}  // namespace halfscope::analyzers::updates
