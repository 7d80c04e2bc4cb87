// SPDX-License-Identifier: Apache-2.0
#include "cli/gates/gate.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <stdexcept>

#include "cli/options/exit.hpp"
#include "halfscope/log/error.hpp"
#include "reports/answer/gate_words.hpp"

namespace halfscope::cli::gates {
namespace {

using analyzers::gates::Condition;
using analyzers::gates::Measured;
using analyzers::gates::Verdict;
using analyzers::scale_history::TimelineFacts;
using analyzers::underflow::TensorFindings;
using log::printable;
using reports::answer::violation_text;

/// A condition says when to stop: it is kept where it fails.
Outcome outcome_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::fails: return Outcome::kept;
    case Verdict::holds: return Outcome::violated;
    case Verdict::undecided: return Outcome::undecided;
  }
  return Outcome::undecided;
}

/// The log a tensor is of.
auto tensors_of(const analyzers::underflow::Analysis& analysis) { return analysis.tensors(); }
const auto& tensors_of(const analyzers::compare::Comparison& c) { return c.tensors; }

std::string log_of(const analyzers::underflow::Analysis&, const TensorFindings& t) { return t.log; }
std::string log_of(const analyzers::compare::Comparison& c,
                   const analyzers::compare::ComparedTensor&) {
  return c.logs.a + " and " + c.logs.b;
}

bool is_weight(const TensorFindings& t) {
  return t.role == log::Role::weight || t.role == log::Role::master_weight;
}
bool is_weight(const analyzers::compare::ComparedTensor&) {
  return true;
}  // asked of no weight in particular

/// Why nothing could be tested.
template <typename Findings>
std::string nothing_tested(const Condition& c, const Findings& findings) {
  std::size_t meant = 0, weights = 0;
  for (const auto& t : tensors_of(findings)) {
    if (!applies(c, t)) continue;
    ++meant;
    weights += is_weight(t) ? 1 : 0;
  }
  if (meant == 0) {
    return c.only.empty()
               ? std::string("no selected tensor is a weight")
               : fmt::format("no selected tensor is of role or name '{}'", printable(c.only));
  }
  if (analyzers::gates::is_of_updates(c) && weights == 0) {
    return fmt::format("{} is known for weights only; use 'for weight', or remove 'for'", c.field);
  }
  return fmt::format("none of its tensors has values to compute {}{} from", c.field,
                     c.percent ? " as a share" : "");
}

template <typename Findings>
void test_condition(const Condition& c, std::size_t number, const Findings& findings,
                    GateLines& lines) {
  std::size_t tested = 0;
  for (const auto& t : tensors_of(findings)) {
    if (!applies(c, t)) continue;
    GateTest result{number, c.text, log_of(findings, t), t.name, Outcome::not_tested, false, ""};
    if (const std::optional<Measured> value = measure(c, t)) {
      ++tested;
      const Verdict verdict = analyzers::gates::test(c, *value);
      result.outcome = outcome_of(verdict);
      if (verdict != Verdict::fails) result.text = violation_text(c, *value, verdict);
    } else {
      result.text = fmt::format("no values to test '{}' on", printable(c.text));
    }
    lines.tests.push_back(std::move(result));
  }
  if (tested != 0) return;
  throw options::BadUsage(
      fmt::format("--fail-if '{}': {}", printable(c.text), nothing_tested(c, findings)));
}

/// A condition on a log, or on all of them: a value that is not known leaves it undecided.
GateTest tested(const Condition& c, std::size_t number, const std::string& log,
                const std::optional<Measured>& value) {
  const Verdict verdict = value ? analyzers::gates::test(c, *value) : Verdict::undecided;
  GateTest result{number, c.text, log, "", outcome_of(verdict), false, ""};
  if (!value) {
    result.text = fmt::format("{} has no value: '{}' is undecided", c.field, printable(c.text));
  } else if (verdict != Verdict::fails) {
    result.text = violation_text(c, *value, verdict);
  }
  return result;
}

/// Of the fields that every log has which tells its loss scale or its skipped steps.
void test_timelines(const Condition& c, std::size_t number, const analyzers::Findings& found,
                    GateLines& lines) {
  const std::size_t before = lines.tests.size();
  for (const auto* timelines : {&found.timelines, &found.run_timelines}) {
    for (const TimelineFacts& facts : *timelines) {
      lines.tests.push_back(tested(c, number, facts.log, analyzers::gates::measure(c, facts)));
      lines.tests.back().of_log = true;
    }
  }
  if (lines.tests.size() != before) return;
  throw options::BadUsage(
      fmt::format("--fail-if '{}': no log tells a loss scale or skipped steps", printable(c.text)));
}

}  // namespace

void add_fail_if(options::Command& command, std::vector<std::string>& conditions) {
  command
      .option("--fail-if", conditions,
              "exit with code 4 if 'FIELD OP NUMBER[%] [for ROLE-OR-GLOB]' holds or is undecided; "
              "repeatable (docs/gates.md)")
      .type("COND")
      .repeatable();
}

std::vector<Condition> parse_conditions(const std::vector<std::string>& texts,
                                        analyzers::gates::Subject subject) {
  std::vector<Condition> conditions;
  for (const std::string& text : texts) {
    try {
      conditions.push_back(analyzers::gates::parse_condition(text, subject));
    } catch (const std::invalid_argument& e) {
      throw options::BadUsage(fmt::format("--fail-if: {}", e.what()));
    }
  }
  return conditions;
}

GateLines test_conditions(const std::vector<Condition>& conditions,
                          const analyzers::Findings& found) {
  GateLines lines;
  for (std::size_t i = 0; i < conditions.size(); ++i) {
    const bool of_log = analyzers::gates::is_of_timeline(conditions[i]);
    if (of_log) test_timelines(conditions[i], i, found, lines);
    if (!of_log) test_condition(conditions[i], i, found.analysis, lines);
  }
  return lines;
}

GateLines test_conditions(const std::vector<Condition>& conditions,
                          const analyzers::compare::Comparison& comparison) {
  GateLines lines;
  for (std::size_t i = 0; i < conditions.size(); ++i) {
    test_condition(conditions[i], i, comparison, lines);
  }
  return lines;
}

GateLines test_conditions(const std::vector<Condition>& conditions, const analyzers::Study& study) {
  GateLines lines;
  std::string logs;
  for (const std::string& log : study.advice.logs) logs += (logs.empty() ? "" : ", ") + log;
  for (std::size_t i = 0; i < conditions.size(); ++i) {
    const Condition& c = conditions[i];
    if (analyzers::gates::is_of_timeline(c)) {
      test_timelines(c, i, study, lines);
    } else {
      lines.tests.push_back(tested(c, i, logs, analyzers::gates::measure(c, study.advice)));
    }
  }
  return lines;
}

std::string GateTest::line() const {
  return name.empty() ? fmt::format("{}: {}", printable(log), text)
                      : fmt::format("{}: tensor '{}': {}", printable(log), printable(name), text);
}

int close_gate(const GateLines& lines) {
  const auto write = [&](auto&& wanted) {
    bool any = false;
    for (const GateTest& test : lines.tests) {
      if (!wanted(test.outcome)) continue;
      any = true;
      fmt::print(stderr, "halfscope: {}\n", test.line());
    }
    return any;
  };
  write([](Outcome outcome) { return outcome == Outcome::not_tested; });
  const bool stops = write([](Outcome outcome) {
    return outcome == Outcome::violated || outcome == Outcome::undecided;
  });
  return stops ? options::kConditionHolds : options::kFine;
}

}  // namespace halfscope::cli::gates
