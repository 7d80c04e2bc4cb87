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

/// Least evidence that the values of a tensor were rounded to a format. A binary32 number has
/// 24 - p bits that a format of precision p lacks, and each distinct magnitude counts these bits:
/// the chance that all of them are 0 is 2^-512 or less.
inline constexpr int kLeastBits = 512;
/// The same for values that lie on a grid, such as counts: bits of the distinct values, as
/// multiples of their greatest common power of two, beyond the p bits that the format has.
inline constexpr int kLeastGridBits = 32;

/// Dtypes of kNarrowFormats.
inline constexpr std::array kNarrowDtypes = {Dtype::f8_e4m3, Dtype::bf16, Dtype::f16};

/// Reason why a tensor holds only numbers of a narrower format.
enum class HeldAs : std::uint8_t {
  rounded,   ///< a fault: it was computed in binary32, or changed, so it was rounded afterwards
  became,    ///< a fault: it held other numbers at an earlier step
  loaded,    ///< weights that did not change since the first step at which they are seen
  gradient,  ///< first moments that are a copy of the gradient, which has such values
  undecided  ///< state that also a healthy optimizer may hold, as far as the log shows
};
std::string_view name_of(HeldAs held);
inline bool is_fault(HeldAs held) { return held == HeldAs::rounded || held == HeldAs::became; }

/// The tensors of one kind that hold only numbers of one format, for one reason.
struct NarrowTensors {
  Dtype format = Dtype::bf16;
  HeldAs held = HeldAs::rounded;
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

  bool has_fault() const;
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
    NarrowCounts counts;
    std::optional<std::size_t> narrow;    ///< index of the format; empty if there is none
    std::uint64_t fingerprint = 0;        ///< fingerprint of the bits, if `narrow`
    std::optional<bool> copies_gradient;  ///< empty if the gradient is unknown
  };
  struct Kind {
    Claim claim;
    std::set<std::string> names;
    std::int64_t last_step = 0;
  };
  /// One tensor of one rank over the steps of the log.
  struct Track {
    Kind* kind = nullptr;
    bool seen = false;
    std::array<bool, kNarrowFormats.size()> exact = {};  ///< at the last step
    std::uint64_t fingerprint = 0;
    std::optional<std::size_t> narrow;  ///< Snapshot::narrow at the last step
    std::optional<NarrowTensors> found;
  };

  bool is_wanted(const frames::WholeStep& step, const std::string& name) const;
  void end_step(const frames::WholeStep& step);
  std::optional<HeldAs> judge(const frames::WholeStep& step, const Snapshot& now,
                              const Track& before) const;
  HeldAs judge_first_moment(const frames::WholeStep& step, const Snapshot& now,
                            const Track& before) const;
  void add(const frames::WholeStep& step, const Snapshot& now);
  void add_narrow(const frames::WholeStep& step, const Snapshot& now, Track& track) const;

  const frames::Selection& selection_;
  std::string log_;
  std::set<std::string> taken_;  ///< tensors of the current step
  std::vector<Snapshot> step_;   ///< snapshots of the current step and rank
  std::map<std::string, Kind> kinds_;
  std::map<std::pair<std::string, int>, Track> tracks_;  ///< by name and rank
  /// Parameters of the current step whose second moments are narrow, each with the format's index.
  std::set<std::pair<std::string, std::size_t>> narrow_seconds_;
  std::vector<Claim> claims_;
};

/// Returns the claims of a run log's sampled steps, or of checkpoints in the given order, which
/// count as steps 0, 1, ... of one log. Throws log::BadInput.
std::vector<Claim> claims_in(const std::vector<std::filesystem::path>& logs,
                             const frames::Selection& selection,
                             const frames::Progress& progress = {});

}  // namespace halfscope::analyzers::weights
