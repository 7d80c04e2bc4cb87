// SPDX-License-Identifier: Apache-2.0
#include "reports/charts/rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "reports/answer/shares.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::reports::charts {

using json = nlohmann::ordered_json;

namespace {

json bounds_json(const Interval& count) { return json::array({count.low, count.high}); }

std::string counted_text(const Interval& count, double low, double high) {
  return fmt::format("{} ({})", answer::count_text(count), answer::share_range_text(low, high));
}

/// Returns a binade's count, and its share of the `of` finite nonzero values.
json binade_row(const analyzers::underflow::BinadeCount& binade, const Interval& of) {
  const auto share = [](std::uint64_t part, std::uint64_t all) {
    return all == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(all);
  };
  const Interval& count = binade.count;
  return {{"e", binade.exponent},
          {"low", count.low},
          {"high", count.high},
          {"values", counted_text(count, share(count.low, of.high),
                                  share(count.high, std::max(count.high, of.low)))}};
}

struct Class {
  const char* name;
  Interval Classes::*part;
};
constexpr Class kClasses[] = {{"flushed_to_zero", &Classes::flushed_to_zero},
                              {"subnormal", &Classes::subnormal},
                              {"normal", &Classes::normal},
                              {"overflow", &Classes::overflow}};

json scale_row(int log2, const Classes& classes, const Interval& of) {
  json row = {{"log2_scale", log2}, {"of", of.high}};
  for (const Class& each : kClasses) {
    const Interval& count = classes.*each.part;
    const Bounds share = answer::class_share(classes, each.part, of);
    row[each.name] = count.exact() ? json(count.low) : bounds_json(count);
    row["share"][each.name] = {share.low, share.high};
    row[std::string(each.name) + "_text"] = counted_text(count, share.low, share.high);
  }
  return row;
}

}  // namespace

json bar_rows(const answer::Series& series) {
  json out = json::array();
  for (const auto& binade : series.binades) {
    out.push_back(binade_row(binade, series.counts.finite_nonzero));
  }
  return out;
}

json cell_rows(const answer::Series& series) {
  json out = json::array();
  for (const answer::Column& column : series.columns) {
    for (const auto& binade : column.binades) {
      json row = binade_row(binade, series.counts.finite_nonzero);
      row["step"] = column.first_step;
      row["last"] = column.last_step;
      out.push_back(std::move(row));
    }
  }
  return out;
}

json scale_rows(const answer::Tensors& tensors, const answer::Series& series,
                const analyzers::underflow::Target& target) {
  json out = json::array();
  int log2 = analyzers::underflow::kFirstLog2Scale;
  for (const Classes& classes : answer::by_scale(tensors, target)) {
    out.push_back(scale_row(log2++, classes, series.counts.finite_nonzero));
  }
  return out;
}

}  // namespace halfscope::reports::charts
