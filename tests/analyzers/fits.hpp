// SPDX-License-Identifier: Apache-2.0
// Logs of one tensor, and its fits.
#pragma once

#include <cmath>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "analyzers/formats/format_fit.hpp"
#include "analyzers/logs.hpp"
#include "analyzers/underflow/underflow.hpp"
#include "analyzers/whole_steps.hpp"

namespace halfscope::test {

/// Magnitudes spread like a gradient's: log-normal, so many binades around 2^mean.
inline Values gradients(std::size_t n, unsigned seed, double mean = -14, double deviation = 4) {
  std::mt19937 random(seed);
  std::normal_distribution<double> log2(mean, deviation);
  Values values;
  for (std::size_t i = 0; i < n; ++i) {
    const double sign = (random() & 1) != 0 ? 1.0 : -1.0;
    values.push_back(static_cast<float>(sign * std::exp2(log2(random))));
  }
  return values;
}

inline std::vector<double> widen(const Values& values) { return {values.begin(), values.end()}; }

/// A tensor file with one tensor of any shape and type.
template <class T>
std::filesystem::path write_one(const TempFolder& folder, const std::vector<T>& values,
                                std::vector<std::uint64_t> shape = {}) {
  if (shape.empty()) shape = {values.size()};
  const Dtype dtype = sizeof(T) == 8 ? Dtype::f64 : Dtype::f32;
  const auto* data = reinterpret_cast<const std::byte*>(values.data());
  const std::filesystem::path path = folder / "log.safetensors";
  log::write_safetensors(path, {{"weight_grad/w", shape, {dtype, data, values.size()}}});
  return path;
}

struct How {
  bool flush = false;  ///< by the result
  std::optional<double> recorded_scale = std::nullopt;
  analyzers::formats::FitOptions options = {};
};

inline analyzers::underflow::TensorFindings fitted(const std::filesystem::path& log,
                                                   const How& how = {}) {
  analyzers::frames::Selection selection;
  selection.recorded_scale = how.recorded_scale;
  const Subnormals rule = how.flush ? Subnormals::flush_result : Subnormals::keep;
  analyzers::underflow::Analysis a =
      analyzers::underflow::analyze({log}, {"binary16", kBinary16, rule}, selection);
  analyzers::add_whole_steps(a, selection, {.formats = true}, how.options);
  return std::move(a.logs[0].tensors.at(0));
}

inline const analyzers::underflow::FormatFit& fit_in(const analyzers::underflow::TensorFindings& t,
                                                     std::string_view format,
                                                     bool saturating = false) {
  for (const analyzers::underflow::FormatFit& fit : t.whole->fits) {
    if (fit.format == format && fit.saturating == saturating) return fit;
  }
  throw std::out_of_range(std::string(format));
}

}  // namespace halfscope::test
