// SPDX-License-Identifier: Apache-2.0
// The run log: what a training run recorded. A folder of files other tools can read; the schema is
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

/// Version of the schema this code writes; logs of a newer one are refused.
inline constexpr int kSchema = 1;

/// What a tensor is in training. The order is that of reports.
enum class Role : std::uint8_t {
  weight_grad,
  activation_grad,
  local_weight_grad,  ///< before microbatches and ranks are added up
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
/// The role a tensor's name begins with ("weight_grad/conv1.weight"), if it does.
std::optional<Role> role_in_name(std::string_view tensor_name);
/// Whether tensors of the role are gradients, which a loss scale multiplies.
bool is_gradient(Role role);
/// Whether the forward pass has them before its loss: weights, master weights, activations.
bool is_forward(Role role);

/// Whether recorded gradients carry the loss scale.
enum class ScaleState : std::uint8_t { unscaled, scaled };
std::string_view name_of(ScaleState state);
std::optional<ScaleState> find_scale_state(std::string_view name);

/// run.json. Keys that only inform (network, data, device, versions...) stay in `about`; read back,
/// it also has "halfscope", the version that wrote the log.
struct Manifest {
  int schema = kSchema;
  ScaleState gradients = ScaleState::unscaled;
  std::vector<Role> sharded;  ///< roles whose tables add over ranks; all others are replicated
  std::optional<Dtype> loss_dtype;  ///< what the loss is held in, if known
  int rank = 0;
  int world_size = 1;
  Document about;
};

/// The scalars every attempted step has. Empty optionals are not written.
struct StepScalars {
  std::int64_t step = 0;
  std::optional<double> loss;
  std::optional<double> learning_rate;
  std::optional<double> loss_scale;
  std::optional<bool> found_inf;
  std::optional<double> max_abs_weight_grad;      ///< unscaled; infinity and NaN are themselves
  std::optional<double> max_abs_activation_grad;  ///< unscaled
  TagValues more;                                 ///< any other scalar
};

/// One tensor at one step: its table, and beside it what does not add.
struct TensorRecord {
  std::string name;  ///< role/module path
  std::int64_t step = 0;
  std::vector<std::uint64_t> shape;
  Dtype source_dtype = Dtype::f32;
  std::optional<Dtype> computed_dtype;  ///< what the values were computed in, where known
  ScaleState state = ScaleState::unscaled;
  double scale = 1.0;  ///< the loss scale the recorded bits carry; 1 when unscaled
  bool scale_known = true;
  Moments moments;  ///< of the recorded bits; approximate
  BinadeTable table;
};

/// A folder that is written as the run goes. One writer a rank; may be called from several threads.
/// What is written is with the system when a call returns. Throws BadInput.
class RunLogWriter {
 public:
  /// Makes the folder, run.json first. Refuses a folder that holds a run log already.
  RunLogWriter(const std::filesystem::path& folder, const Manifest& manifest);
  /// Goes on with the log of a folder as a run does that starts again at a step: run.json is
  /// replaced, and what the log has of that step and later ones is dropped, samples by deleting
  /// them, events by a restart mark in a new file. Refuses a folder without a run log.
  RunLogWriter(const std::filesystem::path& folder, const Manifest& manifest,
               std::int64_t restart_at);
  ~RunLogWriter();

  /// Tags of `more` may be none of the tags docs/run-log.md gives a meaning.
  void write(const StepScalars& scalars);
  void write(const TensorRecord& record);
  /// The same as each alone, in order, by one call of the system.
  void write(std::span<const TensorRecord> records);
  /// tensors/step-NNNNNN.safetensors, replacing the step's earlier one. The file's metadata says
  /// "schema", "step" and "gradients" (the manifest's); `metadata` adds to that or overrides it, as
  /// {"scale": "65536"}.
  void write_sample(std::int64_t step, const std::vector<NamedTensor>& tensors,
                    const std::map<std::string, std::string>& metadata = {});

 private:
  struct Files;
  std::unique_ptr<Files> files_;
};

/// A recorded folder (one rank). Opening it reads all its events once: scalars are kept, and of
/// each tensor record its place, so memory is bounded by the number of steps and records. Where a
/// run was restarted and has a step twice, the last readable one holds; after a TensorBoard restart
/// mark (SessionLog START) what came before it from its step on is dropped. Throws BadInput.
class RunLog {
 public:
  /// `progress`, where given, is told the bytes of events read and there are.
  using Progress = std::function<void(std::uint64_t, std::uint64_t)>;
  explicit RunLog(const OpenPath& folder, const Progress& progress = {});

  /// True when the folder has a manifest; throws BadInput when it is laid out as a run log
  /// (event files, tensors/) but has none.
  static bool is_one(const std::filesystem::path& folder);

  const std::filesystem::path& folder() const { return folder_.path; }
  /// With the files that are open.
  const OpenPath& opened() const { return folder_; }
  const Manifest& manifest() const { return manifest_; }

  /// Scalars by step, ascending; the last value a step has holds.
  std::vector<StepScalars> scalars() const;

  using Wanted = std::function<bool(const std::string& name, std::int64_t step)>;
  /// Every tensor record in the order written, one of a name and step. Where `wanted` is given and
  /// says no, the record is not read.
  void for_each(const std::function<void(TensorRecord&&)>& visit, const Wanted& wanted = {}) const;
  /// How many records for_each without `wanted` visits.
  std::size_t record_count() const { return records_.size(); }

  /// Sampled steps and the files that hold their tensors, ascending.
  std::map<std::int64_t, std::filesystem::path> samples() const;

  /// What was unusual while reading: a cut tail, a skipped record. One line each.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  friend class RunLogIndex;
  /// Where a tensor record lies: an event of one of files_.
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

/// The folders rank-NNNN of a log of many ranks, by rank; empty where `folder` is none.
std::vector<std::filesystem::path> rank_folders(const std::filesystem::path& folder);

}  // namespace halfscope::log
