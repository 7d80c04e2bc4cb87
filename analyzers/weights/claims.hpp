// SPDX-License-Identifier: Apache-2.0
// FP32 tensors that hold only numbers of a narrower format: weights, master weights, and optimizer
// state. Rules: docs/numerics/counting.md, "FP32 tensors that hold fewer bits".
#pragma once

#include <array>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "analyzers/frames/whole_tensors.hpp"
#include "halfscope/table/count/narrow_values.hpp"

namespace halfscope::analyzers::weights {

/// Least number of bits that are 0 in the distinct magnitudes of a tensor because they are numbers
/// of a narrower format. Bits below the magnitudes' common power of two do not count.
inline constexpr int kLeastBits = 256;

/// Dtypes of kNarrowFormats.
inline constexpr std::array kNarrowDtypes = {Dtype::f8_e4m3, Dtype::bf16, Dtype::f16};

/// The tensors of one kind that hold only numbers of one format.
struct NarrowTensors {
  Dtype format = Dtype::bf16;
  bool is_fault = false;           ///< no healthy run has such values: they were rounded
  std::vector<std::string> names;  ///< each once, sorted
  std::int64_t first_step = 0, last_step = 0;
  std::uint64_t values = 0, zero = 0;  ///< all values at each tensor's first such step; zeros
};

/// The FP32 tensors of one kind in one log.
struct Claim {
  std::string log;
  std::string kind;  ///< "weight", "master_weight", "exp_avg"
  log::Role role = log::Role::weight;
  std::uint64_t tensors = 0;          ///< number of tensors that are not constant at some step
  std::uint64_t steps = 0;            ///< sampled steps with such tensors
  NarrowCounts counts;                ///< over all steps
  std::vector<NarrowTensors> narrow;  ///< faults first
};

/// Returns true if the nonzero magnitudes of a binary32 tensor, which must all be numbers of the
/// format, are evidence enough that they were rounded to it.
bool is_evidence(const TensorView& tensor, const Format& format);

/// Collects claims while whole steps are read: log after log, step after step.
class ClaimsPass {
 public:
  /// Called with each tensor that the pass loads.
  using TensorCallback = std::function<void(const log::NamedTensor&)>;

  explicit ClaimsPass(const frames::Selection& selection) : selection_(selection) {}
  void begin(const std::string& log) { log_ = log; }
  /// Takes a tensor of the step that is already loaded.
  void take(const frames::WholeStep& step, const log::NamedTensor& tensor);
  /// Takes the step's remaining tensors, one at a time, and ends the step.
  void take(const frames::WholeStep& step, const TensorCallback& beside = {});
  /// Ends the log that begin() started.
  void finish_log();
  std::vector<Claim> finish() && { return std::move(claims_); }

 private:
  /// One tensor at one step.
  struct Snapshot {
    std::string name, kind;
    log::Role role = log::Role::weight;
    NarrowCounts counts;
    std::optional<std::size_t> narrow = {};  ///< index of the format; empty if there is none
    bool is_few = false;                     ///< too few distinct values for is_evidence()
    std::uint64_t fingerprint = 0;           ///< fingerprint of the bits, if `narrow`
    /// The values are one multiple of the gradient's; empty if unknown or of no interest.
    std::optional<bool> is_gradient = {};

    bool holds(std::size_t format) const { return counts.exact[format] == counts.finite_nonzero; }
  };
  struct Kind {
    Claim claim;
    std::set<std::string> names;
    std::set<std::int64_t> steps;
  };
  /// One tensor of one rank over the steps of the log.
  struct Track {
    std::optional<Snapshot> last;
    std::optional<NarrowTensors> found;
  };

  bool is_wanted(const frames::WholeStep& step, const std::string& name) const;
  static bool is_fault(const frames::WholeStep& step, const Snapshot& now,
                       const std::optional<Snapshot>& before);
  void add(const frames::WholeStep& step, Snapshot now);

  const frames::Selection& selection_;
  std::string log_;
  std::set<std::string> taken_;  ///< tensors of the current step
  std::map<std::string, Kind> kinds_;
  std::map<std::pair<std::string, int>, Track> tracks_;  ///< by name and rank
  std::vector<Claim> claims_;
};

/// Returns the claims of a run log's sampled steps, or of checkpoints in the given order, as steps
/// of one log. `steps`: the numbers of the checkpoints, ascending; empty: 0, 1, ... Throws
/// log::BadInput.
std::vector<Claim> claims_in(const std::vector<std::filesystem::path>& logs,
                             const frames::Selection& selection,
                             const frames::Progress& progress = {},
                             const std::vector<std::int64_t>& steps = {});

}  // namespace halfscope::analyzers::weights
