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
  /// Tells the timeline everything, names first: in the order of names, or, `as_added`, in that in
  /// which tensors were added first.
  void tell(Timeline& timeline, bool as_added) const;

 private:
  struct Tensor {
    log::Role role;
    std::map<std::int64_t, Magnitudes> steps;
  };
  std::map<std::string, Tensor> tensors_;
  std::vector<decltype(tensors_)::const_iterator> added_;  // each once, in order
};

/// A kind of log of extremes, and what such a one leaves open.
struct PeakLog {
  PeakLog(const char* its_name) : name(its_name) {}  // NOLINT(google-explicit-constructor)

  std::string name;         ///< "msprobe monitor tables"
  bool rounded = true;      ///< its numbers are
  bool in_order = false;    ///< its tensors come in the order in which they are computed
  bool has_dtypes = false;  ///< it says what each tensor was computed in
};

/// Reads one file of a log of printed extremes, of which `before` bytes of `in_all` are read.
using PeakReader = std::function<void(const log::OpenPath& file, std::uint64_t before,
                                      std::uint64_t in_all, PeakTable& peaks)>;

/// Reads the files of such a log and tells the visitor, what its kind leaves open too.
void read_peaks(const PeakLog& kind, const log::OpenPath& log,
                const std::vector<std::filesystem::path>& files, const PeakReader& read,
                const TimelineSelection& selection, const frames::Visitor& visit,
                frames::Notes& notes);

}  // namespace halfscope::analyzers::readers::common
