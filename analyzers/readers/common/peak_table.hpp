// SPDX-License-Identifier: Apache-2.0
// Largest magnitudes of tensors by step, from logs without counts.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analyzers/readers/common/printed_extremes.hpp"
#include "analyzers/readers/common/text_lines.hpp"
#include "analyzers/readers/common/timeline.hpp"

namespace halfscope::analyzers::readers::common {

/// The largest magnitude of each tensor and step, over all ranks and micro-steps.
class PeakTable {
 public:
  void add(const std::string& tensor, log::Role role, std::int64_t step, const Magnitudes& found);
  bool empty() const { return tensors_.empty(); }
  /// Returns true if a step is missing between two steps of a tensor.
  bool skips_steps() const;
  /// Passes everything on to the timeline: in the order of names or, if `as_added`, in the order in
  /// which tensors were first added.
  void report(Timeline& timeline, bool as_added) const;

 private:
  struct Tensor {
    log::Role role;
    std::map<std::int64_t, Magnitudes> steps;
  };
  std::map<std::string, Tensor> tensors_;
  std::vector<decltype(tensors_)::const_iterator> added_;  ///< in the order of first add()
};

/// A kind of log that records extremes of tensors.
struct PeakLog {
  PeakLog(const char* its_name) : name(its_name) {}  // NOLINT(google-explicit-constructor)

  std::string name;         ///< as users read it: "msprobe monitor tables"
  bool rounded = true;      ///< its numbers are rounded
  bool in_order = false;    ///< its tensors come in the order in which they are computed
  bool has_dtypes = false;  ///< it has the type in which each tensor was computed
};

/// Called for each file of such a log: reads it through `text` and adds its magnitudes to `peaks`.
using PeakReader =
    std::function<void(const std::filesystem::path& file, TextFiles& text, PeakTable& peaks)>;

/// Reads the files of such a log in order. Reports the tensors' magnitudes and the kind of log,
/// with its gaps, to the visitor.
void read_peaks(const PeakLog& kind, const log::OpenPath& log,
                const std::vector<std::filesystem::path>& files, const PeakReader& read,
                const TimelineSelection& selection, const frames::Visitor& visit,
                frames::Notes& notes, const frames::Progress& progress);

}  // namespace halfscope::analyzers::readers::common
