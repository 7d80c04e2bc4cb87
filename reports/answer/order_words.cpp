// SPDX-License-Identifier: Apache-2.0
#include "reports/answer/order_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <regex>
#include <stdexcept>

#include "halfscope/log/error.hpp"
#include "reports/answer/formats.hpp"
#include "reports/answer/marks.hpp"
#include "reports/answer/reduction_asked.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::reports::answer {

using analyzers::compare::ComparedOrder;
using analyzers::compare::Comparison;
using analyzers::compare::OrderAsked;
using analyzers::reduction::OrderVerdict;
using analyzers::reduction::Verdict;

namespace {

constexpr std::size_t kNamed = 5;

using Which = std::function<bool(const OrderVerdict&)>;

/// Adds `sentence`, with the tensors' names for {}, if `which` is true for some tensors.
void tell(const Comparison& comparison, const Which& which, const char* sentence,
          Section& section) {
  std::vector<std::string> names;
  for (const ComparedOrder& one : comparison.orders) {
    if (which(one.verdict)) names.push_back(one.name);
  }
  if (names.empty()) return;
  section.sentences.push_back(fmt::format(fmt::runtime(sentence), listed_code(names, kNamed)));
}

/// Returns what the user can record or change for a more certain verdict; empty if there is
/// nothing.
std::string missing_text(const Comparison& comparison) {
  const OrderAsked& asked = *comparison.order_asked;
  const bool missing = std::ranges::any_of(
      comparison.orders, [](const ComparedOrder& one) { return one.verdict.magnitudes_missing; });
  if (missing) {
    return "Values may cancel, so the addends' magnitudes are needed: record their sums as a "
           "tensor of the first log, and give it with " +
           code("magnitudes=TENSOR") + ".";
  }
  if (!asked.sums.has_random_limit()) {
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
  return {{{code(one.name)},
           {std::string(name_of(v.verdict))},
           {count_text(v.elements), static_cast<double>(v.elements)},
           count(v.within),
           count(v.between),
           count(v.above),
           {fmt::format("{:.3g}", v.worst_ratio), v.worst_ratio,
            fmt::format("element {} at step {}", v.worst, one.worst_step)}}};
}

/// Adds sentences on the first tensors whose differences are larger than random orders explain.
void add_beyond_random(const Comparison& comparison, Section& section) {
  std::size_t named = 0;
  for (const ComparedOrder& one : comparison.orders) {
    const auto& v = one.verdict;
    if (v.beyond_random == 0 || v.above > 0 || ++named > kNamed) continue;
    section.sentences.push_back(fmt::format(
        "{} of {} differences in {} are larger, up to {:.3g} times, than those that "
        "random orders exceed once in 10^6 pairs: a bug, unless a few addends make up "
        "most of a sum.",
        count_text(v.beyond_random), count_text(v.elements), code(one.name), v.worst_ratio));
  }
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

std::string order_verdict(const Comparison& comparison) {
  const auto count = [&](Verdict verdict) {
    return static_cast<std::uint64_t>(std::ranges::count_if(
        comparison.orders,
        [&](const ComparedOrder& one) { return one.verdict.verdict == verdict; }));
  };
  const std::string all = plural(comparison.orders.size(), "tensor");
  if (const std::uint64_t above = count(Verdict::above); above > 0) {
    return fmt::format("A bug, or other addends: no order of addition explains {} of {}.",
                       count_text(above), all);
  }
  const auto beyond = std::ranges::count_if(
      comparison.orders, [](const ComparedOrder& one) { return one.verdict.beyond_random > 0; });
  if (beyond > 0) {
    return fmt::format("Most likely a bug: random orders do not give the differences in {} of {}.",
                       beyond, all);
  }
  if (const std::uint64_t open = count(Verdict::cannot_tell); open > 0) {
    return fmt::format("Rounding or a bug: that cannot be told for {} of {}.", count_text(open),
                       all);
  }
  return "The sums differ by rounding alone.";
}

Section order_section(const Comparison& comparison) {
  Section section;
  if (!comparison.order_asked) return section;
  const OrderAsked& asked = *comparison.order_asked;
  section.title = fmt::format("Sums of {} addends in {}: rounding or a bug",
                              count_text(asked.sums.length), people_say(asked.format));
  const auto is = [](Verdict verdict) {
    return [verdict](const OrderVerdict& one) { return one.verdict == verdict; };
  };
  tell(comparison, is(Verdict::above), "No order of addition explains the differences in {}.",
       section);
  tell(
      comparison,
      [](const OrderVerdict& one) {
        return one.verdict == Verdict::cannot_tell && one.beyond_random == 0;
      },
      "The differences in {} may be rounding.", section);
  add_beyond_random(comparison, section);
  tell(comparison, is(Verdict::within),
       "The differences in {} are rounding: random orders give as large ones.", section);
  tell(
      comparison, [](const OrderVerdict& one) { return one.nonfinite > 0; },
      "Elements of {} are infinite or NaN in one log alone: rounding can do that only at the edge "
      "of the range.",
      section);
  tell(
      comparison, [](const OrderVerdict& one) { return one.unusable > 0; },
      "The magnitudes of some elements of {} are infinite, negative or less than the sum itself, "
      "and count as missing.",
      section);
  if (const std::string missing = missing_text(comparison); !missing.empty()) {
    section.sentences.push_back(missing);
  }
  Table table{Evidence::advice, "Tensor by tensor"};
  table.note =
      "Within: a difference that random orders exceed once in 10^6 pairs, or less. Above: beyond "
      "the bound of every order. The worst is over the limit or bound that it was judged by.";
  table.headings = {"tensor", "verdict", "elements", "within", "between", "above", "worst"};
  table.all_by = "compare A B --sums ... --json FILE";
  for (const ComparedOrder& one : comparison.orders) {
    if (table.rows.size() < kMostRows) {
      table.rows.push_back(row_of(one));
    } else {
      ++table.left_out;
    }
  }
  section.tables.push_back(std::move(table));
  return section;
}

}  // namespace halfscope::reports::answer
