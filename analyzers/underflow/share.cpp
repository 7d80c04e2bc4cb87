// SPDX-License-Identifier: Apache-2.0
#include "analyzers/underflow/share.hpp"

namespace halfscope::analyzers::underflow {
namespace {

double share_of(std::uint64_t part, std::uint64_t rest) {
  return part == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(part + rest);
}

}  // namespace

// Each value that is perhaps flushed counts in both numbers or in neither, and (c + x) / (n + x)
// grows with x.
double Share::low() const {
  if (kept) return share_of(count.low, kept->high);
  return of.low == 0 ? 0.0 : static_cast<double>(count.low) / static_cast<double>(of.low);
}

double Share::high() const {
  if (kept) return share_of(count.high, kept->low);
  return of.high == 0 ? 0.0 : static_cast<double>(count.high) / static_cast<double>(of.high);
}

}  // namespace halfscope::analyzers::underflow
