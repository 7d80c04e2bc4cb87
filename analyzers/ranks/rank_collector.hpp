// SPDX-License-Identifier: Apache-2.0
// Collects what ranks are compared by, as a log is read: of each rank, role and step one number.
// Of long runs that is the largest of several steps, so that memory grows with the ranks alone.
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

/// Most columns of a rank; a power of two of steps is one column.
inline constexpr std::size_t kColumns = 256;

class RankCollector {
 public:
  RankCollector(const underflow::Target& target, const frames::Selection& selection);

  /// Sees the next log too.
  void watch(const std::string& log, frames::Visitor& visit);
  /// Of the logs of several ranks. judged: what is asked about in the end; underflow in another
  /// format is dropped.
  std::vector<RankStudy> finish(const underflow::Target& judged);

 private:
  /// The values of one role of the rank that is read.
  struct Reading {
    RankValues values;
    std::map<std::int64_t, float> steps;  ///< the log2 of the largest magnitude
    std::set<std::int64_t> nonfinite;     ///< steps with infinities or NaN
    std::set<std::int64_t> overflowed;    ///< of these, where FP16 at a loss scale may be why
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
  /// overflow: an infinity may be one of FP16, at a loss scale.
  void see(log::Role role, std::int64_t step, double magnitude, bool overflow);
  void end_rank(std::uint64_t rank);

  underflow::Target target_;
  double loss_scale_;
  bool at_run_scale_, all_tensors_;
  bool scaled_ = false;  ///< the log's gradients carry the loss scale
  std::map<log::Role, Reading> reading_;
  std::vector<LogRows> logs_;
};

}  // namespace halfscope::analyzers::ranks
