// SPDX-License-Identifier: Apache-2.0
// RUN/operations.json of `halfscope simulate --check-operations`: how much every operation of a run
// differs from its emulation on the same inputs. docs/schema/operations.schema.json.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "halfscope/table/count/count.hpp"

namespace halfscope::analyzers::compare {

/// Number of results, in the run and in its emulation.
struct RunAndEmulation {
  std::uint64_t run = 0, emulated = 0;
};

/// One result of one operation at one combination of shapes, summed over all calls.
struct Operation {
  std::string name;          ///< "relu_forward of 8x120", without the format
  Dtype dtype = Dtype::f32;  ///< dtype of the results
  std::uint64_t calls = 0, elements = 0;
  std::uint64_t identical = 0;          ///< same bits, or NaN in both
  std::uint64_t within_one_ulp = 0;     ///< includes identical ones
  std::uint64_t largest_ulps = 0;       ///< over results finite in both; counted in encodings
  std::uint64_t not_finite_in_one = 0;  ///< infinite or NaN in one, and different in the other
  double largest_relative_error = 0;    ///< largest ||run - emulated|| / ||emulated|| of a call
  RunAndEmulation zero, subnormal, not_finite;

  std::uint64_t different() const { return elements - identical; }
  std::uint64_t beyond_one_ulp() const { return elements - within_one_ulp - not_finite_in_one; }
  /// Returns true if the results differ by more than one rounding: a result is not finite in only
  /// one of them, or results are several ulps apart and a call's relative error exceeds spacing(),
  /// which normal results that are all neighbours cannot do. Always false for binary32: its results
  /// contain the rounding of the whole sum, which depends on the order of addition.
  bool beyond_rounding() const;
};

/// Totals over all operations with results in one format.
struct OperationSums {
  Dtype dtype = Dtype::f32;
  std::uint64_t operations = 0, identical_operations = 0;
  std::uint64_t elements = 0, identical = 0, within_one_ulp = 0, not_finite_in_one = 0;
  std::uint64_t elements_of_different = 0;  ///< elements of operations that are not fully identical
  std::uint64_t beyond_rounding = 0;        ///< number of operations with beyond_rounding()

  /// Returns 2^(1 - p), the largest relative difference of neighbouring normal values.
  double spacing() const;
};

struct Operations {
  std::int64_t first_step = 0, last_step = 0;
  std::vector<OperationSums> formats;  ///< narrowest first
  /// Ordered by format as above, then worst first: share of results not finite in only one, largest
  /// relative error, share of different results. Ulps do not decide the order: if a sum cancels to
  /// nearly zero, many ulps are a negligible difference.
  std::vector<Operation> all;

  /// Returns the worst operation of a format; `all` must have one.
  const Operation& worst(Dtype dtype) const;
};

/// Returns count / of; 0 if `of` is 0.
double share(std::uint64_t count, std::uint64_t of);

inline constexpr const char* kOperationsFile = "operations.json";  ///< file name in a run's folder

/// Returns the file's contents; empty if `run` has no such file. Throws log::BadInput.
std::optional<Operations> read_operations(const std::filesystem::path& run);

}  // namespace halfscope::analyzers::compare
