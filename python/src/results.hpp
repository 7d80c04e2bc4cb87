// SPDX-License-Identifier: Apache-2.0
// Results kept for Python. Fields, charts and pages are made from them on demand.
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <vector>

#include "analyzers/compare/compare.hpp"
#include "analyzers/study.hpp"

namespace halfscope::python {

/// The result of analyze, recommend or report.
struct Judged {
  Judged(analyzers::Study&& found, bool has_advice)
      : study(std::move(found)), advised(has_advice) {}
  Judged(const Judged&) = delete;
  Judged(Judged&&) = default;

  analyzers::Study study;
  bool advised;  ///< the study has a recommendation
};

/// The result of a replay of loss-scaling policies.
struct Replayed {
  /// `policies` is true if the caller named the policies. `framework` names the framework whose
  /// settings are searched; empty if none is.
  Replayed(std::vector<analyzers::replay::PolicyStudy>&& studies, std::string framework,
           bool policies);
  Replayed(const Replayed&) = delete;
  Replayed(Replayed&&) = default;

  analyzers::Study study;  ///< has only the names of the logs and the replays
  std::string framework;
  bool chosen;
};

/// The result of compare.
struct Compared {
  explicit Compared(analyzers::compare::Comparison&& found) : comparison(std::move(found)) {}
  Compared(const Compared&) = delete;
  Compared(Compared&&) = default;

  analyzers::compare::Comparison comparison;
};

}  // namespace halfscope::python
