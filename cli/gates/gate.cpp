// SPDX-License-Identifier: Apache-2.0
#include "cli/gates/gate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <stdexcept>

#include "cli/options/notes.hpp"
#include "halfscope/log/error.hpp"
#include "reports/answer/gate_words.hpp"

namespace halfscope::cli::gates {
namespace {

using analyzers::gates::Condition;
using analyzers::gates::Measured;
using analyzers::gates::Verdict;
using analyzers::scale_history::TimelineFacts;
using log::printable;
using reports::answer::violation_text;

/// A condition describes a failure, so it is kept if it is false.
Outcome outcome_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::fails: return Outcome::kept;
    case Verdict::holds: return Outcome::violated;
    case Verdict::undecided: return Outcome::undecided;
  }
  return Outcome::undecided;
}

/// Numbers of tensors: all, those the condition is meant for, and among these the weights and those
/// that have the field.
struct Counts {
  std::size_t tensors = 0, meant = 0, weights = 0, tested = 0;
};

[[noreturn]] void refuse(const Condition& c, const std::string& why) {
  throw options::BadUsage(fmt::format("--fail-if '{}': {}", printable(c.text), why));
}

/// Returns why the condition could be tested on no tensor.
std::string nothing_tested(const Condition& c, const Counts& counts) {
  if (counts.meant == 0) {
    return c.only.empty()
               ? std::string("no selected tensor is a weight")
               : fmt::format("no selected tensor is of role or name '{}'", printable(c.only));
  }
  if (analyzers::gates::is_of_updates(c) && counts.weights == 0) {
    return fmt::format("{} is known for weights only; use 'for weight', or remove 'for'", c.field);
  }
  return fmt::format("none of its tensors has values to compute {}{} from", c.field,
                     c.percent ? " as a share" : "");
}

/// Returns why logs without tensors cannot be tested, and which fields can be used instead.
std::string no_tensors(const analyzers::Findings& found) {
  std::string text = "the log has no values of tensors, which this condition is tested on; ";
  if (!found.timelines.empty() || !found.run_timelines.empty()) {
    return text +
           "use a field of its scalars: state, skipped, skipped_share, collapsed_since, "
           "nonfinite_since or last_scale";
  }
  if (found.quantised.empty()) return text + "no field can be tested";
  return text + "use underflow_share, a field of its statistics of FP8 or FP4";
}

/// Returns why logs with magnitudes but without counts cannot be tested.
std::string no_counts(const Condition& c) {
  return fmt::format(
      "{}{} needs counts of values, and the log has largest magnitudes only; use nan, inf, "
      "overflow, flushed_to_zero or max_abs, without %",
      c.field, c.percent ? " as a share" : "");
}

bool is_weight(log::Role role) {
  return role == log::Role::weight || role == log::Role::master_weight;
}

const std::string& name_in(const auto& tensor) { return tensor.name; }
std::string name_in(const analyzers::formats::QuantisedTensor& tensor) { return tensor.name(); }
const std::string& name_in(const analyzers::weights::Claim& claim) { return claim.kind; }

/// Tests a condition on each tensor. log_of(tensor) returns the name of the tensor's log.
template <typename Tensors, typename LogOf>
void test_tensors(const Condition& c, std::size_t number, const Tensors& tensors,
                  const LogOf& log_of, Counts& counts, GateTests& tests) {
  for (const auto& t : tensors) {
    ++counts.tensors;
    if (!applies(c, t)) continue;
    ++counts.meant;
    counts.weights += is_weight(t.role) ? 1 : 0;
    GateTest result{number, c.text, log_of(t), name_in(t), Outcome::not_tested, false, ""};
    if (const std::optional<Measured> value = measure(c, t)) {
      ++counts.tested;
      const Verdict verdict = analyzers::gates::test(c, *value);
      result.outcome = outcome_of(verdict);
      if (verdict != Verdict::fails) result.text = violation_text(c, *value, verdict);
    } else {
      result.text = fmt::format("no values to test '{}' on", printable(c.text));
    }
    tests.push_back(std::move(result));
  }
}

