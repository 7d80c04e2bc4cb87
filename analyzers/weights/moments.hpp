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
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "analyzers/frames/source.hpp"
#include "halfscope/number/format.hpp"
#include "halfscope/optimizer/settings.hpp"

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

/// The gradients of one block of elements.
struct BlockGradients {
  std::vector<std::vector<float>> gradients = {};  ///< by recorded step
  std::vector<float> first = {}, second = {};      ///< moments after the first of these; empty: 0
  optimizer::Settings adam = {};
  double steps_before = 0;  ///< steps that made `first` and `second`
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

/// Largest |mean| of the steps with which a moment may be stored so.
inline constexpr double kMomentLimit = 0.01;
enum class MomentFit : std::uint8_t { fits, unclear, fails };
/// Returns `fits` if |mean| is at most kMomentLimit, `fails` if it is above, each by two standard
/// errors; else `unclear`.
MomentFit fit_of(const MomentShift& shift);

/// `of_second`: the mean of v / v32 - 1 over elements with v32 > 0. The others: the mean of s / s32
/// - 1 over steps s of weights, weighted by |s32|, if only the first moment is stored so, only the
/// second, or both.
enum MomentMeasure : std::uint8_t { of_second, step_first, step_second, step_both };

/// Numbers of elements.
struct MomentCounts {
  std::uint64_t positive = 0;  ///< v > 0, and finite
  std::uint64_t stalled = 0;   ///< v is positive, and round(beta2 v) = v
  std::uint64_t vanished = 0;  ///< the stored v is 0, the stored m is not
};

/// Results of one way of storing, after the last step. Elements with infinite v count in no mean.
struct StoredMoments : MomentCounts {
  MomentStorage storage;
  std::array<MomentShift, 4> shifts = {};  ///< by MomentMeasure
};

struct MomentReplay {
  std::string log;
  std::uint64_t steps = 0, gradients = 0;  ///< replayed steps; recorded ones, which are repeated
  std::int64_t first_step = 0, last_step = 0;   ///< the first and last recorded one
  bool from_state = false;                      ///< starts from recorded moments, else from 0
  optimizer::Settings adam = {};                ///< the first tensor's
  std::uint64_t tensors = 0, all_elements = 0;  ///< weight gradients and their elements
  std::uint64_t elements = 0, nonfinite = 0;    ///< replayed; of these not finite in binary32
  std::vector<StoredMoments> stored = {};       ///< as kMomentStorages
  frames::Notes notes = {};
};

/// Replays the whole weight gradients of a run log's sampled steps, without skipped steps and ranks
/// after the first. Takes evenly spaced blocks, about 2^18 elements in all. Throws log::BadInput if
/// the log has no such gradients or no Adam.
MomentReplay replay_moments(const std::filesystem::path& path, const frames::Selection& selection,
                            std::uint64_t steps, const frames::Progress& progress = {});

}  // namespace halfscope::analyzers::weights
