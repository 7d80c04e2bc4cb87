// SPDX-License-Identifier: Apache-2.0
// Bounds of the scores of an attention before they are divided by the root of the head's size. A
// score is the dot product of a row of q and a row of k, so it is at most the product of their
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

/// Rows with more elements than this are assumed to have several heads of at most this size. Then
/// the norm is the largest one of this many neighbouring elements.
inline constexpr std::uint64_t kLargestHead = 256;

/// One attention whose q and k are recorded as whole tensors, at the step with the largest bound.
struct AttentionScores {
  std::string log, query, key;  ///< names of the tensors of q and k
  std::int64_t step = 0;
  double query_norm = 0, key_norm = 0;  ///< upper bounds of the longest rows
  std::uint64_t width = 0;              ///< elements of a row of q: of all heads, or of one
  bool by_head = false;                 ///< norms are those of kLargestHead elements
  double at_most() const;               ///< product of the norms, rounded up
  bool can_overflow = false;            ///< at_most() overflows in the target format
  /// If can_overflow: with at least this many elements per head, a factor 1 / sqrt(d) before the
  /// product keeps scores in the format.
  std::uint64_t enough_head = 0;
};

/// Returns true if, by its path, a tensor or layer may be a query or key.
bool is_query_or_key(std::string_view path);

/// Visits the queries and keys of a step. `beside` receives each of them while it is loaded.
void for_each_query_and_key(const frames::WholeStep& step, const frames::Selection& selection,
                            const frames::WholeVisitor& visit,
                            const std::function<void(const log::NamedTensor&)>& beside);

/// Returns the longest rows, with `channels_second` also of that layout; empty for other tensors.
std::optional<frames::CountedRows> rows_of(const frames::WholeTensor& tensor, bool channels_second);

/// Collects queries and keys as readers pass them, log after log.
class ScoreBounds {
 public:
  void begin(const underflow::LogFindings& log);
  void take(const frames::WholeTensor& tensor);
  void take(const frames::CountedRows& rows);
  /// Returns the attentions that have both, by log, then name.
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

  std::set<std::string, std::less<>> convolutions_;  ///< convolutions of the log: channels second
  std::map<std::tuple<std::string, std::string, std::int64_t>, Pair> pairs_;
};

}  // namespace halfscope::analyzers::overflow
