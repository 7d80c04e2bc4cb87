// SPDX-License-Identifier: Apache-2.0
#include "reports/answer/gate_words.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <limits>

#include "reports/answer/text.hpp"

namespace halfscope::reports::answer {

using analyzers::gates::Condition;
using analyzers::gates::Measured;
using analyzers::gates::Relation;
using analyzers::gates::ShareRange;
using analyzers::scale_history::RunState;
using analyzers::underflow::Share;

namespace {

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
    return fmt::format("{} of {} ({})", count_text(share->count), count_text(share->of),
                       share_range_text(share->low(), share->high()));
  }
  if (const auto* range = std::get_if<ShareRange>(&value)) {
    return share_range_text(range->low, range->high);
  }
  if (const auto* state = std::get_if<RunState>(&value)) return std::string(name_of(*state));
  const Interval& count = std::get<Interval>(value);
  const bool bounded = count.high < std::numeric_limits<std::uint64_t>::max();
  return bounded ? count_text(count) : "at least " + count_text(count.low);
}

}  // namespace

std::string violation_text(const Condition& c, const Measured& value,
                           analyzers::gates::Verdict verdict) {
  const auto* const number = std::get_if<double>(&value);
  if (number != nullptr && std::isnan(*number)) return fmt::format("{} is NaN", c.field);
  return fmt::format("{} {} {} {}{}{}", c.field, value_text(value), sign_of(c.relation), c.limit,
                     c.percent ? " %" : "",
                     verdict == analyzers::gates::Verdict::undecided
                         ? " is undecided: only bounds are known"
                         : "");
}

}  // namespace halfscope::reports::answer
