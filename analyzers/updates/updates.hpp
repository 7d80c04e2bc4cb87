// SPDX-License-Identifier: Apache-2.0
// Weight updates that FP16 loses: pairs of whole tensors, element by element.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "analyzers/frames/source.hpp"
#include "analyzers/frames/whole_counts.hpp"
#include "analyzers/frames/whole_tensors.hpp"
#include "analyzers/readers/logs.hpp"
#include "analyzers/underflow/update_findings.hpp"

namespace halfscope::analyzers::underflow {
struct Analysis;
struct LogFindings;
struct TensorFindings;
}  // namespace halfscope::analyzers::underflow

namespace halfscope::analyzers::updates {

/// The format that weights have to which updates are added.
enum class AddedTo : std::uint8_t {
  target,  ///< the target's: what it would make of them
  kept     ///< the one of 16 bits that the run keeps the weight in; the target's where it is wider
};

struct UpdatesAsked {
  bool what_if = false;  ///< in other arithmetic, too
  AddedTo added_to = AddedTo::target;
};

/// Sets TensorFindings::updates of the weights (or master weights, where there is no weight) that
/// have pairs in the logs' whole tensors, while these are read: log after log, step after step.
/// Targets of other width than 16 have none.
class UpdatePass {
 public:
  /// Called with each tensor of a pair while it is loaded.
  using Beside = std::function<void(const log::NamedTensor&)>;

  UpdatePass(underflow::Analysis& analysis, const frames::Selection& selection,
             const UpdatesAsked& asked);
  /// Whether steps are to be read at all.
  bool needs_steps() const;
  void begin(underflow::LogFindings& log);
  /// Holds one pair at a time. tell: of this step.
  void take(const frames::WholeStep& step, const frames::ProgressCallback& tell,
            const Beside& beside = {});
  /// What was counted of a pair before, in the format that is asked about.
  void take(const frames::CountedUpdates& counted);
  /// Ends the log that was begun.
  void finish_log();
  /// After the last one.
  void finish();

 private:
  /// Findings of one weight by source: what is preferred at one step may be missing at another.
  using BySource = std::map<underflow::UpdateSource, underflow::UpdateFindings>;

  bool has_table(const std::string& weight);

  underflow::Analysis& analysis_;
  const frames::Selection& selection_;
  UpdatesAsked asked_;
  underflow::LogFindings* log_ = nullptr;
  std::map<std::string, underflow::TensorFindings*> tensors_;  ///< of the log
  std::map<std::string, BySource> found_;
};

/// Reads the whole tensors for their updates alone. Throws log::BadInput.
void add_updates(underflow::Analysis& analysis, const frames::Selection& selection,
                 const UpdatesAsked& asked, const frames::Progress& progress = {},
                 const readers::Logs& opened = {});

}  // namespace halfscope::analyzers::updates
