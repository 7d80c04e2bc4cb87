// SPDX-License-Identifier: Apache-2.0
// RUN/operations.json of `halfscope simulate --check-operations`: how far every operation of a run
// lies from its emulation on the same inputs. docs/schema/operations.schema.json.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "halfscope/table/count/count.hpp"

namespace halfscope::analyzers::compare {

/// Results of the run and of its emulation.
struct RunAndEmulation {
  std::uint64_t run = 0, emulated = 0;
};

/// One result of one operation, at one combination of shapes; sums over all calls.
struct Operation {
  std::string name;          ///< "relu_forward of 8x120", without the format
  Dtype dtype = Dtype::f32;  ///< of the results
  std::uint64_t calls = 0, elements = 0;
  std::uint64_t identical = 0;          ///< the same bits; NaN with NaN
  std::uint64_t within_one_ulp = 0;     ///< identical ones included
  std::uint64_t largest_ulps = 0;       ///< of those finite in both; steps between encodings
  std::uint64_t not_finite_in_one = 0;  ///< infinite or NaN in one, and not the same in the other
  double largest_relative_error = 0;    ///< of a call: |run - emulated| / |emulated|, Euclidean
  RunAndEmulation zero, subnormal, not_finite;

  std::uint64_t different() const { return elements - identical; }
  std::uint64_t beyond_one_ulp() const { return elements - within_one_ulp - not_finite_in_one; }
  /// Whether more than a last rounding apart: a result is not finite in one alone, or results are
  /// several ulps apart and some call's relative error exceeds spacing(), which normal results that
  /// are all neighbours cannot reach. Only 16-bit formats: binary32 results carry the rounding of
  /// the whole sum, which depends on its order and may be larger.
  bool beyond_rounding() const;
};

/// All operations with results in one format.
struct OperationSums {
  Dtype dtype = Dtype::f32;
  std::uint64_t operations = 0, identical_operations = 0;
  std::uint64_t elements = 0, identical = 0, within_one_ulp = 0, not_finite_in_one = 0;
  std::uint64_t elements_of_different = 0;  ///< of the operations that are not identical throughout
  std::uint64_t beyond_rounding = 0;        ///< operations

  /// 2^(1 - p): neighbouring normal values differ by at most that part of themselves.
  double spacing() const;
};

struct Operations {
  std::int64_t first_step = 0, last_step = 0;
  std::vector<OperationSums> formats;  ///< narrowest first
  /// By format as above; then worst first: share of results not finite in one alone, largest
  /// relative error, share of different results. Ulps do not order: where a sum cancels to nearly
  /// zero, many ulps are next to nothing.
  std::vector<Operation> all;

  /// The first of a format in `all`.
  const Operation& worst(Dtype dtype) const;
};

/// count / of; 0 where `of` is 0.
double share(std::uint64_t count, std::uint64_t of);

inline constexpr const char* kOperationsFile = "operations.json";  ///< in a run's folder

/// Empty where the run is no folder or has no such file. Throws log::BadInput.
std::optional<Operations> read_operations(const std::filesystem::path& run);

}  // namespace halfscope::analyzers::compare
