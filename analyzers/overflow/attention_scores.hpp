// SPDX-License-Identifier: Apache-2.0
// How large the scores of an attention may be before they are divided by the root of the head's
// size: a score is the dot product of a row of q and a row of k, so at most the product of their
// norms (Cauchy and Schwarz). docs/numerics/statistics.md, "Attention scores".
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "analyzers/frames/whole_tensors.hpp"

namespace halfscope::analyzers::underflow {
struct LogFindings;
}

namespace halfscope::analyzers::overflow {

/// A row of more elements than this is taken to hold several heads of at most so many: the norm is
/// that of its longest run of them.
inline constexpr std::uint64_t kLargestHead = 256;

/// One attention whose q and k are recorded as whole tensors: the step with the largest bound.
struct AttentionScores {
  std::string log, query, key;  ///< tensors
  std::int64_t step = 0;
  double query_norm = 0, key_norm = 0;  ///< of the longest, no less than they are
  std::uint64_t width = 0;              ///< elements of a row of q: of all heads, or of one
  bool by_head = false;                 ///< norms are of kLargestHead elements
  double at_most() const;               ///< their product, rounded up
  bool can_overflow = false;            ///< at_most() is beyond the target format
  /// Where it can: with so many elements in a head, or more, 1 / sqrt(d) before the product keeps
  /// scores in the format.
  std::uint64_t enough_head = 0;
};

/// Takes whole tensors, as readers give them, log after log.
class ScoreBounds {
 public:
  /// Whether the tensor may be a q or a k, by its name.
  static bool wants(std::string_view name);

  void begin(const underflow::LogFindings& log);
  void take(const frames::WholeTensor& tensor);
  /// Of each attention with both; by log, then name.
  std::vector<AttentionScores> finish(Format target) &&;

 private:
  struct Longest {
    double norm = 0;
    std::uint64_t width = 0;
    bool whole = true;
    std::string name;
  };
  /// One attention at one step.
  struct Pair {
    Longest query, key;
  };
  std::string log_;
  std::set<std::string, std::less<>> convolutions_;  ///< modules of the log: channels come second
  std::map<std::tuple<std::string, std::string, std::int64_t>, Pair> pairs_;
};

}  // namespace halfscope::analyzers::overflow
