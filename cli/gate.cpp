// SPDX-License-Identifier: Apache-2.0
#include "cli/gate.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <stdexcept>

#include "cli/command.hpp"
#include "halfscope/log/error.hpp"
#include "reports/text.hpp"

namespace halfscope::cli {
namespace {

using analyzers::Condition;
using analyzers::Measured;
using analyzers::Relation;
using analyzers::Share;
using analyzers::TensorFindings;
using analyzers::Verdict;
using log::printable;

std::string_view sign_of(Relation relation) {
  switch (relation) {
    case Relation::less: return "<";
    case Relation::less_equal: return "<=";
    case Relation::greater: return ">";
    case Relation::greater_equal: return ">=";
    case Relation::equal: return "==";
    case Relation::not_equal: return "!=";
  }
  return "";
}

std::string value_text(const Measured& value) {
  if (const auto* number = std::get_if<double>(&value)) return fmt::format("{}", *number);
  if (const auto* share = std::get_if<Share>(&value)) {
    return fmt::format("{} of {} ({})", reports::count_text(share->count),
                       reports::count_text(share->of),
                       reports::share_range_text(share->low(), share->high()));
  }
  return reports::count_text(std::get<Interval>(value));
}

/// "flushed_to_zero 12 of 72 (16.7 %) > 0.1 %"
std::string violation_text(const Condition& c, const Measured& value, Verdict verdict) {
  return fmt::format("{} {} {} {}{}{}", c.field, value_text(value), sign_of(c.relation), c.limit,
                     c.percent ? " %" : "",
                     verdict == Verdict::undecided ? " is undecided: only bounds are known" : "");
}

std::string place(const TensorFindings& t) {
  return fmt::format("{}: tensor '{}'", printable(t.log), printable(t.name));
}

void test_condition(const Condition& c, const analyzers::Analysis& analysis, GateLines& lines) {
  std::size_t meant = 0, tested = 0;
  for (const TensorFindings& t : analysis.tensors) {
    if (!applies(c, t)) continue;
    ++meant;
    const std::optional<Measured> value = measure(c, t);
    if (!value) {
      lines.notes.push_back(
          fmt::format("{}: no values to test '{}' on", place(t), printable(c.text)));
      continue;
    }
    ++tested;
    const Verdict verdict = test(c, *value);
    if (verdict == Verdict::fails) continue;
    lines.violations.push_back(fmt::format("{}: {}", place(t), violation_text(c, *value, verdict)));
  }
  if (tested != 0) return;
  throw BadUsage(fmt::format(
      "--fail-if '{}': {}", printable(c.text),
      meant == 0 && c.only.empty() ? fmt::format("no selected tensor is a weight")
      : meant == 0 ? fmt::format("no selected tensor is of role or name '{}'", printable(c.only))
                 : fmt::format("no tensor it is for has values to give {}{} of", c.field,
                               c.percent ? " as a share" : "")));
}

}  // namespace

void add_fail_if(CLI::App& command, std::vector<std::string>& conditions) {
  command
      .add_option("--fail-if", conditions,
                  "exit with 4 where 'FIELD OP NUMBER[%] [for ROLE-OR-GLOB]' holds or is "
                  "undecided; repeatable (docs/gates.md)")
      ->type_name("COND")
      ->allow_extra_args(false);
}

std::vector<Condition> parse_conditions(const std::vector<std::string>& texts,
                                        analyzers::Subject subject) {
  std::vector<Condition> conditions;
  for (const std::string& text : texts) {
    try {
      conditions.push_back(analyzers::parse_condition(text, subject));
    } catch (const std::invalid_argument& e) {
      throw BadUsage(fmt::format("--fail-if: {}", e.what()));
    }
  }
  return conditions;
}

GateLines test_conditions(const std::vector<Condition>& conditions,
                          const analyzers::Analysis& analysis) {
  GateLines lines;
  for (const Condition& c : conditions) test_condition(c, analysis, lines);
  return lines;
}

GateLines test_conditions(const std::vector<Condition>& conditions,
                          const analyzers::Recommendation& advice) {
  GateLines lines;
  std::string logs;
  for (const std::string& log : advice.logs) logs += (logs.empty() ? "" : ", ") + printable(log);
  for (const Condition& c : conditions) {
    const std::optional<Measured> value = measure(c, advice);
    const Verdict verdict = value ? test(c, *value) : Verdict::undecided;
    if (verdict == Verdict::fails) continue;
    lines.violations.push_back(value
                                   ? fmt::format("{}: {}", logs, violation_text(c, *value, verdict))
                                   : fmt::format("{}: {} has no value: '{}' is undecided", logs,
                                                 c.field, printable(c.text)));
  }
  return lines;
}

int close_gate(const GateLines& lines) {
  for (const std::string& line : lines.notes) fmt::print(stderr, "halfscope: {}\n", line);
  for (const std::string& line : lines.violations) fmt::print(stderr, "halfscope: {}\n", line);
  return lines.violations.empty() ? kFine : kConditionHolds;
}

}  // namespace halfscope::cli
