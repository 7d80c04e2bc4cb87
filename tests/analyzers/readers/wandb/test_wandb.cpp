// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/wandb/wandb.hpp"

#include <cmath>
#include <limits>

#include "analyzers/reading.hpp"
#include "catch.hpp"

namespace test_wandb {

using namespace halfscope;
using namespace halfscope::test;
using analyzers::frames::Gap;
using log::Role;

const std::string kRow =
    R"({"_step": 7, "train/loss": NaN, "lr": 0.5, "amp/scale": 1024.0, "note": "NaN \" ]",)"
    R"( "gradients/fc.weight": {"_type": "histogram", "values": [1.0, 2.0, 0.0, 3.0],)"
    R"( "bins": [-2.0, -1.0, 0.0, 1.0, 2.0]}, "nested": {"a": {"b": [[1, {"c": 2}]], "d": 4}},)"
    R"( "parameters/fc.weight": {"values": [4, 0], "_type": "histogram",)"
    R"( "packedBins": {"size": 0.5, "min": 1.0, "count": 2}}})";

std::string nested_objects() {
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += "{\"a\":";
  return text;
}

TEST_CASE("W&B: a row's scalars and histograms, with the words Python writes for no number") {
  const TempFolder folder;
  const Told told = told_of(folder.write("any", kRow + "\n"));
  const auto* const gradient = told.frame("gradients/fc.weight", 7);
  REQUIRE(gradient != nullptr);
  CHECK(gradient->role == Role::weight_grad);
  CHECK(gradient->loss_scaled);
  CHECK(!gradient->source_dtype);
  CHECK(!gradient->table.nonfinite_known());
  CHECK(gradient->table.total() == 6);
  // Those beside zero, and what binary32 may have counted on the other side of an edge.
  CHECK(gradient->table.zero() == Interval(0, 2));
  CHECK(gradient->table.at_or_above(magnitude_of(0.999)) == Interval(4, 6));
  CHECK(gradient->table.at_or_above(magnitude_of(1.001)) == Interval(0, 4));
  CHECK(to_double(gradient->table.largest().value()) < 2.000001);
  const auto* const weight = told.frame("parameters/fc.weight", 7);
  REQUIRE(weight != nullptr);
  CHECK(weight->role == Role::weight);
  CHECK(weight->table.at_or_above(magnitude_of(0.999)) == Interval(4));
  CHECK(weight->table.at_or_above(magnitude_of(1.501)) == Interval(0));
  REQUIRE(told.scalars.count(7) == 1);
  CHECK(std::isnan(told.scalars.at(7).loss.value()));
  CHECK(told.scalars.at(7).loss_scale == 1024.0);
  CHECK(told.scalars.at(7).learning_rate == 0.5);
  CHECK(told.leaves_open(Gap::underflow));
  CHECK(told.leaves_open(Gap::nonfinite));
  CHECK(!told.leaves_open(Gap::counts));
}

TEST_CASE("W&B: an array of rows and one object over many lines are the same") {
  const TempFolder folder;
  const Told array = told_of(folder.write("array", "[\n" + kRow + ", " + kRow + "]"));
  CHECK(array.frames.size() == 2);
  CHECK(array.noted("2 histograms are there twice"));
  std::string lines = kRow;
  for (std::size_t at = lines.find(", \""); at != std::string::npos;
       at = lines.find(", \"", at + 2)) {
    lines.replace(at, 2, ",\n");
  }
  CHECK(told_of(folder.write("object", lines)).frames.size() == 2);
}

TEST_CASE("W&B: counts that binary32 does not hold exactly are not used") {
  const TempFolder folder;
  const Told told = told_of(folder.write(
      "log", R"({"_step": 1, "gradients/a": {"_type": "histogram", "values": [16777216.0, 1.0],)"
             R"( "bins": [1.0, 2.0, 3.0]}})"));
  CHECK(told.frames.empty());
  const auto* const peak = told.peak("gradients/a", 1);
  REQUIRE(peak != nullptr);
  CHECK(peak->role == Role::weight_grad);
  CHECK(peak->max_abs >= 3);
  CHECK(peak->max_abs < 3.00001);
  CHECK(peak->at_least.value() <= 2);
  CHECK(peak->min_abs_nonzero.value() <= 1);
  CHECK(peak->min_abs_nonzero.value() > 0.99999);
  CHECK(told.noted("counts in binary32"));
  CHECK(told.leaves_open(Gap::counts));
}

TEST_CASE("W&B: all values zero are zeros, and scalars alone have no tensors") {
  const TempFolder folder;
  const Told zeros = told_of(folder.write(
      "zeros", R"({"_step": 1, "gradients/a": {"_type": "histogram", "values": [10.0],)"
               R"( "bins": [0.0, 0.0]}})"));
  REQUIRE(zeros.frame("gradients/a", 1) != nullptr);
  CHECK(zeros.frame("gradients/a", 1)->table.zero() == Interval(10));
  const Told scalars = told_of(folder.write("scalars", "{\"_step\": 3, \"loss\": 2}\n"));
  CHECK(scalars.frames.empty());
  CHECK(scalars.scalars.at(3).loss == 2.0);
  CHECK(scalars.leaves_open(Gap::tensors));
}

