// SPDX-License-Identifier: Apache-2.0
// How far two backends' results of the same operation on the same inputs lie apart.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "sim/backend/backend.hpp"

namespace halfscope::sim::backend {

/// One result of one operation, at one combination of shapes; sums over all calls.
struct OperationDifference {
  std::uint64_t calls = 0;
  std::uint64_t elements = 0, identical = 0;  ///< the same bits, NaN being NaN
  std::uint64_t within_one_ulp = 0;           ///< identical ones included
  std::uint64_t largest_ulps = 0;             ///< of those finite in both; steps between encodings
  std::uint64_t not_finite_in_one = 0;  ///< infinite or NaN in one, and not the same in the other
  // Of results that narrow dtypes lose, in the run and in the emulation:
  std::uint64_t zero[2] = {0, 0}, subnormal[2] = {0, 0}, not_finite[2] = {0, 0};
  double largest_relative_error = 0;  ///< of a call: |run - emulation| / |emulation|, Euclidean
};

class OperationDifferences {
 public:
  /// `values` of the run's backend and of the emulation, both values of the dtype.
  void add(const std::string& operation, Dtype dtype, std::span<const float> run,
           std::span<const float> emulated);

  /// By "operation of shapes, dtype".
  const std::map<std::string, OperationDifference>& all() const { return all_; }
  bool empty() const { return all_.empty(); }

 private:
  std::map<std::string, OperationDifference> all_;
};

inline constexpr const char* kOperationsFile = "operations.json";  ///< in a run's folder

/// RUN/operations.json: docs/schema/operations.schema.json. Replaces the file as a whole. Throws
/// log::BadInput where it cannot.
void write_operations(const std::filesystem::path& run, const OperationDifferences& differences,
                      std::int64_t first_step, std::int64_t last_step);

}  // namespace halfscope::sim::backend
