// SPDX-License-Identifier: Apache-2.0
#include "reports/answer/order_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <regex>
#include <stdexcept>

#include "halfscope/log/error.hpp"
#include "reports/answer/formats.hpp"
#include "reports/answer/marks.hpp"
#include "reports/answer/reduction_words.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::reports::answer {

using analyzers::compare::ComparedOrder;
using analyzers::compare::Comparison;
using analyzers::compare::OrderAsked;
using analyzers::reduction::Verdict;

namespace {

constexpr std::size_t kNamed = 5;

std::vector<std::string> named(const Comparison& comparison, Verdict verdict) {
  std::vector<std::string> names;
  for (const ComparedOrder& one : comparison.orders) {
    if (one.verdict.verdict == verdict) names.push_back(one.name);
  }
  return names;
}

/// What would decide more.
std::string missing_text(const Comparison& comparison) {
  const OrderAsked& asked = *comparison.order_asked;
  const bool missing = std::ranges::any_of(
      comparison.orders, [](const ComparedOrder& one) { return one.verdict.magnitudes_missing; });
  if (missing) {
    return "Values may cancel, so the addends' magnitudes are needed: record their sums as a "
           "tensor of the first log, and give it with " +
           code("magnitudes=TENSOR") + ".";
  }
  if (!asked.sums.few()) {
    return fmt::format(
        "{} addends in {} lose additions as a rule: there is no limit for random orders, only the "
        "bound of every order.",
        count_text(asked.sums.length), people_say(asked.format));
  }
  return "";
}

Row row_of(const ComparedOrder& one) {
  const auto& v = one.verdict;
  const auto count = [](std::uint64_t n) {
    return Cell{count_text(n), static_cast<double>(n), "", n == 0};
  };
  return {
      {{code(one.name)},
       {std::string(name_of(v.verdict))},
       {count_text(v.elements), static_cast<double>(v.elements)},
       count(v.within),
       count(v.between),
       count(v.above),
       {fmt::format("{:.3g}", v.worst_ratio), v.worst_ratio, fmt::format("element {}", v.worst)}}};
}

}  // namespace

std::string_view name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::within: return "within";
    case Verdict::above: return "above";
    case Verdict::cannot_tell: return "cannot tell";
  }
  return "";
}

OrderAsked order_called(const std::string& text) {
  static const std::regex form(R"(length=(\d{1,13}),format=([^,]+)(?:,magnitudes=(.+))?)");
  constexpr std::size_t kLongest = 1000;  // std::regex recurses
  constexpr std::uint64_t kMost = std::uint64_t{1} << 40;
  std::smatch parts;
  if (text.size() <= kLongest && std::regex_match(text, parts, form)) {
    const NamedFormat* const format = accumulator_called(parts[2].str());
    const std::uint64_t length = std::stoull(parts[1]);
    if (format != nullptr && length >= 1 && length <= kMost) {
      return {{length, format->format}, std::string(format->name), parts[3].str()};
    }
  }
  throw std::invalid_argument(fmt::format(
      "found '{}', expected length=K,format=F[,magnitudes=TENSOR] with 1 to 2^40 addends K, and F "
      "of {}",
      log::printable(text), kAccumulatorNames));
}

Section order_section(const Comparison& comparison) {
  Section section;
  if (!comparison.order_asked) return section;
  const OrderAsked& asked = *comparison.order_asked;
  section.title = fmt::format("Sums of {} addends in {}: rounding or a bug",
                              count_text(asked.sums.length), people_say(asked.format));
  const auto add = [&](Verdict verdict, const char* what) {
    const std::vector<std::string> names = named(comparison, verdict);
    if (names.empty()) return;
    section.sentences.push_back(fmt::format("{}: {}.", what, listed_code(names, kNamed)));
  };
  add(Verdict::above, "No rounding, since no order of addition gives so large a difference");
  add(Verdict::cannot_tell, "Perhaps rounding");
  add(Verdict::within, "Rounding, since random orders give differences as large");
  if (const std::string missing = missing_text(comparison); !missing.empty()) {
    section.sentences.push_back(missing);
  }
  Table table{Evidence::advice, "Tensor by tensor"};
  table.note =
      "Within: a difference that random orders exceed once in 10^6 pairs, or less. Above: beyond "
      "the bound of every order. The worst is over the limit or bound that it was judged by.";
  table.headings = {"tensor", "verdict", "elements", "within", "between", "above", "worst"};
  table.all_by = "compare A B --sums ... --json FILE";
  for (const ComparedOrder& one : comparison.orders) table.rows.push_back(row_of(one));
  section.tables.push_back(std::move(table));
  return section;
}

}  // namespace halfscope::reports::answer
