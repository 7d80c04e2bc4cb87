// SPDX-License-Identifier: Apache-2.0
// The JSON of many tensors as a stream: the bytes of the document that holds them all.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "analyzers/study.hpp"
#include "catch.hpp"
#include "halfscope/log/safetensors.hpp"
#include "reports/export/json.hpp"
#include "temp_folder.hpp"

namespace test_findings_json {

using namespace halfscope;
using reports::exports::json_text;
using reports::exports::to_json;
using reports::exports::write_findings;

/// So many tensors of three values each, no two alike.
std::filesystem::path write_log(const test::TempFolder& folder, std::size_t tensors) {
  std::vector<float> values;
  for (std::size_t i = 0; i < 3 * tensors; ++i) {
    values.push_back(static_cast<float>(i % 7) * std::ldexp(1.0f, -static_cast<int>(i % 40)));
  }
  std::vector<log::NamedTensor> named;
  for (std::size_t i = 0; i < tensors; ++i) {
    const auto* data = reinterpret_cast<const std::byte*>(values.data() + 3 * i);
    named.push_back({fmt::format("weight_grad/w{:04}", i), {3}, {Dtype::f32, data, 3}});
  }
  log::write_safetensors(folder / "log.safetensors", named);
  return folder / "log.safetensors";
}

TEST_CASE("findings are written in pieces as they are whole", "[reports][json]") {
  const std::size_t tensors = GENERATE(1, 255, 256, 257, 1000);
  const bool formats = GENERATE(false, true);
  CAPTURE(tensors, formats);
  const test::TempFolder folder;
  const analyzers::Findings found =
      analyzers::analyze({write_log(folder, tensors)}, {}, {}, {.formats = formats}, {});
  std::string pieces;
  std::size_t largest = 0;
  write_findings(found, [&](std::string_view piece) {
    pieces += piece;
    largest = std::max(largest, piece.size());
  });
  reports::exports::Part all{{}, found.peaks};
  for (const auto& tensor : found.analysis.tensors()) all.tensors.push_back(&tensor);
  CHECK(pieces == json_text(reports::exports::to_json(found, all)));
  CHECK(nlohmann::json::parse(pieces).at("tensors").size() == tensors);
  auto taken = nlohmann::ordered_json::array();
  auto values = reports::exports::to_json(
      found, [&](nlohmann::ordered_json&& tensor) { taken.push_back(std::move(tensor)); });
  CHECK(values.at("tensors").empty());
  values["tensors"] = std::move(taken);
  CHECK(pieces == json_text(values));
  CHECK(largest < 100'000);
}

TEST_CASE("json: a count that nothing bounds has no upper end") {
  CHECK(to_json(Interval(7)).dump() == "7");
  CHECK(to_json(Interval(2, 9)).dump() == "[2,9]");
  CHECK(to_json(Interval(1, std::numeric_limits<std::uint64_t>::max())).dump() == "[1,null]");
}

}  // namespace test_findings_json
