// SPDX-License-Identifier: Apache-2.0
// Collects, while a log is read, one number for each rank, role and step, by which ranks are
// compared. In long runs it is the largest of several steps, to bound the memory of a rank.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "analyzers/frames/source.hpp"
#include "analyzers/ranks/rank_comparison.hpp"
#include "analyzers/underflow/underflow.hpp"

namespace halfscope::analyzers::ranks {

/// Largest number of columns of a rank. Each column covers the same power of two of steps.
inline constexpr std::size_t kColumns = 256;

class RankCollector {
 public:
  RankCollector(const underflow::Target& target, const frames::Selection& selection);

  /// Adds callbacks to `visit` that collect the next log.
  void watch(const std::string& log, frames::Visitor& visit);
  /// Returns the comparisons of all logs of several ranks. `judged`: the final target; if its
  /// format differs from the constructor's, underflow is dropped.
  std::vector<RankStudy> finish(const underflow::Target& judged);

 private:
  /// The values of one role of the rank that is being read.
  struct Reading {
    RankValues values;
    std::map<std::int64_t, float> steps;  ///< log2 of the largest magnitude
    std::set<std::int64_t> nonfinite;     ///< steps with infinities or NaN
    std::set<std::int64_t> overflowed;  ///< `nonfinite` steps that FP16 at a loss scale may explain
    std::unordered_set<std::string> names;
  };
  struct Rows {
    std::int64_t stride = 1;
    std::vector<RankRow> rows;

    void add(const Reading& reading, std::uint64_t rank);
  };
  struct LogRows {
    std::string log;
    std::uint64_t ranks = 0;
    std::vector<log::Role> sharded;
    std::map<log::Role, Rows> roles;
  };

  void add(const frames::Frame& frame);
  void add(const log::StepScalars& scalars);
  /// `overflow`: true if an infinity may be an FP16 overflow at a loss scale.
  void see(log::Role role, std::int64_t step, double magnitude, bool overflow);
  void end_rank(std::uint64_t rank);

  underflow::Target target_;
  double loss_scale_;
  bool at_run_scale_, all_tensors_;
  bool scaled_ = false;  ///< the log's gradients contain the loss scale
  std::map<log::Role, Reading> reading_;
  std::vector<LogRows> logs_;
};

}  // namespace halfscope::analyzers::ranks
