// SPDX-License-Identifier: Apache-2.0
// Adam's moments stored in few bits: recorded gradients replayed with each way of storing.
//
// m = m + (1 - beta1) (g - m) and v = beta2 v + (1 - beta2) g^2 (Kingma and Ba 2015, algorithm 1)
// are computed in binary32 from the stored moments, without fused multiply-adds, and rounded when
// they are stored. The step m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + eps) uses them before
// that, as fused kernels and torchao do.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analyzers/frames/source.hpp"
#include "analyzers/readers/logs.hpp"
#include "halfscope/number/format.hpp"

namespace halfscope::analyzers::weights {

/// A way of storing moments: rounded to nearest, ties to even, or stochastically. `scaled`: with a
/// binary32 scale for each kMomentBlock consecutive elements, as in torchao's AdamWFp8.
struct MomentStorage {
  std::string_view name;
  Format format;
  bool stochastic = false, scaled = false;
};
inline constexpr std::size_t kMomentBlock = 256;
inline constexpr std::array kMomentStorages =
    std::to_array<MomentStorage>({{"bfloat16", kBfloat16},
                                  {"bfloat16", kBfloat16, true},
                                  {"binary16", kBinary16},
                                  {"binary16", kBinary16, true},
                                  {"e4m3-1x256", kFloat8E4M3, false, true},
                                  {"e4m3-1x256", kFloat8E4M3, true, true}});

/// The gradients of one block of elements, and Adam's settings.
struct BlockGradients {
  std::vector<std::vector<float>> gradients = {};  ///< by recorded step
  std::vector<float> first = {}, second = {};      ///< moments after the first of these; empty: 0
  double steps_before = 0;                         ///< steps that made `first` and `second`
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
};

/// The moments of a block after a replay. `computed_`: before they are stored.
struct BlockMoments {
  std::vector<float> first, second, computed_first, computed_second;
  float second_scale = 1;  ///< `second` is stored as multiples of this
};

/// Replays `steps` steps, at least 1; the gradients are repeated in order. storage: null for
/// moments that stay in binary32. Step t draws the random words of 2 (seed + t) and the next seed.
BlockMoments replay_block(const BlockGradients& block, const MomentStorage* storage,
                          std::uint64_t steps, std::uint64_t seed);

/// A mean relative difference from moments in binary32, with its standard error over blocks
/// (infinite if there is one block).
struct MomentShift {
  double mean = 0, error = 0;
};
enum class MomentFit : std::uint8_t { fits, unclear, fails };
/// Returns `fits` if |mean| is at most the limit, `fails` if it is above, each by two standard
/// errors; else `unclear`.
MomentFit fit_of(const MomentShift& shift, double limit);

/// `of_second`: the mean of v / v32 - 1 over elements with v32 > 0. The others: the mean of s / s32
/// - 1 over steps s of weights, weighted by |s32|, if only the first moment is stored so, only the
/// second, or both.
enum MomentMeasure : std::uint8_t { of_second, step_first, step_second, step_both };

/// Results of one way of storing, after the last step. Elements with infinite v count in no mean.
struct StoredMoments {
  MomentStorage storage;
  std::array<MomentShift, 4> shifts = {};  ///< by MomentMeasure
  std::uint64_t positive = 0;              ///< elements with v > 0
  std::uint64_t stalled =
      0;  ///< part of `positive` with round(beta2 v) = v to nearest; the scale stays
  std::uint64_t vanished = 0;  ///< elements whose stored v is 0 and whose stored m is not
};

struct MomentReplay {
  std::string log;
  std::uint64_t steps = 0, gradients = 0;  ///< replayed steps; recorded ones, which are repeated
  std::int64_t first_step = 0, last_step = 0;  ///< the first and last recorded one
  bool from_state = false;      ///< starts from the moments recorded at first_step, else from 0
  double beta1 = 0, beta2 = 0;  ///< Adam's, for the first tensor
  std::uint64_t tensors = 0, all_elements = 0;  ///< weight gradients and their elements
  std::uint64_t elements = 0, nonfinite = 0;    ///< replayed; of these not finite in binary32
  double limit = 0.01;  ///< largest |shift| of the step with which a moment may be stored so
  std::vector<StoredMoments> stored = {};  ///< as kMomentStorages
};

/// Replays the whole weight gradients of a run log's sampled steps, without skipped steps and ranks
/// after the first. Takes evenly spaced blocks of large tensors: at most 2^16 elements of each, and
/// about 2^18 of all. `phases`: called before each phase with its name, for its progress. Throws
/// log::BadInput if the log has no such gradients or no Adam.
MomentReplay replay_moments(
    const readers::Log& log, const frames::Selection& selection, std::uint64_t steps,
    frames::Notes& notes,
    const std::function<frames::Progress(const std::string& what)>& phases = {});

}  // namespace halfscope::analyzers::weights
