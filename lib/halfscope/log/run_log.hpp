// SPDX-License-Identifier: Apache-2.0
// The run log: a training run's record, as files that other tools can read. Schema:
// docs/run-log.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "halfscope/log/document.hpp"
#include "halfscope/log/open_file.hpp"
#include "halfscope/log/tag_values.hpp"
#include "halfscope/log/tensor_file.hpp"
#include "halfscope/table/binade_table.hpp"
#include "halfscope/table/count/count.hpp"

namespace halfscope::log {

class EventReader;

/// Version of the schema that this code writes; newer logs are rejected.
inline constexpr int kSchema = 1;

/// Role of a tensor in training, in the order of reports.
enum class Role : std::uint8_t {
  weight_grad,
  activation_grad,
  local_weight_grad,  ///< gradients before they are summed over microbatches and ranks
  activation,
  weight,
  weight_after,
  master_weight,
  update,
  optimizer_state,
  loss,
  unknown
};
std::string_view name_of(Role role);
std::optional<Role> find_role(std::string_view name);
/// Returns the role that is the first part of a tensor's name ("weight_grad/conv1.weight"), if any.
std::optional<Role> role_in_name(std::string_view tensor_name);
/// Returns true for roles of gradients, which a loss scale multiplies.
bool is_gradient(Role role);
/// Returns true for tensors that exist before the loss: weights, master weights, activations.
bool is_forward(Role role);

/// State of recorded gradients: multiplied by the loss scale, or not.
enum class ScaleState : std::uint8_t { unscaled, scaled };
std::string_view name_of(ScaleState state);
std::optional<ScaleState> find_scale_state(std::string_view name);

/// The contents of run.json. Purely informative keys (network, data, device, versions...) are in
/// `about`; after reading it also has "halfscope", the version that wrote the log.
struct Manifest {
  int schema = kSchema;
  ScaleState gradients = ScaleState::unscaled;
  std::vector<Role> sharded;        ///< roles summed over ranks; all others are replicated
  std::optional<Dtype> loss_dtype;  ///< dtype that stores the loss, if known
  int rank = 0;
  int world_size = 1;
  Document about;
};

/// Scalars of an attempted step. Empty optionals are not written.
struct StepScalars {
  std::int64_t step = 0;
  std::optional<double> loss;
  std::optional<double> learning_rate;
  std::optional<double> loss_scale;
  std::optional<bool> found_inf;
  std::optional<double> max_abs_weight_grad;      ///< unscaled; may be infinity or NaN
  std::optional<double> max_abs_activation_grad;  ///< unscaled; may be infinity or NaN
  TagValues more;                                 ///< all other scalars, by tag
};

/// A tensor at one step: its histogram, and properties that cannot be added up.
struct TensorRecord {
  std::string name;  ///< role/module path
  std::int64_t step = 0;
  std::vector<std::uint64_t> shape;
  Dtype source_dtype = Dtype::f32;
  std::optional<Dtype> computed_dtype;  ///< dtype that computed the values; empty: unknown
  ScaleState state = ScaleState::unscaled;
  double scale = 1.0;  ///< loss scale contained in the recorded values; 1 if unscaled
  bool scale_known = true;
  Moments moments;  ///< moments of the recorded values; approximate
  BinadeTable table;
};

/// Writes the folder during the run; one writer per rank. Thread-safe. When a call returns, its
/// data has been passed to the system. All functions throw BadInput.
class RunLogWriter {
 public:
  /// Creates the folder, run.json first. Throws if the folder already has a run log.
  RunLogWriter(const std::filesystem::path& folder, const Manifest& manifest);
  /// Continues the log of a run that restarts at step `restart_at`: replaces run.json and drops
  /// that step and all later ones (deletes their samples; marks the restart in a new event file).
  /// Throws if the folder has no run log.
  RunLogWriter(const std::filesystem::path& folder, const Manifest& manifest,
               std::int64_t restart_at);
  ~RunLogWriter();

  /// Tags in `more` must differ from all tags that docs/run-log.md defines.
  void write(const StepScalars& scalars);
  void write(const TensorRecord& record);
  /// Writes several records, in order, with one system call.
  void write(std::span<const TensorRecord> records);
  /// Writes tensors/step-NNNNNN.safetensors, replacing an earlier file of the step. The file's
  /// metadata has "schema", "step" and "gradients" (from the manifest); `metadata` adds entries or
  /// overrides them, such as {"scale": "65536"}.
  void write_sample(std::int64_t step, const std::vector<NamedTensor>& tensors,
                    const std::map<std::string, std::string>& metadata = {});

 private:
  struct Files;
  std::unique_ptr<Files> files_;
};

/// A recorded folder (one rank). The constructor reads all events once and keeps the scalars and
/// the place of each tensor record, so memory grows with the number of steps and records only. If a
/// restarted run has a step twice, the last readable version counts; a TensorBoard restart mark
/// (SessionLog START) drops all earlier entries from its step on. Throws BadInput.
class RunLog {
 public:
  /// Receives the bytes of events read so far and in total. An empty function reports nothing.
  using Progress = std::function<void(std::uint64_t, std::uint64_t)>;
  explicit RunLog(const OpenPath& folder, const Progress& progress = {});

  /// Returns true if the folder has a manifest. Throws BadInput if it only has event files or
  /// tensors/.
  static bool is_one(const std::filesystem::path& folder);

  const std::filesystem::path& folder() const { return folder_.path; }
  /// The folder with its open files.
  const OpenPath& opened() const { return folder_; }
  const Manifest& manifest() const { return manifest_; }

  /// Scalars by step, ascending; of several values at a step, the last.
  std::vector<StepScalars> scalars() const;

  using Wanted = std::function<bool(const std::string& name, std::int64_t step)>;
  /// Calls `visit` for every tensor record in the order written, once per name and step. Skips
  /// records for which `wanted` returns false; an empty `wanted` accepts all.
  void for_each(const std::function<void(TensorRecord&&)>& visit, const Wanted& wanted = {}) const;
  /// Number of records that for_each without `wanted` visits.
  std::size_t record_count() const { return records_.size(); }

  /// Sampled steps, ascending, with the files of their tensors.
  std::map<std::int64_t, std::filesystem::path> samples() const;

  /// Problems found while reading, one line each: an incomplete last record, a skipped record.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  friend class RunLogIndex;
  /// Location of a tensor record: an event in files_[file].
  struct Place {
    std::size_t file;
    std::uint64_t offset;
    std::string name;
    std::int64_t step;
  };
  OpenPath folder_;
  Manifest manifest_;
  std::vector<std::filesystem::path> files_;
  std::map<std::int64_t, StepScalars> scalars_;
  std::vector<Place> records_;
  std::vector<std::string> notes_;
};

/// Returns the folders rank-NNNN of a log of many ranks, by rank; empty if `folder` has none.
std::vector<std::filesystem::path> rank_folders(const std::filesystem::path& folder);

}  // namespace halfscope::log
