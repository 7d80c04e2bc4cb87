// SPDX-License-Identifier: Apache-2.0
#include "analyzers/underflow/share.hpp"

namespace halfscope::analyzers::underflow {

// Each value that may be flushed counts in both numbers or in neither, and (c + x) / (n + x) grows
// with x.
Share::Quotient Share::least() const {
  return kept ? Quotient{count.low, count.low + kept->high} : Quotient{count.low, of.low};
}

Share::Quotient Share::most() const {
  return kept ? Quotient{count.high, count.high + kept->low} : Quotient{count.high, of.high};
}

}  // namespace halfscope::analyzers::underflow
