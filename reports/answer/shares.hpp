// SPDX-License-Identifier: Apache-2.0
// What is said of counts and magnitudes of which only bounds are known.
#pragma once

#include <string>

#include "analyzers/underflow/underflow.hpp"

namespace halfscope::reports::answer {

/// The share of a tensor's finite nonzero values that are in one class. `of`: how many there are.
/// Values that may be zero or flushed are in both bounds: more of them flushed are more values.
/// 0 where there are none.
Bounds class_share(const Classes& classes, Interval Classes::*part, const Interval& of);

/// The same in words: "3.1 % to 4.7 %"; "no values" where there are none.
std::string class_share_text(const Classes& classes, Interval Classes::*part, const Interval& of);

/// The largest magnitude of a tensor: "0.0311 (2^-5.0)", "0.0311 to 0.0342", "none".
std::string largest_text(const analyzers::underflow::TensorFindings& tensor);

/// NaN and infinities together. Of values outside of a log's buckets each may be one or neither.
Interval nonfinite_values(const analyzers::underflow::TensorFindings& tensor);

/// The share that becomes zero at the analysis' loss scale.
Bounds flushed_share(const analyzers::underflow::Counts& counts);

}  // namespace halfscope::reports::answer
