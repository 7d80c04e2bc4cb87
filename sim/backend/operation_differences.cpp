// SPDX-License-Identifier: Apache-2.0
#include "sim/backend/operation_differences.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <nlohmann/json.hpp>

#include "halfscope/array/array.hpp"
#include "halfscope/log/output_file.hpp"

namespace halfscope::sim::backend {
namespace {

/// Maps a value to an integer in value order: neighbours differ by 1, and both zeros are 0.
std::int64_t place(Dtype dtype, float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  std::int64_t magnitude = bits & 0x7FFFFFFFU;
  if (dtype != Dtype::f32) {
    std::uint16_t word = 0;
    convert(format_of(dtype), std::span(&value, 1), std::span(&word, 1));
    magnitude = word & 0x7FFF;
  }
  return (bits >> 31) != 0 ? -magnitude : magnitude;
}

bool same(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b) ||
         (std::isnan(a) && std::isnan(b));
}

void count_class(Dtype dtype, float value, std::size_t which, OperationDifference& to) {
  const double least_normal = std::ldexp(1.0, format_of(dtype).emin());
  if (value == 0) {
    ++to.zero[which];
  } else if (!std::isfinite(value)) {
    ++to.not_finite[which];
  } else if (std::abs(double{value}) < least_normal) {
    ++to.subnormal[which];
  }
}

nlohmann::ordered_json pair_of(const std::uint64_t (&both)[2]) {
  return {{"run", both[0]}, {"emulated", both[1]}};
}

nlohmann::ordered_json json_of(const std::string& name, const OperationDifference& d) {
  return {{"operation", name},
          {"calls", d.calls},
          {"elements", d.elements},
          {"identical", d.identical},
          {"within_one_ulp", d.within_one_ulp},
          {"largest_ulps", d.largest_ulps},
          {"not_finite_in_one", d.not_finite_in_one},
          {"largest_relative_error", d.largest_relative_error},
          {"zero", pair_of(d.zero)},
          {"subnormal", pair_of(d.subnormal)},
          {"not_finite", pair_of(d.not_finite)}};
}

}  // namespace

void OperationDifferences::add(const std::string& operation, Dtype dtype,
                               std::span<const float> run, std::span<const float> emulated) {
  OperationDifference& d = all_[operation];
  ++d.calls;
  d.elements += run.size();
  double error = 0, size = 0;
  for (std::size_t i = 0; i < run.size(); ++i) {
    count_class(dtype, run[i], 0, d);
    count_class(dtype, emulated[i], 1, d);
    if (same(run[i], emulated[i])) {
      ++d.identical;
      ++d.within_one_ulp;
    } else if (!std::isfinite(run[i]) || !std::isfinite(emulated[i])) {
      ++d.not_finite_in_one;
      continue;
    } else {
      const auto ulps =
          static_cast<std::uint64_t>(std::abs(place(dtype, run[i]) - place(dtype, emulated[i])));
      d.within_one_ulp += ulps <= 1 ? 1 : 0;
      d.largest_ulps = std::max(d.largest_ulps, ulps);
    }
    if (!std::isfinite(emulated[i])) continue;
    error += std::pow(double{run[i]} - double{emulated[i]}, 2);
    size += std::pow(double{emulated[i]}, 2);
  }
  if (error > 0) {
    // If the emulation is all zeros, the relative error is infinite; 1 is recorded instead.
    const double relative = size > 0 ? std::sqrt(error / size) : 1;
    d.largest_relative_error = std::max(d.largest_relative_error, relative);
  }
}

void write_operations(const std::filesystem::path& run, const OperationDifferences& differences,
                      std::int64_t first_step, std::int64_t last_step) {
  nlohmann::ordered_json told = {{"schema", "halfscope.operations/1"},
                                 {"first_step", first_step},
                                 {"last_step", last_step},
                                 {"operations", nlohmann::ordered_json::array()}};
  for (const auto& [name, difference] : differences.all()) {
    told["operations"].push_back(json_of(name, difference));
  }
  log::OutputFile file(run / kOperationsFile);
  file.write(told.dump(1));
  file.write("\n");
  file.commit();
}

}  // namespace halfscope::sim::backend
