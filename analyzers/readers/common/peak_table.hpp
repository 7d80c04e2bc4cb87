// SPDX-License-Identifier: Apache-2.0
// Largest magnitudes of tensors by step, from logs that print extremes and norms instead of counts.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analyzers/readers/common/contradictions.hpp"
#include "analyzers/readers/common/text_lines.hpp"
#include "analyzers/readers/common/timeline.hpp"

namespace halfscope::analyzers::readers::common {

/// The bounds of a tensor's magnitudes.
struct Magnitudes {
  Bounds largest;                          ///< both bounds are inf or NaN if it is
  std::optional<double> smallest_nonzero;  ///< its lower bound; empty if unknown
};

/// Returns the larger of two magnitudes; NaN if one of them is NaN.
Bounds larger_magnitude(const Bounds& a, const Bounds& b);

/// The numbers that a log has for one tensor. Numbers that it lacks are empty.
struct PrintedExtremes {
  std::optional<Bounds> min, max, amax;  ///< min and max are used only together
  std::optional<Bounds> norm;            ///< the Euclidean norm
  double norm_error = 0;                 ///< the relative error of its computation
};

/// Returns the number that was printed, in six digits.
std::string text_of(const Bounds& printed);
/// Returns all numbers: "min=1, max=2".
std::string text_of(const PrintedExtremes& printed);

/// Returns the magnitudes that follow from min, max and amax; the norm is only compared with them.
/// If they differ by more than rounding, adds the contradiction to `wrong` and returns bounds that
/// fit its Contradiction::outcome. Empty if there is neither amax nor a usable min and max.
std::optional<Magnitudes> magnitudes_of(const PrintedExtremes& printed,
                                        std::vector<const Contradiction*>& wrong);

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
