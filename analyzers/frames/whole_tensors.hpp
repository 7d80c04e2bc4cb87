// SPDX-License-Identifier: Apache-2.0
// What an analyzer sees of a log's whole tensors: sampled steps of a run log, or tensor files.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "analyzers/frames/source.hpp"

namespace halfscope::analyzers::frames {

/// Told how much of what is being looked at is done, 0 to 1; by any thread, one at a time. May be
/// empty.
using ProgressCallback = std::function<void(double)>;

/// One whole tensor at one step, as recorded.
struct WholeTensor {
  std::string name;
  log::Role role = log::Role::unknown;
  std::int64_t step = 0;
  double scale = 1.0;  ///< unscaled value = recorded value / scale
  std::vector<std::uint64_t> shape;
  TensorView view;        ///< valid during the call
  ProgressCallback tell;  ///< for visitors that take long over one tensor
};
using WholeVisitor = std::function<void(const WholeTensor&)>;
/// Receives a step's tensor that somebody has loaded, so that it is not loaded again.
using TakeLoaded = std::function<void(const log::NamedTensor&)>;

/// One step's whole tensors, of one rank: for analyzers that take several at once.
struct WholeStep {
  std::filesystem::path log;   ///< the tensor file or folder, or the folder of the run or its rank
  std::filesystem::path file;  ///< the step's file; where it has several, their folder
  std::int64_t step = 0;
  int rank = 0;
  std::vector<log::Role> sharded;  ///< roles of which each rank has a part
  const log::TensorFile* tensors = nullptr;
  std::map<std::string, std::string> metadata;  ///< of a sampled step's file
  const log::RunLog* run = nullptr;             ///< null for a tensor file
  const log::StepScalars* scalars = nullptr;    ///< null where the log has none of this step
  std::uint64_t bytes = 0;                      ///< of its files
  ProgressCallback tell;                        ///< for visitors that take long over one step

  /// How the step's tensor records say they are scaled, by name; without their tables.
  std::map<std::string, log::TensorRecord> records;

  /// Of tensor files: where each tensor lies. Empty of a run: in `file`.
  std::function<std::filesystem::path(const std::string& name)> file_of;
  std::function<log::Role(const Selection&, const std::string& name)> role_of;
  /// The loss scale a tensor carries: as its record says, else the sampled file's metadata, else
  /// the manifest. Throws log::BadInput where it carries an unknown one.
  std::function<double(const Selection&, const std::string& name)> scale_of;

  bool is_sharded(log::Role role) const;
  /// Of a run: whether the tensors of a role carry the loss scale, as the sampled file or the
  /// manifest says.
  bool says_scaled(log::Role role) const;
};
using WholeStepVisitor = std::function<void(const WholeStep&)>;
/// The ranks' tensors at one step; valid during the call.
using WholeRanksVisitor = std::function<void(std::span<const WholeStep>)>;

/// Visits steps' selected tensors one by one, each once: of several ranks every rank's where the
/// role is sharded, rank 0's where not.
class TensorsOfSteps {
 public:
  TensorsOfSteps(const Selection& selection, WholeVisitor visit)
      : selection_(selection), visit_(std::move(visit)) {}
  /// One of the step's tensors that somebody has loaded, before the others.
  void take(const WholeStep& step, const log::NamedTensor& tensor, const ProgressCallback& tell);
  /// All that are left of the step. Loads one at a time.
  void take(const WholeStep& step, const ProgressCallback& tell);
  /// Notes from which step on gradients were left out, as after a collapse of their scale.
  void finish(const std::filesystem::path& log, Notes& notes) const;

 private:
  bool is_wanted(const WholeStep& step, const std::string& name);
  void visit(const WholeStep& step, const log::NamedTensor& tensor, const ProgressCallback& tell);

  const Selection& selection_;
  WholeVisitor visit_;
  std::optional<std::int64_t> left_out_;  // the first step
  std::set<std::string> taken_;           // of the current step
  std::uint64_t done_ = 0;                // bytes of it
};

/// Tells the whole's progress of one step's, which begins at `done` bytes.
ProgressCallback within(const Progress& progress, std::uint64_t done, std::uint64_t step,
                        std::uint64_t all);

}  // namespace halfscope::analyzers::frames
