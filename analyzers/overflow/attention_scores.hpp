// SPDX-License-Identifier: Apache-2.0
// How large the scores of an attention may be before they are divided by the root of the head's
// size: a score is the dot product of a row of q and a row of k, so at most the product of their
// norms (Cauchy and Schwarz). docs/numerics/statistics.md, "Attention scores".
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "analyzers/frames/whole_counts.hpp"
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

/// Whether a tensor or layer may be a query or key, by its path.
bool is_query_or_key(std::string_view path);

/// Visits the queries and keys of a step, by their names. beside: called with each while it is
/// loaded.
void for_each_query_and_key(const frames::WholeStep& step, const frames::Selection& selection,
                            const frames::WholeVisitor& visit,
                            const std::function<void(const log::NamedTensor&)>& beside);

/// Empty where the tensor is no query or key. channels_second: of that layout, too.
std::optional<frames::CountedRows> rows_of(const frames::WholeTensor& tensor, bool channels_second);

/// Takes queries and keys, as readers give them, log after log.
class ScoreBounds {
 public:
  void begin(const underflow::LogFindings& log);
  void take(const frames::WholeTensor& tensor);
  void take(const frames::CountedRows& rows);
  /// Of each attention with both; by log, then name.
  std::vector<AttentionScores> finish(Format target) &&;

 private:
  struct Longest : frames::CountedRows::Longest {
    std::string name;
  };
  /// One attention at one step.
  struct Pair {
    Longest query, key;
  };
  std::string log_;
  bool is_convolution(std::string_view name) const;

  std::set<std::string, std::less<>> convolutions_;  ///< modules of the log: channels come second
  std::map<std::tuple<std::string, std::string, std::int64_t>, Pair> pairs_;
};

}  // namespace halfscope::analyzers::overflow
