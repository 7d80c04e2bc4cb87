// SPDX-License-Identifier: Apache-2.0
// tests/python/test_fp8_statistics.py judges every number; here: limits of columns, and which
// recipe counts.
#include "analyzers/formats/quantised.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "catch.hpp"

namespace test_quantised {

using namespace halfscope;
using namespace halfscope::analyzers;
using formats::QuantisedLog;
using frames::QuantisedStatistic;
using frames::QuantisedValue;
using frames::Recipe;

struct Tensor {
  std::string layer;
  Recipe recipe = Recipe::own;
  std::vector<double> percents = {};  ///< by step
};

QuantisedLog found_in(const std::vector<Tensor>& tensors) {
  std::vector<std::int64_t> steps(tensors.front().percents.size());
  std::iota(steps.begin(), steps.end(), 0);
  formats::QuantisedCollector collector;
  collector.begin("log");
  for (const Tensor& tensor : tensors) {
    std::vector<QuantisedValue> values;
    for (const double percent : tensor.percents) {
      values.push_back({static_cast<std::int64_t>(values.size()), percent, percent});
    }
    collector.add({tensor.layer, "gradient", log::Role::activation_grad, tensor.recipe, false,
                   QuantisedStatistic::underflows, values, steps});
  }
  auto logs = std::move(collector).finish();
  REQUIRE(logs.size() == 1);
  return std::move(logs.front());
}

std::vector<std::string> names(const std::vector<const formats::LayerLoss*>& layers) {
  std::vector<std::string> out;
  for (const auto* layer : layers) out.push_back(layer->layer);
  return out;
}

TEST_CASE("quantised: at most 400 columns, all steps in one of them, none lost") {
  for (const std::size_t steps : {1, 2, 399, 400, 401, 799, 800, 801, 7369}) {
    std::vector<double> percents(steps);
    for (std::size_t i = 0; i < steps; ++i)
      percents[i] = static_cast<double>(i * 7919 % 1009) / 100;
    const QuantisedLog log = found_in({{"a", Recipe::own, percents}});
    REQUIRE(log.columns.size() <= formats::kMostColumns);
    CHECK(log.columns.front().first_step == 0);
    CHECK(log.columns.back().last_step == static_cast<std::int64_t>(steps) - 1);
    const auto& cells = log.tensors.front().underflow->cells;
    REQUIRE(cells.size() == log.columns.size());
    std::int64_t next = 0;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      CHECK(cells[i].column == i);
      CHECK(log.columns[i].first_step == next);
      next = log.columns[i].last_step + 1;
      const auto at = [&](std::int64_t step) { return percents.begin() + step; };
      const double most = *std::max_element(at(log.columns[i].first_step), at(next));
      CHECK(std::abs(cells[i].share - most / 100) < 1e-12);
    }
  }
}

TEST_CASE("quantised: which recipe counts") {
  const std::vector<double> much(30, 9.0), none(30, 0.0);
  const QuantisedLog own = found_in({{"a", Recipe::own, none}, {"a", Recipe::mxfp8, much}});
  CHECK(own.to_keep().empty());
  CHECK(own.recipes.size() == 2);
  CHECK(own.recipes[0].judged);
  CHECK(!own.recipes[1].judged);
  CHECK(own.recipes[1].to_keep == 1);
  const QuantisedLog both = found_in({{"a", Recipe::fp8_delayed_scaling, none},
                                      {"b", Recipe::nvfp4, much},
                                      {"a", Recipe::fp8_current_scaling, much}});
  CHECK(names(both.to_keep()) == std::vector<std::string>{"b"});
  CHECK(both.layers.size() == 2);
  const QuantisedLog named = found_in({{"a", Recipe::fp8_block_scaling, none},
                                       {"a", Recipe::mxfp8, much},
                                       {"b", Recipe::mxfp8, none}});
  CHECK(names(named.to_keep()) == std::vector<std::string>{"a"});
}

TEST_CASE("quantised: the first steps do not count where lower ones follow") {
  const auto first_of = [](std::size_t first, std::size_t steps) {
    std::vector<double> percents(steps, 0.1);
    std::fill_n(percents.begin(), first, 90.0);
    return found_in({{"a", Recipe::own, percents}}).to_keep().size();
  };
  CHECK(first_of(1, 20) == 0);
  CHECK(first_of(formats::kFirstSteps, 10) == 0);
  CHECK(first_of(formats::kFirstSteps + 1, 10) == 1);
  CHECK(first_of(2, 2) == 1);
}

TEST_CASE("quantised: the largest share is of the steps that count, and what lasts comes first") {
  std::vector<double> late(40, 0.1), blip(40, 0.1), first(40, 0.1);
  std::fill(late.begin() + 20, late.end(), 3.0);
  late[0] = blip[0] = first[0] = 90;
  blip[5] = 50;
  const QuantisedLog log = found_in(
      {{"first", Recipe::own, first}, {"blip", Recipe::own, blip}, {"late", Recipe::own, late}});
  const auto& [of_first, of_blip, of_late] =
      std::tie(*log.tensors[0].underflow, *log.tensors[1].underflow, *log.tensors[2].underflow);
  CHECK(of_first.largest.high == 0.001);
  CHECK(of_first.at_first->high == 0.9);
  CHECK(of_first.steps_above[formats::kKeepLimit] == 0);
  CHECK(of_blip.largest.high == 0.5);
  CHECK(of_late.largest.high == 0.03);
  CHECK(of_late.first_steps == 1);
  CHECK(formats::lost_more(log.tensors[2], log.tensors[1]));
  CHECK(formats::lost_more(log.tensors[1], log.tensors[0]));
  CHECK(names(log.briefly()) == std::vector<std::string>{"first", "blip"});
}

TEST_CASE("quantised: a few steps at the limit are no reason, lasting ones and the last are") {
  const auto with = [](std::size_t from, std::size_t to) {
    std::vector<double> percents(100, 0.1);
    std::fill(percents.begin() + static_cast<std::ptrdiff_t>(from),
              percents.begin() + static_cast<std::ptrdiff_t>(to), 2.0);
    return percents;
  };
  const QuantisedLog log = found_in({{"start", Recipe::own, with(0, 4)},
                                     {"long", Recipe::own, with(10, 15)},
                                     {"end", Recipe::own, with(97, 100)},
                                     {"blip", Recipe::own, with(98, 100)},
                                     {"none", Recipe::own, with(0, 0)}});
  CHECK(names(log.to_keep()) == std::vector<std::string>{"long", "end"});
  CHECK(names(log.briefly()) == std::vector<std::string>{"start", "blip"});
  CHECK(log.lasting_at(formats::kKeepLimit) == 2);
  CHECK(log.lasting_at(3) == 0);
  CHECK(log.tensors[2].underflow->since[formats::kKeepLimit] == 97);
  CHECK(!log.tensors[1].underflow->since[formats::kKeepLimit]);
}

}  // namespace test_quantised
