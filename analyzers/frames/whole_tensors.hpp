// SPDX-License-Identifier: Apache-2.0
// Access to a log's whole tensors: those of a run log's sampled steps, or of tensor files.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "analyzers/frames/source.hpp"

namespace halfscope::analyzers::frames {

/// Progress callback: receives the fraction done, 0 to 1. Calls may come from any thread but never
/// overlap. An empty function reports nothing.
using ProgressCallback = std::function<void(double)>;

/// One whole tensor at one step, as recorded.
struct WholeTensor {
  std::string name;
  log::Role role = log::Role::unknown;
  std::int64_t step = 0;
  double scale = 1.0;  ///< unscaled value = recorded value / scale
  std::vector<std::uint64_t> shape;
  TensorView view;        ///< valid during the call
  ProgressCallback tell;  ///< for visitors that need long for one tensor
};
using WholeVisitor = std::function<void(const WholeTensor&)>;
/// Receives a step's tensor that another reader has loaded, so that it is not loaded again.
using TakeLoaded = std::function<void(const log::NamedTensor&)>;

/// The whole tensors of one step and one rank, for analyzers that need several at once.
struct WholeStep {
  std::filesystem::path log;   ///< the tensor file or folder, or the folder of the run or its rank
  std::filesystem::path file;  ///< the step's file, or the folder of its files
  std::int64_t step = 0;
  int rank = 0;
  std::vector<log::Role> sharded;                  ///< roles whose tensors are split over the ranks
  std::shared_ptr<const log::TensorFile> tensors;  ///< may be kept after the visit
  std::map<std::string, std::string> metadata;     ///< metadata of a sampled step's file
  const log::RunLog* run = nullptr;                ///< null for a tensor file
  const log::StepScalars* scalars = nullptr;       ///< null if the log has none for this step
  std::uint64_t bytes = 0;                         ///< total size of its files
  ProgressCallback tell;                           ///< for visitors that need long for one step

  /// The step's tensor records by name: how values are scaled. Histograms are not loaded.
  std::map<std::string, log::TensorRecord> records;

  /// Returns the file of a tensor. An empty function for a run log, whose tensors are in `file`.
  std::function<std::filesystem::path(const std::string& name)> file_of;
  std::function<log::Role(const Selection&, const std::string& name)> role_of;
  /// Returns the loss scale in a tensor's values: from its record, else the sampled file's
  /// metadata, else the manifest. Throws log::BadInput if the scale is unknown.
  std::function<double(const Selection&, const std::string& name)> scale_of;

  bool is_sharded(log::Role role) const;
  /// Returns true if tensors of a role contain the loss scale, according to the sampled file, else
  /// to the manifest. Requires a run log.
  bool says_scaled(log::Role role) const;
};
using WholeStepVisitor = std::function<void(const WholeStep&)>;
/// Receives the tensors of all ranks at one step; they are valid only during the call.
using WholeRanksVisitor = std::function<void(std::span<const WholeStep>)>;

/// Visits the selected tensors of steps one by one, each once. In a log of several ranks it visits
/// every rank's tensors of sharded roles, and rank 0's of other roles.
class TensorsOfSteps {
 public:
  TensorsOfSteps(const Selection& selection, WholeVisitor visit)
      : selection_(selection), visit_(std::move(visit)) {}
  /// Visits a tensor of the step that is already loaded. Call this before the other overload.
  void take(const WholeStep& step, const log::NamedTensor& tensor, const ProgressCallback& tell);
  /// Visits the step's remaining tensors. Loads one at a time.
  void take(const WholeStep& step, const ProgressCallback& tell);
  /// Adds a note with the first step whose gradients were skipped, as after a scale's collapse.
  void finish(const std::filesystem::path& log, Notes& notes) const;

 private:
  bool is_wanted(const WholeStep& step, const std::string& name);
  void visit(const WholeStep& step, const log::NamedTensor& tensor, const ProgressCallback& tell);

  const Selection& selection_;
  WholeVisitor visit_;
  std::optional<std::int64_t> left_out_;  // first step whose gradients were skipped
  std::set<std::string> taken_;           // tensors of the current step
  std::uint64_t done_ = 0;                // bytes of the current step
};

/// Returns a callback that converts the fraction done of one step to progress over all steps.
/// `done`: bytes before this step; `step`: bytes of it; `all`: bytes of all steps.
ProgressCallback within(const Progress& progress, std::uint64_t done, std::uint64_t step,
                        std::uint64_t all);

}  // namespace halfscope::analyzers::frames
