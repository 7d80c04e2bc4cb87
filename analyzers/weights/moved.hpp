// SPDX-License-Identifier: Apache-2.0
// Weights whose 16- or 8-bit copies change between checkpoints or sampled steps, and weights whose
// copies never change.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analyzers/frames/whole_tensors.hpp"
#include "analyzers/readers/logs.hpp"

namespace halfscope::analyzers::weights {

/// Origin of the update of a weight that never moved.
enum class RateSource : std::uint8_t {
  values,  ///< last value minus first value of the weight itself, in 32 bits or more
  master,  ///< last value minus first value of its master weight
  update   ///< the update recorded at the last step
};
std::string_view name_of(RateSource source);

/// Weights that never moved, and when they would. Let p be the value at the last step, u the update
/// a step, and d the distance from p to the boundary at which the copy of p becomes another number,
/// in the direction of u. A weight in 32 bits or more, or with a master, moves after about d / |u|
/// steps. A weight in 16 or 8 bits without a master moves in one step if round(p + u) differs from
/// p, else never. docs/weights.md has the rules for ties and infinities.
struct Stall {
  RateSource source = RateSource::values;
  std::uint64_t zero = 0;  ///< u is 0: never moves
  std::uint64_t lost = 0;  ///< u is not 0, but is lost each step or leads to no boundary
  /// Number of weights by floor(log2(k)), where k is the number of steps until the copy moves.
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
  std::string kind;            ///< kind of layer: "LayerNorm.weight", or "layers.*.norm.weight"
  Dtype dtype = Dtype::f32;    ///< dtype of the weights
  Dtype copies = Dtype::bf16;  ///< format of the copies that are compared
  std::uint64_t shards = 0;    ///< number of parts: over ranks, or in files of one step
};

/// Sums over the tensors of one kind of layer.
struct KindMovement : MovedCounts {
  std::string kind;
  std::uint64_t tensors = 0;
};

/// The weights of one run log, or of two checkpoints.
struct Movement {
  std::string log;                           ///< name of the log; of two checkpoints the first
  std::string other;                         ///< name of the second checkpoint; empty for a run log
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

/// Compares the weights of steps that are visited elsewhere. Keeps the places of tensors, and maps
/// and reads them in finish(); holds one bit for each weight of a tensor, of all for a set.
class MovedPass {
 public:
  explicit MovedPass(const frames::Selection& selection);
  ~MovedPass();
  MovedPass(MovedPass&&) noexcept;

  /// Begins a log, or the second checkpoint.
  void begin(const std::string& name, const readers::Log& log);
  void take(const frames::WholeStep& step);
  /// Number of steps since the last begin().
  std::size_t steps() const;
  /// Returns the results, and forgets all steps; without weights or a second step, nothing. Throws
  /// log::BadInput that names a tensor which is not in all steps in one shape and dtype.
  std::optional<Movement> finish(const MovedOptions& options, const frames::Progress& progress);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Compares two checkpoints (files or folders), or the sampled steps of one run log. Throws
/// log::BadInput as MovedPass::finish(), and if there are no weights or no two different steps.
Movement moved_weights(const std::vector<std::filesystem::path>& logs,
                       const frames::Selection& selection, const MovedOptions& options,
                       const frames::Progress& progress = {});

}  // namespace halfscope::analyzers::weights
