// SPDX-License-Identifier: Apache-2.0
// Weights whose 16- or 8-bit copies change between checkpoints or sampled steps, and weights whose
// copies never change.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "analyzers/frames/whole_tensors.hpp"
#include "analyzers/readers/logs.hpp"

namespace halfscope::analyzers::weights {

/// Weights that never moved, and when they would. Let p be the value at the last step, u the update
/// a step (last minus first value, by the number of steps), and d the distance from p to the
/// boundary at which the copy of p becomes another one, in the direction of u. Both are those of
/// the master weight if the weight has 16 bits or less. docs/weights.md has the rules.
struct Stall {
  std::uint64_t zero = 0;  ///< u is 0: never moves
  std::uint64_t lost = 0;  ///< u is not 0, but leads to no boundary
  /// Numbers of weights by floor(log2(k)), where k is the number of steps until the copy moves.
  std::array<std::uint64_t, 256> steps{};
  double sum_update = 0;    ///< sum of |u| over the weights in `steps` and `lost`; approximate
  double sum_distance = 0;  ///< sum of d over the same weights, where d exists; approximate

  std::uint64_t never() const { return zero + lost; }
  /// Number of all weights that never moved and whose p and u are finite.
  std::uint64_t weights() const;
  /// Smallest and largest possible median of k. Empty if more than half of the weights never move.
  std::optional<Interval> median() const;
  Stall& operator+=(const Stall& other);
};

/// Sizes in bytes of the ways to send copies, summed over pairs of adjacent steps. Compressed sizes
/// are zstd's, level 3, in frames of 2^20 weights.
struct SentBytes {
  std::uint64_t copies = 0;  ///< all copies; their XOR has the same size
  std::uint64_t sparse = 0;  ///< changed copies, with indices of 4 bytes (8 in tensors above 2^32)
  std::uint64_t xored_zstd = 0, sparse_zstd = 0;
  double seconds = 0, zstd_seconds = 0;  ///< time to build both forms; time to compress both
};

/// Counts of weights that moved.
struct MovedCounts {
  std::uint64_t elements = 0;
  std::uint64_t moved = 0;  ///< weights whose copy changed in at least one pair of steps
  std::vector<std::uint64_t> changed = {};  ///< copies that differ, by pair of adjacent steps
  /// Later step of the last pair in which a copy changed. Empty: none ever did.
  std::optional<std::int64_t> last_moved = {};
  std::optional<Stall> stall = {};  ///< empty if no weight stayed, or if no update is known

  std::uint64_t frozen() const { return elements - moved; }
  MovedCounts& operator+=(const MovedCounts& other);
};

/// One weight tensor, over all its shards.
struct TensorMovement : MovedCounts {
  std::string name;  ///< with its role: "weight/fc1.weight"
  log::Role role = log::Role::weight;
  std::string kind;  ///< kind of layer: the path with "*" for numbers, "layers.*.norm.weight"
  Dtype dtype = Dtype::f32;    ///< dtype of the weights
  Dtype copies = Dtype::bf16;  ///< format of the copies that are compared
};

/// Sums over the tensors of one kind of layer.
struct KindMovement : MovedCounts {
  std::string kind;
  std::uint64_t tensors = 0;
};

/// The weights of one run log, or of two checkpoints.
struct Movement {
  std::string log;                           ///< name of the log; of two checkpoints the first
  std::string other = {};                    ///< name of the second checkpoint; empty for a run log
  std::vector<std::int64_t> steps;           ///< compared steps, ascending; {0, 1} if unknown
  std::vector<TensorMovement> tensors = {};  ///< by name
  std::vector<KindMovement> kinds = {};      ///< the largest number of weights first
  MovedCounts all = {};                      ///< sums over all tensors
  std::optional<SentBytes> bytes = {};       ///< empty if not asked for
  frames::Notes notes = {};
};

/// Options of moved_weights().
struct MovedOptions {
  Dtype copies = Dtype::bf16;      ///< for weights in 32 bits or more; narrower ones keep their own
  std::filesystem::path set = {};  ///< file for the set of moved weights; empty: none is written
  bool bytes = false;              ///< also fill Movement::bytes
  bool stalls = true;              ///< also fill MovedCounts::stall
  /// Compares only these two sampled steps of a run log.
  std::optional<std::pair<std::int64_t, std::int64_t>> steps = {};
  bool skip_misfits = false;  ///< tensors that differ in shape or dtype are noted, not refused
};

/// Compares the weights of each visited step with those of the step before. Keeps the files of the
/// first and the last step open, and one bit for each weight.
class MovedPass {
 public:
  MovedPass(const frames::Selection& selection, MovedOptions options)
      : selection_(selection), options_(std::move(options)) {}

