// SPDX-License-Identifier: Apache-2.0
// Weights whose 16- or 8-bit copies change between checkpoints or sampled steps, and weights whose
// copies never change.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analyzers/frames/source.hpp"
#include "analyzers/readers/logs.hpp"
#include "halfscope/log/run_log.hpp"
#include "halfscope/table/interval.hpp"

namespace halfscope::analyzers::weights {

/// Origin of the update of a weight that never moved.
enum class RateSource : std::uint8_t {
  values,  ///< last value minus first value of the weight itself, in 32 bits or more
  master,  ///< last value minus first value of its master weight
  update   ///< the update recorded at the last step
};
std::string_view name_of(RateSource source);

/// The weights of a tensor whose copies never moved, and when they would. Let p be the value at the
/// last step, u the update a step, and d the distance from p to the boundary at which the copy of p
/// becomes another number, in the direction of u. A weight in 32 bits or more, or with a master,
/// moves after about d / |u| steps. A weight in 16 or 8 bits without a master moves in one step if
/// round(p + u) differs from p, else never. docs/weights.md has the rules for ties and infinities.
struct Stall {
  RateSource source = RateSource::values;
  std::uint64_t weights = 0;  ///< never moved, p and u finite: the sum of all counts below
  std::uint64_t zero = 0;     ///< u is 0: never moves
  std::uint64_t lost = 0;     ///< u is not 0, but is lost each step or leads to no boundary
  /// Number of weights by floor(log2(k)), where k is the number of steps until the copy moves.
  std::map<int, std::uint64_t> steps;
  double sum_update = 0;    ///< sum of |u| over `weights`; approximate
  double sum_distance = 0;  ///< sum of d over the weights in `steps` and `zero`; approximate

  std::uint64_t never() const { return zero + lost; }
  /// Smallest and largest possible median of k. Empty if at least half of the weights never move.
  std::optional<Interval> median() const;
  Stall& operator+=(const Stall& other);
};

/// Sizes in bytes of the ways to send changed copies. Compressed sizes are zstd's, level 3.
struct SentBytes {
  std::uint64_t copies = 0;  ///< all copies as they are
  std::uint64_t sparse = 0;  ///< changed copies with their indices of 4 bytes (8 above 2^32)
  std::uint64_t xored = 0;   ///< XOR of all copies of changed tensors
  std::uint64_t sparse_zstd = 0, xored_zstd = 0;
  double seconds = 0, zstd_seconds = 0;  ///< time to build both forms; time to compress both
  SentBytes& operator+=(const SentBytes& other);
};

/// What became of one weight tensor, over all its shards.
struct TensorMovement {
  std::string name;  ///< with its role: "weight/fc1.weight"
  log::Role role = log::Role::weight;
  std::string kind;            ///< kind of layer: "LayerNorm.weight", or "layers.*.norm.weight"
  Dtype dtype = Dtype::f32;    ///< dtype of the weights at the first step
  Dtype copies = Dtype::bf16;  ///< format of the copies that are compared
  std::uint64_t shards = 1;    ///< number of parts: over ranks, or in files of one step
  std::uint64_t elements = 0;
  std::vector<std::uint64_t> changed;  ///< copies that differ, by pair of adjacent steps
  std::uint64_t moved = 0;             ///< weights whose copy changed in at least one pair
  /// Later step of the last pair in which a copy changed. Empty: none ever did.
  std::optional<std::int64_t> last_moved;
  std::optional<Stall> stall;  ///< empty if no weight stayed, or if no update is known

  std::uint64_t frozen() const { return elements - moved; }
};

/// Sums over tensors of one kind of layer.
struct KindMovement {
  std::string kind;
  std::uint64_t tensors = 0, elements = 0, moved = 0;
  std::vector<std::uint64_t> changed;  ///< as in TensorMovement
  std::optional<std::int64_t> last_moved;
  std::optional<Stall> stall;  ///< of the tensors that have one; of several sources the last

  std::uint64_t frozen() const { return elements - moved; }
};

/// The weights of one run log, or of two checkpoints.
struct Movement {
  std::string log;                  ///< name of the log; of two checkpoints the first
  std::string other;                ///< name of the second checkpoint; empty for a run log
  std::vector<std::int64_t> steps;  ///< compared steps, ascending; {0, 1} for checkpoints without
  std::vector<TensorMovement> tensors;  ///< in the order of the first step
  std::vector<KindMovement> kinds;      ///< the largest number of weights first
  KindMovement all;                     ///< sums over all tensors; `kind` is empty
  std::optional<SentBytes> bytes;       ///< from the first to the last step, if asked for
  frames::Notes notes;
};

/// Options of moved_weights().
struct MovedOptions {
  Dtype copies = Dtype::bf16;  ///< for weights in 32 bits or more; narrower ones keep their own
  std::filesystem::path set;   ///< file for the set of moved weights; empty: none is written
  bool bytes = false;          ///< also fill Movement::bytes
  /// Compares only these two sampled steps of a run log.
  std::optional<std::pair<std::int64_t, std::int64_t>> steps;
};

/// Compares two checkpoints (files or folders), or the sampled steps of one run log. Maps the
/// files; holds one bit for each weight of one tensor, of all tensors if a set is written. Throws
/// log::BadInput that names the tensor if names, shapes or dtypes differ, if there are no weights,
/// or if there are no two different steps.
Movement moved_weights(const std::vector<std::filesystem::path>& logs,
                       const frames::Selection& selection, const MovedOptions& options,
                       const frames::Progress& progress = {});

}  // namespace halfscope::analyzers::weights
