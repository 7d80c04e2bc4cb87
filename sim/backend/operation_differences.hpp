// SPDX-License-Identifier: Apache-2.0
// Differences between two backends' results of the same operations on the same inputs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "sim/backend/backend.hpp"

namespace halfscope::sim::backend {

/// Differences of one result of one operation, for one combination of shapes; sums over calls.
struct OperationDifference {
  std::uint64_t calls = 0;
  std::uint64_t elements = 0, identical = 0;  ///< identical: the same bits, or both NaN
  std::uint64_t within_one_ulp = 0;           ///< includes identical results
  std::uint64_t largest_ulps = 0;             ///< in encoding steps, of values finite in both
  std::uint64_t not_finite_in_one = 0;  ///< infinity or NaN in one, another value in the other
  // Counts of results in the run [0] and in the emulation [1].
  std::uint64_t zero[2] = {0, 0}, subnormal[2] = {0, 0}, not_finite[2] = {0, 0};
  double largest_relative_error = 0;  ///< maximum of |run - emulation| / |emulation| (L2 norms)
};

class OperationDifferences {
 public:
  /// Adds the results of one call: `run` from the run's backend, `emulated` from the emulation. All
  /// values must be values of `dtype`.
  void add(const std::string& operation, Dtype dtype, std::span<const float> run,
           std::span<const float> emulated);

  /// Differences by "operation of shapes, dtype".
  const std::map<std::string, OperationDifference>& all() const { return all_; }
  bool empty() const { return all_.empty(); }

 private:
  std::map<std::string, OperationDifference> all_;
};

inline constexpr const char* kOperationsFile = "operations.json";  ///< in a run's folder

/// Writes RUN/operations.json (docs/schema/operations.schema.json) and replaces an existing file as
/// a whole. Throws log::BadInput if it cannot be written.
void write_operations(const std::filesystem::path& run, const OperationDifferences& differences,
                      std::int64_t first_step, std::int64_t last_step);

}  // namespace halfscope::sim::backend