TEST_CASE("W&B: --recorded-scale names a scalar of the history") {
  const TempFolder folder;
  analyzers::frames::Selection selection;
  selection.scale_tag = "amp/scale";
  const auto log = folder.write("log", kRow + "\n");
  const Told told = told_of(log, selection);
  REQUIRE(told.frame("gradients/fc.weight", 7) != nullptr);
  CHECK(told.frame("gradients/fc.weight", 7)->scale == 1024);
  CHECK(told.frame("parameters/fc.weight", 7)->scale == 1);
}

TEST_CASE("W&B: hostile JSON is skipped and told") {
  const TempFolder folder;
  const std::string histogram = R"({"_step": 2, "gradients/x": {"_type": "histogram", )";
  const auto bad =
      GENERATE_COPY(std::string(2'000'000, '['), "{\"a\":" + std::string(1'000'000, '[') + "}",
                    nested_objects(), std::string("{\"a\":1e999}"), std::string("{\"a\": Infinit}"),
                    std::string("{\"a\": 1"), std::string("}"), std::string("\xff\xfe{}"));
  const Told told = told_of(folder.write("log", kRow + "\n" + bad + "\n"));
  CHECK(told.frames.size() == 2);
  CHECK(told.noted("a line is skipped; the first is line 2: is not JSON"));
  const auto odd = GENERATE_COPY(
      histogram + R"("values": [1], "bins": [1]}})", histogram + R"("values": [], "bins": []}})",
      histogram + R"("values": [], "bins": [1]}})",
      histogram + R"("values": [-1], "bins": [1, 2]}})",
      histogram + R"("values": [0.5], "bins": [1, 2]}})",
      histogram + R"("values": [1], "bins": [NaN, 2]}})",
      histogram + R"("values": [1], "bins": [2, 1]}})",
      histogram + R"("values": [1], "packedBins": {"min": 0, "size": 1, "count": 1e18}}})",
      histogram + R"("values": [1], "packedBins": {"count": 1}}})");
  INFO(odd);
  const Told other = told_of(folder.write("log", kRow + "\n" + odd + "\n"));
  CHECK(other.frames.size() == 2);
  CHECK(other.noted("a histogram is skipped; the first is 'gradients/x', step 2"));
}

TEST_CASE("W&B: NaN and infinities, bare and in strings, and the place of an error behind them") {
  const TempFolder folder;
  const Told told = told_of(
      folder.write("log",
                   "{\"_step\": 1, \"loss\": -Infinity, \"lr\": Infinity, \"a\": \"\\\"NaN\", "
                   "\"grad_norm\": NaN}\n"
                   "{\"_step\": 2, \"loss\": \"-Infinity\", \"x\": [NaN, -Infinity], \"lr\": 0.5}\n"
                   "{\"_step\": 3, \"loss\": -Infinity, \"lr\": x}\n"));
  CHECK(told.scalars.at(1).loss == -std::numeric_limits<double>::infinity());
  CHECK(told.scalars.at(1).learning_rate == std::numeric_limits<double>::infinity());
  CHECK(std::isnan(told.scalars.at(1).more.at("gradient_norm")));
  CHECK(told.scalars.at(2).loss == -std::numeric_limits<double>::infinity());
  CHECK(told.scalars.at(2).learning_rate == 0.5);
  CHECK(told.noted("the first is line 3: is not JSON at '\"lr\": x', byte 39"));
}

TEST_CASE("W&B: a step that is not a whole number is told, and its row numbered") {
  const TempFolder folder;
  const std::string rows[] = {R"({"_step": 4, "loss": 1})", R"({"_step": 1.5, "loss": 2})",
                              R"({"_step": "x", "loss": 3})", R"({"_step": 1e300, "loss": 4})",
                              R"({"_step": NaN, "loss": 5, "note": {"_step": "x"}})"};
  std::string lines = "\n", array = "[";
  for (const std::string& row : rows) {
    lines += row + "\n";
    array += (array.size() > 1 ? ",\n" : "") + row;
  }
  const Told told = told_of(folder.write("lines", lines));
  for (const std::int64_t step : {1, 2, 3, 4}) {
    REQUIRE(told.scalars.count(step) == 1);
    CHECK(told.scalars.at(step).loss == static_cast<double>(step) + 1);
  }
  CHECK(
      told.noted("\"_step\" is not a whole number: 4 times, first in line 3 (row 1: 1.5); such a "
                 "row gets its position in the file as its number, from 0"));
  const Told same = told_of(folder.write("array", array + "]"));
  CHECK(same.noted("\"_step\" is not a whole number: 4 times, the first (row 1: 1.5); such a row"));
  const Told one = told_of(folder.write("one", rows[0] + "\n" + rows[2] + "\n"));
  CHECK(one.noted("not a whole number: once, in line 2 (row 1: 'x'); such a row"));
  const Told whole = told_of(folder.write("whole", R"({"_step": 4.0, "loss": 1})"));
  CHECK(whole.scalars.count(4) == 1);
  CHECK(!whole.noted("whole number"));
  const Told text = told_of(folder.write("text", R"({"_step": "7", "loss": "2.5"})"));
  CHECK(text.scalars.at(7).loss == 2.5);
  CHECK(text.notes.empty());
}

}  // namespace test_wandb