void test_condition(const Condition& c, std::size_t number, const analyzers::Findings& found,
                    GateTests& tests) {
  Counts counted, bounded;
  const auto log_of = [](const auto& tensor) { return tensor.log; };
  test_tensors(c, number, found.analysis.tensors(), log_of, counted, tests);
  test_tensors(c, number, found.peaks, log_of, bounded, tests);
  if (counted.tested + bounded.tested > 0) return;
  if (counted.tensors + bounded.tensors == 0) refuse(c, no_tensors(found));
  const bool updates = analyzers::gates::is_of_updates(c);
  if (counted.meant == 0 && bounded.meant > 0 && !updates) refuse(c, no_counts(c));
  refuse(c, nothing_tested(c, counted.meant > 0 ? counted : bounded));
}

/// Tests a condition on the FP8 and FP4 statistics that frameworks measured.
void test_quantised(const Condition& c, std::size_t number, const analyzers::Findings& found,
                    GateTests& tests) {
  Counts counts;
  for (const auto& log : found.quantised) {
    const auto log_of = [&](const auto&) { return log.log; };
    test_tensors(c, number, log.tensors, log_of, counts, tests);
  }
  if (counts.tested > 0) return;
  refuse(c, counts.tensors > 0 ? nothing_tested(c, counts)
                               : "no log has statistics of FP8 or FP4, which this field is of");
}

/// Tests a condition on weights that moved or not, or on kinds of FP32 tensors.
void test_weights(const Condition& c, std::size_t number, const analyzers::Findings& found,
                  GateTests& tests) {
  Counts counts;
  if (c.field == "rounded_state") {
    const auto log_of = [](const auto& claim) { return claim.log; };
    test_tensors(c, number, found.claims, log_of, counts, tests);
  } else {
    for (const auto& movement : found.movements) {
      const auto log_of = [&](const auto&) { return movement.log; };
      test_tensors(c, number, movement.tensors, log_of, counts, tests);
    }
  }
  if (counts.tested > 0) return;
  refuse(c, counts.tensors > 0
                ? nothing_tested(c, counts)
                : "no log has whole weights or optimizer state in FP32 (frozen_weights: of two "
                  "steps or more); record the run with sample_every=N (docs/recording.md)");
}

void test_condition(const Condition& c, std::size_t number,
                    const analyzers::compare::Comparison& comparison, GateTests& tests) {
  const std::string logs = comparison.logs.a + " and " + comparison.logs.b;
  Counts counts;
  test_tensors(
      c, number, comparison.tensors, [&](const auto&) { return logs; }, counts, tests);
  counts.weights = counts.meant;  // skips the explanation about weights
  if (counts.tested == 0) refuse(c, nothing_tested(c, counts));
}

/// Tests a condition on one log, or on all logs. It is undecided if the value is unknown.
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

/// A log's scalars, and the step from which its tensors contain NaN or infinity until the end.
struct LogState {
  std::string log;
  const TimelineFacts* facts = nullptr;
  std::optional<std::int64_t> broken_since = {};
};

/// Returns the states of all logs with scalars. For a condition about the end of the run, also
/// those of logs that have only tensors.
std::vector<LogState> states_of(const Condition& c, const analyzers::Findings& found) {
  std::vector<LogState> all;
  for (const auto* timelines : {&found.timelines, &found.run_timelines}) {
    for (const TimelineFacts& facts : *timelines) all.push_back({facts.log, &facts});
  }
  if (!analyzers::gates::is_of_end(c)) return all;
  for (const auto& log : found.analysis.logs) {
    const bool has_tensors = !log.tensors.empty() || !log.peaks.empty();
    const bool told = std::ranges::find(all, log.name, &LogState::log) != all.end();
    if (has_tensors && !told) all.push_back({log.name});
  }
  for (LogState& state : all) {
    const auto end =
        std::ranges::find(found.broken_ends, state.log, &analyzers::overflow::BrokenEnd::log);
    if (end != found.broken_ends.end()) state.broken_since = end->first;
  }
  return all;
}

/// Tests a condition on the timelines of loss scale and skipped steps.
void test_timelines(const Condition& c, std::size_t number, const analyzers::Findings& found,
                    GateTests& tests) {
  const std::size_t before = tests.size();
  for (const LogState& state : states_of(c, found)) {
    const auto value = analyzers::gates::measure(c, state.facts, state.broken_since);
    tests.push_back(tested(c, number, state.log, value));
    tests.back().of_log = true;
  }
  if (tests.size() != before) return;
  const bool tensors = !found.analysis.tensors().empty() || !found.peaks.empty();
  refuse(c, fmt::format("no log has a loss scale or skipped steps; {}",
                        tensors ? "use state or nonfinite_since, or a field of its tensors"
                                : "no field of a log can be tested"));
}