  /// Begins a log, or the second checkpoint.
  void begin(const std::string& name);
  /// Takes a tensor of the step whose values are read just now, so that they are read once.
  void take(const frames::WholeStep& step, const std::string& name);
  /// Takes the step's remaining tensors, and ends the step.
  void take(const frames::WholeStep& step, const frames::ProgressCallback& tell = {});
  std::size_t steps() const { return steps_.size(); }
  /// Returns the results; without weights or a second step, nothing. Throws log::BadInput that
  /// names a tensor which is not in all steps in one shape and dtype.
  std::optional<Movement> finish(const frames::Progress& progress = {}) &&;

 private:
  static constexpr std::size_t kBlock = std::size_t{1} << 16;  ///< weights of one task

  /// A tensor of an open file, without its values.
  struct Place {
    std::shared_ptr<const log::TensorFile> file;
    log::NamedTensor outline;
    std::shared_ptr<const log::NamedTensor> load() const { return file->tensor(outline.name); }
  };
  /// The part of a tensor that one rank, or one file of a step, has.
  struct Shard {
    Place first, last;
    std::size_t steps = 0;  ///< visited steps; less than all if one lacks it
    std::vector<std::uint8_t> moved = {};
  };
  struct Tensor {
    std::vector<Shard> shards;
    std::vector<std::uint64_t> changed;  ///< MovedCounts::changed
    std::string misfit;                  ///< why its steps cannot be compared; empty if they can
  };
  using Key = std::pair<log::Role, std::string>;  ///< with the path after the role
  using Tensors = std::map<Key, Tensor>;

  std::string label(std::size_t step) const;
  bool is_master_of_weight(const Key& key) const;
  void take(const Key& key, Place&& place);
  void compare(Tensor& tensor, Shard& shard, const Place& now);
  bool fits(const Tensors::value_type& entry, frames::Notes& notes) const;
  TensorMovement measure(const Tensors::value_type& entry);
  /// Counts the weights of a tensor that never moved. Empty if no values in 32 bits are known.
  std::optional<Stall> stalls_of(const Key& key, Dtype copies);

  const frames::Selection& selection_;
  MovedOptions options_;
  std::vector<std::string> names_ = {};  ///< paths of the log, or of both checkpoints
  bool begins_ = true;                   ///< the next step is the first of a log
  std::vector<std::int64_t> steps_ = {};
  std::set<std::string> taken_ = {};            ///< tensors of the current step
  std::optional<log::Manifest> manifest_ = {};  ///< empty for checkpoints
  Tensors tensors_ = {};
  /// Element m is the magnitude between the copies with the magnitude codes m - 1 and m, by format.
  std::map<Dtype, std::vector<double>> boundaries_ = {};
  std::optional<SentBytes> bytes_ = {};
};

/// Compares two checkpoints (files or folders), or the sampled steps of one run log. Throws
/// log::BadInput as MovedPass::finish(), and if there are no weights or no two different steps.
Movement moved_weights(const std::vector<std::filesystem::path>& logs,
                       const frames::Selection& selection, const MovedOptions& options,
                       const frames::Progress& progress = {});

}  // namespace halfscope::analyzers::weights
