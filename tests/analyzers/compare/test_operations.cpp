// SPDX-License-Identifier: Apache-2.0
#include "analyzers/compare/operations.hpp"

#include <fstream>
#include <nlohmann/json.hpp>

#include "catch.hpp"
#include "halfscope/log/error.hpp"
#include "temp_folder.hpp"

namespace test_operations {

using namespace halfscope;
using namespace halfscope::analyzers;
using namespace halfscope::test;
using nlohmann::json;

json same(std::uint64_t count) { return {{"run", count}, {"emulated", count}}; }

/// An operation of 100 results of which some differ.
json operation(const std::string& name, std::uint64_t different, std::uint64_t beyond_one_ulp = 0,
               double relative_error = 0, std::uint64_t not_finite_in_one = 0) {
  return {{"operation", name},
          {"calls", 2},
          {"elements", 100},
          {"identical", 100 - different},
          {"within_one_ulp", 100 - beyond_one_ulp - not_finite_in_one},
          {"largest_ulps", beyond_one_ulp != 0 ? 90
                           : different != 0    ? 1
                                               : 0},
          {"not_finite_in_one", not_finite_in_one},
          {"largest_relative_error", relative_error},
          {"zero", {{"run", 3}, {"emulated", 4}}},
          {"subnormal", same(2)},
          {"not_finite", same(0)}};
}

json file_of(const json& operations) {
  return {{"schema", "halfscope.operations/1"},
          {"first_step", 0},
          {"last_step", 9},
          {"operations", operations}};
}

compare::Operations read(const TempFolder& folder, const std::string& text) {
  std::ofstream(folder / compare::kOperationsFile) << text;
  return compare::read_operations(folder / ".").value();
}

std::string error_of(const TempFolder& folder, const json& file) {
  try {
    read(folder, file.is_string() ? file.get<std::string>() : file.dump());
  } catch (const log::BadInput& error) {
    return error.what();
  }
  return "none";
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("operations: worst first by what is not finite, then by relative error, not by ulps") {
  const TempFolder folder;
  const compare::Operations found = read(
      folder,
      file_of({operation("copy of 3, F32", 1, 0, 1e-3),
               operation("cancels of 3, F16", 60, 50, 1e-6), operation("fits of 3, F16", 0),
               operation("far of 3, F16", 20, 2, 0x1p-9), operation("breaks of 3, F16", 1, 0, 0, 1),
               operation("rounds of 3, BF16", 30, 0, 0x1p-9)})
          .dump());
  std::vector<std::string> names;
  for (const compare::Operation& o : found.all) names.push_back(o.name);
  CHECK(names == std::vector<std::string>{"rounds of 3", "breaks of 3", "far of 3", "cancels of 3",
                                          "fits of 3", "copy of 3"});
  CHECK(found.first_step == 0);
  CHECK(found.last_step == 9);
  const compare::Operation& cancels = found.all[3];
  CHECK(cancels.dtype == Dtype::f16);
  CHECK(cancels.calls == 2);
  CHECK(cancels.different() == 60);
  CHECK(cancels.beyond_one_ulp() == 50);
  CHECK(cancels.largest_ulps == 90);
  CHECK(cancels.zero.run == 3);
  CHECK(cancels.zero.emulated == 4);
  CHECK(found.worst(Dtype::f16).name == "breaks of 3");
}

TEST_CASE("operations: formats are summed apart") {
  const TempFolder folder;
  const compare::Operations found =
      read(folder, file_of({operation("a of 3, F32", 1), operation("b of 3, F16", 7, 2, 0x1p-9),
                            operation("c of 3, F16", 0), operation("d of 3, F16", 4, 0, 0, 3)})
                       .dump());
  REQUIRE(found.formats.size() == 2);
  const compare::OperationSums& half = found.formats[0];
  CHECK(half.dtype == Dtype::f16);
  CHECK(half.operations == 3);
  CHECK(half.identical_operations == 1);
  CHECK(half.elements == 300);
  CHECK(half.elements_of_different == 200);
  CHECK(half.identical == 289);
  CHECK(half.within_one_ulp == 295);
  CHECK(half.not_finite_in_one == 3);
  CHECK(half.beyond_rounding == 2);
  CHECK(found.formats[1].elements == 100);
  CHECK(found.formats[1].beyond_rounding == 0);
}

TEST_CASE("operations: what a last rounding explains") {
  compare::Operation o;
  o.dtype = Dtype::f16;
  o.elements = 10;
  o.identical = 5;
  o.within_one_ulp = 10;
  o.largest_relative_error = 0.1;  // of subnormals: all are neighbours
  CHECK(!o.beyond_rounding());
  o.within_one_ulp = 9;
  CHECK(o.beyond_rounding());
  o.largest_relative_error = 0x1p-10;  // sums that cancel
  CHECK(!o.beyond_rounding());
  o.dtype = Dtype::bf16;
  o.largest_relative_error = 0x1.01p-7;
  CHECK(o.beyond_rounding());
  o.dtype = Dtype::f32;
  CHECK(!o.beyond_rounding());
  CHECK(compare::OperationSums{.dtype = Dtype::f16}.spacing() == 0x1p-10);
  CHECK(compare::OperationSums{.dtype = Dtype::bf16}.spacing() == 0x1p-7);
}

TEST_CASE("operations: runs without the file have none") {
  const TempFolder folder;
  CHECK(!compare::read_operations(folder / "."));
  CHECK(!compare::read_operations(folder / "nowhere"));
  std::ofstream(folder / "a.safetensors") << "x";
  CHECK(!compare::read_operations(folder / "a.safetensors"));
}

TEST_CASE("operations: what is no such file is refused, with its place") {
  const TempFolder folder;
  const json good = file_of(json::array({operation("a of 3, F16", 1)}));
  const auto changed = [&](const std::string& pointer, const json& value) {
    json file = good;
    file[json::json_pointer(pointer)] = value;
    return error_of(folder, file);
  };
  CHECK(error_of(folder, good) == "none");
  for (const std::string& text : {std::string("{"), std::string(), std::string("[1]"),
                                  std::string(100000, '['), std::string("\xff")}) {
    CHECK(has(error_of(folder, json(text)), "operations.json: is "));
  }
  CHECK(has(error_of(folder, json(std::string(100000, '['))), "nested more than 8 deep"));
  CHECK(has(changed("/schema", "halfscope.operations/2"),
            "'schema': is \"halfscope.operations/2\", expected \"halfscope.operations/1\""));
  CHECK(has(changed("/last_step", -1), "'last_step': is -1, expected a step number"));
  CHECK(has(changed("/first_step", 10), "'last_step': is 9, expected a step from 10 on"));
  CHECK(has(changed("/operations", json::array()), "'operations': is [], expected an array"));
  CHECK(has(changed("/operations/0", 3), "operation 1: is 3, expected an object"));
  CHECK(
      has(changed("/operations/0/operation", "a of 3"), "operation 1 'operation': is \"a of 3\""));
  CHECK(has(changed("/operations/0/operation", "a of 3, F8"), "F16, BF16 or F32"));
  CHECK(has(changed("/operations/0/elements", 99.5), "'elements': is 99.5, expected a count"));
  CHECK(has(changed("/operations/0/within_one_ulp", 101), "expected at most the 100 elements"));
  CHECK(has(changed("/operations/0/identical", 101), "expected at most the 100 within one ulp"));
  CHECK(has(changed("/operations/0/not_finite_in_one", 1), "expected at most the 0 elements"));
  CHECK(has(changed("/operations/0/zero/run", 101), "'zero' 'run': is 101"));
  CHECK(has(changed("/operations/0/zero", nullptr), "'zero': is null, expected an object"));
  CHECK(has(changed("/operations/0/largest_relative_error", nullptr), "expected a number from 0"));
  CHECK(has(changed("/operations/0/calls", "\x1b[2J"), "'calls': is \"\\u001b[2J\""));
  json absent = good;
  absent["operations"][0].erase("calls");
  CHECK(has(error_of(folder, absent), "operation 1 'calls': is missing, expected a value; remove"));
  json large = file_of({operation("a of 3, F16", 0), operation("b of 3, F16", 0)});
  for (json& one : large["operations"]) {
    for (const char* key : {"elements", "identical", "within_one_ulp"}) one[key] = UINT64_MAX;
  }
  CHECK(has(error_of(folder, large), "more elements together than 64 bits count"));
}

}  // namespace test_operations