/// Tests a condition on each log that has several ranks.
void test_ranks(const Condition& c, std::size_t number, const analyzers::Findings& found,
                GateTests& tests) {
  for (const auto& study : found.ranks) {
    tests.push_back(tested(c, number, study.log, analyzers::gates::measure(c, study)));
    tests.back().of_log = true;
  }
  if (found.ranks.empty()) refuse(c, "ranks_differ needs a log of several ranks");
}

/// Tests a condition if it is about logs. Returns false if it is not.
bool test_log(const Condition& c, std::size_t number, const analyzers::Findings& found,
              GateTests& tests) {
  if (analyzers::gates::is_of_timeline(c)) {
    test_timelines(c, number, found, tests);
    return true;
  }
  if (!analyzers::gates::is_of_ranks(c)) return false;
  test_ranks(c, number, found, tests);
  return true;
}

}  // namespace

void add_gate(options::Command& command, GateOptions& options) {
  command
      .option("--fail-if", options.fail_if,
              "exit with code 4 if 'FIELD OP NUMBER[%] [for ROLE-OR-GLOB]' holds or is undecided; "
              "repeatable (docs/gates.md)")
      .type("COND")
      .repeatable();
  command
      .option("--junit", options.junit,
              "write the result of every --fail-if as JUnit XML, for CI systems")
      .type("FILE");
}

std::vector<Condition> parse_conditions(const GateOptions& options,
                                        analyzers::gates::Subject subject) {
  if (options.junit == "-") {
    throw cli::options::BadUsage("--junit: found '-', expected a file: stdout holds the results");
  }
  if (!options.junit.empty() && options.fail_if.empty()) {
    throw cli::options::BadUsage(
        "--junit: there is no condition to report on; give one with --fail-if");
  }
  std::vector<Condition> conditions;
  for (const std::string& text : options.fail_if) {
    try {
      conditions.push_back(analyzers::gates::parse_condition(text, subject));
    } catch (const std::invalid_argument& e) {
      throw cli::options::BadUsage(fmt::format("--fail-if: {}", e.what()));
    }
  }
  return conditions;
}

GateTests test_conditions(const std::vector<Condition>& conditions,
                          const analyzers::Findings& found) {
  GateTests tests;
  for (std::size_t i = 0; i < conditions.size(); ++i) {
    const Condition& c = conditions[i];
    if (test_log(c, i, found, tests)) continue;
    if (analyzers::gates::is_of_quantised(c)) {
      test_quantised(c, i, found, tests);
    } else if (analyzers::gates::is_of_weights(c)) {
      test_weights(c, i, found, tests);
    } else {
      test_condition(c, i, found, tests);
    }
  }
  return tests;
}

GateTests test_conditions(const std::vector<Condition>& conditions,
                          const analyzers::compare::Comparison& comparison) {
  GateTests tests;
  for (std::size_t i = 0; i < conditions.size(); ++i) {
    test_condition(conditions[i], i, comparison, tests);
  }
  return tests;
}

GateTests test_conditions(const std::vector<Condition>& conditions, const analyzers::Study& study) {
  GateTests tests;
  std::string logs;
  for (const std::string& log : study.advice.logs) logs += (logs.empty() ? "" : ", ") + log;
  for (std::size_t i = 0; i < conditions.size(); ++i) {
    const Condition& c = conditions[i];
    if (test_log(c, i, study, tests)) continue;
    tests.push_back(tested(c, i, logs, analyzers::gates::measure(c, study.advice)));
  }
  return tests;
}

std::string GateTest::line() const {
  return name.empty() ? fmt::format("{}: {}", printable(log), text)
                      : fmt::format("{}: tensor '{}': {}", printable(log), printable(name), text);
}

int close_gate(const GateTests& tests) {
  options::print_notes();
  const auto write = [&](auto&& wanted) {
    bool any = false;
    for (const GateTest& test : tests) {
      if (!wanted(test.outcome)) continue;
      any = true;
      options::say("{}", test.line());
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
