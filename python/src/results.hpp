// SPDX-License-Identifier: Apache-2.0
// What was found, kept for Python: fields, what is shown, charts and pages are made when asked for.
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <vector>

#include "analyzers/compare/compare.hpp"
#include "analyzers/study.hpp"

namespace halfscope::python {

/// A Study, or findings alone, which have no recommendation.
struct Judged {
  Judged(analyzers::Study&& found, bool has_advice)
      : study(std::move(found)), advised(has_advice) {}
  Judged(const Judged&) = delete;
  Judged(Judged&&) = default;

  analyzers::Study study;
  bool advised;
};

struct Replayed {
  /// `policies` are asked for by name; framework: whose settings are searched, or empty.
  Replayed(std::vector<analyzers::replay::PolicyStudy>&& studies, std::string framework,
           bool policies);
  Replayed(const Replayed&) = delete;
  Replayed(Replayed&&) = default;

  analyzers::Study study;  ///< of the logs' names and the replays alone
  std::string framework;
  bool chosen;
};

struct Compared {
  explicit Compared(analyzers::compare::Comparison&& found) : comparison(std::move(found)) {}
  Compared(const Compared&) = delete;
  Compared(Compared&&) = default;

  analyzers::compare::Comparison comparison;
};

}  // namespace halfscope::python
