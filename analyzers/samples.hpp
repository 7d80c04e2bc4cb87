// SPDX-License-Identifier: Apache-2.0
// The whole tensors of a log, for analyzers that must see values: sampled steps of a run log, or a
// tensor file.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "analyzers/source.hpp"
#include "analyzers/tensor_folder.hpp"

namespace halfscope::analyzers {

/// Told how much of what is being looked at is done, 0 to 1; by any thread, one at a time. May be
/// empty.
using Tell = std::function<void(double)>;

/// One whole tensor at one step, as recorded.
struct WholeTensor {
  std::string name;
  log::Role role = log::Role::unknown;
  std::int64_t step = 0;
  double scale = 1.0;  ///< unscaled value = recorded value / scale
  std::vector<std::uint64_t> shape;
  TensorView view;  ///< valid during the call
  Tell tell;        ///< for visitors that take long over one tensor
};
using WholeVisitor = std::function<void(const WholeTensor&)>;

/// Calls `visit` for every selected whole tensor of one log, step by step; of a log of several
/// ranks, every rank's where the role is sharded, rank 0's where not. Holds one tensor at a time.
/// A log without whole tensors has none to visit. Throws log::BadInput.
void for_each_whole_tensor(const std::filesystem::path& log, const Selection& selection,
                           const WholeVisitor& visit, Notes& notes, const Progress& progress = {});

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
  const TensorFolder* folder = nullptr;         ///< of tensor files
  std::map<std::string, StepFile> files;        ///< of tensor files: where each tensor lies
  std::uint64_t bytes = 0;                      ///< of its files
  Tell tell;                                    ///< for visitors that take long over one step

  log::Role role_of(const Selection& selection, const std::string& name) const;
  /// The loss scale a tensor carries: as its record says, else the sampled file's metadata, else
  /// the manifest. Throws log::BadInput where it carries one that nobody knows.
  double scale_of(const Selection& selection, const std::string& name) const;
  bool is_sharded(log::Role role) const;

  /// How the step's tensor records say they are scaled, by name; without their tables.
  std::map<std::string, log::TensorRecord> records;
};
using WholeStepVisitor = std::function<void(const WholeStep&)>;

/// Calls `visit` for every selected step (--tensor is not looked at), by step, then rank. The same
/// contract as above.
void for_each_whole_step(const std::filesystem::path& log, const Selection& selection,
                         const WholeStepVisitor& visit, Notes& notes,
                         const Progress& progress = {});

/// Adds a note unless it is there: several analyzers read the same samples.
void note_once(Notes& notes, std::string note);

}  // namespace halfscope::analyzers
