// SPDX-License-Identifier: Apache-2.0
// Every policy against series S1: 40 steps, traced with the frameworks' own code where that ran.
// The figures are facts about the frameworks; s1.json names the source of each.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "catch.hpp"
#include "policy/policy_run.hpp"

namespace test_s1 {

using halfscope::policy::Run;
using nlohmann::json;

json s1() {
  std::ifstream file(HALFSCOPE_SOURCE_DIR "/tests/policy/s1.json");
  REQUIRE(file);
  return json::parse(file);
}

/// What the file calls initial_scale and growth_interval, by the framework's names.
struct Names {
  std::string_view policy, initial_scale, growth_interval;
};
constexpr std::array framework_names{
    Names{"torch", "init_scale", "growth_interval"},
    Names{"apex", "init_scale", "scale_window"},
    Names{"apex-legacy", "init_scale", "scale_window"},
    Names{"apex-hysteresis", "init_scale", "growth_interval"},
    Names{"megatron", "initial_scale", "growth_interval"},
    Names{"colossalai", "initial_scale", "growth_interval"},
    Names{"deepspeed", "init_scale", "scale_window"},
    Names{"deepspeed-fused", "init_scale", "scale_window"},
    Names{"fairseq", "init_scale", "scale_window"},
    Names{"metaseq", "init_scale", "scale_window"},
    Names{"fastai1", "loss_scale", "max_noskip"},
    Names{"fastai2", "max_loss_scale", "scale_wait"},
    Names{"keras2", "initial_scale", "dynamic_growth_steps"},
    Names{"keras3", "initial_scale", "dynamic_growth_steps"},
    Names{"tf-contrib", "init_loss_scale", "incr_every_n_steps"},
    Names{"os2s-backoff", "initial_scale", "step_window"},
    Names{"os2s-logmax", "", ""},
    Names{"nnabla", "scale", "N"},
    Names{"chainer", "", "interval"},
    Names{"mxnet", "init_scale", "scale_window"},
    Names{"jmp", "loss_scale", "period"},
    Names{"flax", "scale", "growth_interval"},
    Names{"paddle", "init_loss_scaling", "incr_every_n_steps"},
    Names{"mindspore", "init_loss_scale", "scale_window"},
    Names{"mindspore-cell", "loss_scale_value", "scale_window"},
    Names{"nvcaffe", "initial_scale", ""},
};

std::string text_of(const json& value) {
  if (value.is_string()) return value.get<std::string>();
  return value.dump();
}

/// "policy,key=value,...", in the framework's names or in those of the file.
std::string policy_text(const json& trace, bool own_names) {
  std::string text = trace.at("policy");
  const auto names = std::find_if(framework_names.begin(), framework_names.end(),
                                  [&](const Names& row) { return row.policy == text; });
  INFO(text);
  REQUIRE(names != framework_names.end());
  for (const auto& [key, value] : trace.at("settings").items()) {
    std::string_view name = key;
    if (own_names && key == "initial_scale") name = names->initial_scale;
    if (own_names && key == "growth_interval") name = names->growth_interval;
    REQUIRE_FALSE(name.empty());
    text += "," + std::string(name) + "=" + text_of(value);
  }
  return text;
}

std::vector<double> magnitudes(const json& file) {
  std::vector<double> all;
  for (const json& value : file.at("amax")) {
    all.push_back(value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>());
  }
  return all;
}

/// 0: to the bit.
double tolerance_of(const std::string& policy) {
  if (policy == "os2s-logmax") return 1e-3;
  return policy == "chainer" ? 1e-12 : 0;
}

bool same_scale(double found, double wanted, double tolerance) {
  if (tolerance == 0) return found == wanted;
  return std::abs(found - wanted) <= tolerance * wanted;
}

void compare(const Run& found, const json& wanted) {
  const double tolerance = tolerance_of(wanted.at("policy"));
  const auto scales = wanted.at("scale").get<std::vector<double>>();
  REQUIRE(found.scale.size() == scales.size());
  for (std::size_t step = 0; step < scales.size(); ++step) {
    INFO("step " << step << ": scale " << found.scale[step] << ", expected " << scales[step]);
    CHECK(same_scale(found.scale[step], scales[step], tolerance));
  }
  INFO("final scale " << found.final << ", expected " << wanted.at("final").dump());
  CHECK(same_scale(found.final, wanted.at("final").get<double>(), tolerance));
  CHECK(found.skipped == wanted.at("skipped").get<std::vector<int>>());
  if (wanted.contains("overflow")) {
    CHECK(found.overflow == wanted.at("overflow").get<std::vector<int>>());
  }
  if (wanted.contains("attempts")) {
    CHECK(found.attempts == wanted.at("attempts").get<std::vector<int>>());
  }
  CHECK(wanted.at("error").is_null());
  CHECK(found.error.empty());
}

TEST_CASE("Every policy gives its S1 trace", "[policy]") {
  const json file = s1();
  const std::vector<double> amax = magnitudes(file);
  REQUIRE(amax.size() == 40);
  REQUIRE(file.at("traces").size() == 33);
  std::set<std::string> seen;
  for (const json& trace : file.at("traces")) {
    const std::string text = policy_text(trace, true);
    REQUIRE(seen.insert(text).second);
    DYNAMIC_SECTION(text) {
      const auto magnitude = [&](int step) { return amax.at(static_cast<std::size_t>(step)); };
      compare(halfscope::policy::run(text.c_str(), 40, magnitude), trace);
    }
  }
}

TEST_CASE("initial_scale and growth_interval are understood by every policy that has them",
          "[policy]") {
  const json file = s1();
  for (const json& trace : file.at("traces")) {
    const std::string own = policy_text(trace, true), general = policy_text(trace, false);
    INFO(general);
    CHECK(halfscope::policy::text_of(halfscope::policy::make(own)) ==
          halfscope::policy::text_of(halfscope::policy::make(general)));
  }
}

}  // namespace test_s1
