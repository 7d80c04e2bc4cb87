// SPDX-License-Identifier: Apache-2.0
// Largest magnitudes of tensors by step, of logs that have no counts. Over ranks and micro-steps
// the largest holds.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analyzers/readers/common/printed_extremes.hpp"
#include "analyzers/readers/common/timeline.hpp"

namespace halfscope::analyzers::readers::common {

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

/// Reads one file of a log of printed extremes, of which `before` bytes of `in_all` are read.
using PeakReader = std::function<void(const log::OpenPath& file, std::uint64_t before,
                                      std::uint64_t in_all, PeakTable& peaks)>;

/// Reads the files of such a log and tells the visitor, what the kind of that `name` leaves open
/// too.
void read_peaks(const std::string& name, const log::OpenPath& log,
                const std::vector<std::filesystem::path>& files, const PeakReader& read,
                const TimelineSelection& selection, const frames::Visitor& visit,
                frames::Notes& notes);

}  // namespace halfscope::analyzers::readers::common
