// SPDX-License-Identifier: Apache-2.0
// Shares and magnitudes that may be known only between bounds.
#pragma once

#include <string>

#include "analyzers/underflow/underflow.hpp"

namespace halfscope::reports::answer {

/// Returns the bounds of the share that `part` has of a tensor's finite nonzero values; 0 if there
/// are none. `of`: the number of these values. A value that is either zero or flushed counts in
/// `of` only if it is flushed; the bounds allow for that.
Bounds class_share(const Classes& classes, Interval Classes::*part, const Interval& of);

/// Returns the same share as text: "3.1 % to 4.7 %"; "no values" if there are none.
std::string class_share_text(const Classes& classes, Interval Classes::*part, const Interval& of);

/// Returns a tensor's largest magnitude: "0.0311 (2^-5.0)", "0.0311 to 0.0342 (2^-4.9)", "none".
std::string largest_text(const analyzers::underflow::TensorFindings& tensor);

/// Returns the number of NaN and infinities. Values beyond the last bucket are possible ones.
Interval nonfinite_values(const analyzers::underflow::TensorFindings& tensor);

/// Returns the share that becomes zero at the analysis' loss scale.
Bounds flushed_share(const analyzers::underflow::Counts& counts);

}  // namespace halfscope::reports::answer
