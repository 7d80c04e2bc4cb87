// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "halfscope/log/error.hpp"
#include "halfscope/number/format_names.hpp"
#include "reports/answer/formats.hpp"
#include "reports/answer/reduction.hpp"

namespace halfscope::reports::answer {

using analyzers::reduction::Over;
using halfscope::reduction::can_accumulate;
using halfscope::reduction::find_order;

namespace {

[[noreturn]] void refuse(const char* what, const std::string& found, std::string_view wanted) {
  throw std::invalid_argument(
      fmt::format("{}: found '{}', expected {}", what, log::printable(found), wanted));
}

}  // namespace

const NamedFormat* accumulator_called(const std::string& name) {
  const NamedFormat* const named = format_called(name);
  return named != nullptr && can_accumulate(named->format) ? named : nullptr;
}

analyzers::reduction::ReductionOptions sums_called(const std::string& over,
                                                   const std::optional<std::string>& format,
                                                   const std::string& order,
                                                   const std::vector<std::uint64_t>& counts) {
  constexpr std::uint64_t kMostCount = 65'536;
  analyzers::reduction::ReductionOptions asked;
  if (!over.empty()) {
    std::erase_if(asked.over, [&](Over one) { return name_of(one) != over; });
    if (asked.over.empty()) refuse("over", over, "ranks, microbatches or elements");
  }
  if (format) {
    const NamedFormat* const named = accumulator_called(*format);
    if (named == nullptr) refuse("format", *format, kAccumulatorNames);
    asked.formats = {named->name};
  }
  if (!order.empty()) {
    const auto* const named = find_order(order);
    if (named == nullptr) refuse("order", order, "sequential, ring, tree or pairwise");
    const bool of_ranks = std::ranges::find(asked.over, Over::ranks) != asked.over.end();
    if (order == "ring" && !of_ranks) refuse("order", order, "another order: a ring is of ranks");
    asked.orders = {named->order};
  }
  for (const std::uint64_t count : counts) {
    if (count >= 2 && count <= kMostCount) continue;
    refuse("count", std::to_string(count), "a whole number from 2 to 65536");
  }
  if (over == "elements" && !counts.empty()) {
    refuse("count", std::to_string(counts.front()), "none: it is of ranks or microbatches");
  }
  asked.counts = counts;
  if (over.empty() && !counts.empty()) std::erase(asked.over, Over::elements);
  return asked;
}

std::string no_sums_text(const std::string& log, const std::string& over) {
  if (over == "elements") {
    return fmt::format(
        "{}: has no full tensor whose elements a layer adds up; record with sample_every=N "
        "(docs/recording.md), so that the manifest has the network's text",
        log::printable(log));
  }
  const std::string what = over.empty() ? "no full tensors that are added up"
                                        : "no full gradients from before the sum over " + over;
  return fmt::format(
      "{}: has {}; record with local_gradients=True and sample_every=N (docs/recording.md), and "
      "give the folder that all ranks are in",
      log::printable(log), what);
}

}  // namespace halfscope::reports::answer
