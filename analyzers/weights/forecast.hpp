// SPDX-License-Identifier: Apache-2.0
// Forecasts which 16- or 8-bit copies of the weights a step changes, from the optimizer's state.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analyzers/frames/whole_tensors.hpp"
#include "analyzers/readers/logs.hpp"

namespace halfscope::analyzers::weights {

/// Numbers of weights, summed over steps.
struct ForecastSet {
  std::uint64_t elements = 0;
  std::uint64_t moves = 0;      ///< forecast to move, whatever the undecided bits are
  std::uint64_t undecided = 0;  ///< the row of the optimizer does not decide it
  /// Sum of min(1, |change| / ulp of the copy): the estimate from the update alone. Approximate.
  double expected = 0;

  ForecastSet& operator+=(const ForecastSet& other);
};

struct ForecastCounts : ForecastSet {
  ForecastSet judged;        ///< weights whose next value is in the log
  std::uint64_t moved = 0;   ///< `judged` weights that moved
  std::uint64_t found = 0;   ///< moved as forecast
  std::uint64_t missed = 0;  ///< moved, and forecast to stay

  using ForecastSet::operator+=;
  ForecastCounts& operator+=(const ForecastCounts& other);
};

struct TensorForecast : ForecastCounts {
  std::string name;            ///< the weight that the optimizer keeps, with its role
  std::string row;             ///< name of the optimizer's implementation: optimizer::Variant
  Dtype copies = Dtype::bf16;  ///< format of the copies
};

/// The forecasts of one run log.
struct Forecast {
  std::string log;
  std::vector<std::int64_t> steps = {};
  std::vector<TensorForecast> tensors = {};  ///< by name
  ForecastCounts all = {};
  frames::Notes notes = {};
};

/// Forecasts the steps of a run log from the weights before and the moments after each sampled
/// step that was not skipped. `copies`: the format of the copies of weights in 32 bits; others keep
/// their own. Holds two bits for each weight. Throws log::BadInput if no weight has an optimizer
/// with its state.
Forecast forecast_weights(const std::filesystem::path& path, const frames::Selection& selection,
                          Dtype copies, const frames::Progress& progress = {});

}  // namespace halfscope::analyzers::weights
