// SPDX-License-Identifier: Apache-2.0
// How large the scores of an attention may be before they are divided by the root of the head's
// size: a score is the dot product of a row of q and a row of k, so at most the product of their
// norms (Cauchy and Schwarz).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "analyzers/frames/whole_tensors.hpp"

namespace halfscope::analyzers::overflow {

/// One attention whose q and k are recorded as whole tensors: the step with the largest bound.
struct AttentionScores {
  std::string log, query, key;  ///< tensors
  std::int64_t step = 0;
  double query_norm = 0, key_norm = 0;  ///< of the longest rows, no less than they are
  std::uint64_t width = 0;              ///< elements of a row of q: of all heads, or of one
  double at_most() const { return query_norm * key_norm; }
};

/// Takes whole tensors, as readers give them, log after log.
class ScoreBounds {
 public:
  void begin(const std::string& log) { log_ = log; }
  void take(const frames::WholeTensor& tensor);
  /// Of each attention with both; by log, then name.
  std::vector<AttentionScores> finish() &&;

 private:
  struct Longest {
    double norm = 0;
    std::uint64_t width = 0;
    std::string name;
  };
  /// One attention at one step.
  struct Pair {
    Longest query, key;
  };
  std::string log_;
  std::map<std::tuple<std::string, std::string, std::int64_t>, Pair> pairs_;
};

}  // namespace halfscope::analyzers::overflow
