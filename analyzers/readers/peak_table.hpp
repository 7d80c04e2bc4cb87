// SPDX-License-Identifier: Apache-2.0
// Largest magnitudes of tensors by step, of logs that have no counts. Over ranks and micro-steps
// the largest holds.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "analyzers/readers/text_lines.hpp"
#include "analyzers/readers/timeline.hpp"

namespace halfscope::readers {

/// What printed extremes say of a tensor's magnitudes.
struct Magnitudes {
  Bounds largest;                          ///< infinities and NaN are themselves
  std::optional<double> smallest_nonzero;  ///< no nonzero value is smaller
};

/// Of the least and the largest value of a tensor.
Magnitudes magnitudes_between(const Bounds& min, const Bounds& max);

class PeakTable {
 public:
  void add(const std::string& tensor, log::Role role, std::int64_t step, const Magnitudes& found);
  bool empty() const { return tensors_.empty(); }
  /// Whether some tensor has two steps, not one after the other, and none between them.
  bool skips_steps() const;
  /// Tells the timeline everything, names first.
  void tell(Timeline& timeline) const;

 private:
  struct Tensor {
    log::Role role;
    std::map<std::int64_t, Magnitudes> steps;
  };
  std::map<std::string, Tensor> tensors_;
};

/// Says what a log of printed extremes leaves open.
void tell_kind(const std::string& name, const PeakTable& peaks,
               const analyzers::Selection& selection, const analyzers::Visitor& visit);

}  // namespace halfscope::readers
