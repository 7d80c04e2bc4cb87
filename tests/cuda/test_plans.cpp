// SPDX-License-Identifier: Apache-2.0
// For every convolution that our networks ask for, cuDNN plans on an H100 that is not there:
// narrow ones on Tensor Cores, binary32 ones without (no TF32), both by deterministic engines.
//
// HALFSCOPE_DEVICE_JSON names another device's properties (as write_device writes them),
// HALFSCOPE_PLANS a file for the table of all plans.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "catch.hpp"
#include "cuda/network_calls.hpp"
#include "cuda/plans.hpp"

namespace halfscope::test::test_plans {
namespace {

using Kind = ConvolutionCall::Kind;

std::string file_of_properties() {
  const char* const given = std::getenv("HALFSCOPE_DEVICE_JSON");
  return given != nullptr ? given : HALFSCOPE_SOURCE_DIR "/tests/cuda/h100.json";
}

/// Nothing, with a line that CTest takes for a skipped test, where this cuDNN cannot.
std::optional<Planner> planner() {
  std::ifstream file(file_of_properties());
  REQUIRE(file);
  const nlohmann::json properties = nlohmann::json::parse(file).at("cudnn_device_properties");
  try {
    return std::optional<Planner>(std::in_place, properties.dump());
  } catch (const std::exception& error) {
    std::cout << "skipped: no cuDNN that plans without a device: " << error.what() << '\n';
    return std::nullopt;
  }
}

bool narrow_wants(const Engine& engine) { return engine.deterministic && engine.tensor_core; }
bool wide_wants(const Engine& engine) { return engine.deterministic && !engine.tensor_core; }

const char* name_of(Kind kind) {
  return kind == Kind::fprop ? "fprop" : kind == Kind::dgrad ? "dgrad" : "wgrad";
}

std::string text_of(const ConvolutionCall& call) {
  return fmt::format("{}{} x {} w {} stride {} padding {}", name_of(call.kind),
                     call.add ? " added" : "", fmt::join(call.x, "x"), fmt::join(call.w, "x"),
                     call.conv.stride, call.conv.padding);
}

/// What is found for one network, operation and type.
struct Sum {
  std::int64_t calls = 0, planned = 0, at_once = 0, compiled = 0, nondeterministic = 0,
               workspace = 0;

  void add(const std::vector<Engine>& engines) {
    const auto first = std::ranges::find_if(engines, &Engine::planned);
    ++calls;
    nondeterministic += std::ranges::count(engines, false, &Engine::deterministic);
    if (first == engines.end()) return;
    ++planned;
    at_once += first == engines.begin() ? 1 : 0;
    compiled += first->run_time_compiled ? 1 : 0;
    workspace = std::max(workspace, first->workspace);
  }
};

/// A table in Markdown, where a file is named for it.
void write_table(const std::map<std::string, Sum>& sums) {
  const char* const file = std::getenv("HALFSCOPE_PLANS");
  if (file == nullptr) return;
  std::ofstream out(file);
  out << "| network, operation, type | convolutions | planned | by the heuristic's first choice | "
         "compiled at run time | engines not deterministic | most workspace, KiB |\n"
         "|---|--:|--:|--:|--:|--:|--:|\n";
  for (const auto& [name, sum] : sums) {
    out << fmt::format("| {} | {} | {} | {} | {} | {} | {} |\n", name, sum.calls, sum.planned,
                       sum.at_once, sum.compiled, sum.nondeterministic,
                       (sum.workspace + 1023) / 1024);
  }
}

TEST_CASE("plans: networks ask for the convolutions that they are made of") {
  const auto calls = network_convolutions();
  const auto count = [&](const char* network, Kind kind, bool add) {
    return std::ranges::count_if(calls.at(network),
                                 [&](const auto& c) { return c.kind == kind && c.add == add; });
  };
  CHECK(count("lenet, 8 x 8", Kind::fprop, true) == 2);
  CHECK(count("lenet, 28 x 28", Kind::wgrad, true) == 2);
  CHECK(count("lenet, 28 x 28", Kind::dgrad, false) == 1);  // none into the images
  CHECK(count("tinyssd", Kind::fprop, true) == 6);          // two pairs of its heads are alike
  CHECK(count("resnet50", Kind::fprop, false) == 23);       // of its 53, alike ones once
  CHECK(count("resnet50", Kind::wgrad, false) == 23);
  CHECK(calls.at("lenet, 28 x 28")
            .contains({Kind::fprop, {5, 1, 2}, {32, 28, 28, 1}, {6, 5, 5, 1}, true}));
}

TEST_CASE("plans: an H100 has a deterministic engine for every convolution") {
  const auto plans = planner();
  if (!plans) return;
  std::map<std::string, Sum> sums;
  for (const auto& [network, calls] : network_convolutions()) {
    for (const ConvolutionCall& call : calls) {
      INFO(network << ": " << text_of(call));
      for (const Dtype dtype : {Dtype::f16, Dtype::f32}) {
        const auto wanted = dtype == Dtype::f16 ? narrow_wants : wide_wants;
        const auto engines = plans->engines(call, dtype, wanted);
        const bool any = std::ranges::any_of(engines, &Engine::planned);
        INFO(halfscope::name_of(dtype) << ", engines named: " << engines.size());
        CHECK(any);
        sums[fmt::format("{}, {}{}, {}", network, name_of(call.kind), call.add ? " added" : "",
                         halfscope::name_of(dtype))]
            .add(engines);
      }
    }
  }
  write_table(sums);
}

TEST_CASE("plans: what is refused is told apart from what is planned") {
  const auto plans = planner();
  if (!plans) return;
  const ConvolutionCall call{Kind::fprop, {3, 1, 1}, {8, 16, 16, 32}, {64, 3, 3, 32}, false};
  const auto none = plans->engines(call, Dtype::f16, [](const Engine&) { return false; });
  CHECK(!none.empty());
  CHECK(std::ranges::none_of(none, &Engine::planned));
  const auto wide = plans->engines(call, Dtype::f32, [](const Engine&) { return true; });
  // TF32 is on Tensor Cores: it is there, and has to be told from true binary32.
  CHECK(std::ranges::any_of(wide, &Engine::tensor_core));
  CHECK(std::ranges::any_of(wide, wide_wants));
  CHECK_THROWS(Planner("{}"));
}

}  // namespace
}  // namespace halfscope::test::test_plans
