// SPDX-License-Identifier: Apache-2.0
// Factors between layers. Expected exponents are worked out by hand: FP16 overflows from 65520 on,
// and one binade of headroom is to be left.
#include "analyzers/overflow/overflow.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

#include "analyzers/logs.hpp"
#include "catch.hpp"

namespace halfscope::analyzers::overflow::test_layer_shift {
namespace {

using test::Values;

constexpr const char* kSequence =
    "Sequential(\n  (fc1): Linear(in_features=4, out_features=2, bias=True)\n  (act): ReLU()\n"
    "  (fc2): Linear(in_features=2, out_features=2, bias=True)\n"
    "  (fc3): Linear(in_features=2, out_features=2, bias=True)\n)";

/// Linear layers with something between the first two, at one step.
struct Net {
  std::string text = kSequence;
  Values fc1 = {3, -70000}, act = {3, 0}, fc2 = {1, 2};
  Values weight1 = {0.5f, 0.25f}, bias1 = {1, 0}, weight2 = {4, 0.5f};
  std::optional<Dtype> computed = {};

  std::vector<LayerShift> shifts(const underflow::Target& target = {}) const {
    const test::TempFolder folder;
    log::Manifest manifest;
    if (!text.empty()) (*manifest.about)["network"] = {{"text", text}};
    log::RunLogWriter writer(folder / "run", manifest);
    const auto put = [&](const std::string& name, const Values& values, bool matrix) {
      log::TensorRecord record = test::record_of(name, 0, values);
      if (matrix) record.shape = {1, values.size()};
      if (!name.starts_with("weight")) record.computed_dtype = computed;
      writer.write(record);
    };
    put("activation/fc1", fc1, true);
    put("activation/act", act, true);
    put("activation/fc2", fc2, true);
    put("activation/fc3", {1, 2}, true);
    put("weight/fc1.weight", weight1, true);
    put("weight/fc1.bias", bias1, false);
    put("weight/fc2.weight", weight2, true);
    put("weight/fc2.bias", {1, 1}, false);
    put("weight/fc3.weight", {1, 1}, true);
    return layer_shifts(underflow::analyze({folder / "run"}, target, {}));
  }
};

/// A network's text with another class between the two.
std::string with(const std::string& type) {
  std::string text = kSequence;
  return text.replace(text.find("ReLU"), 4, type);
}

TEST_CASE("the least power of two that leaves a binade of headroom", "[layer_shift]") {
  for (const auto& [largest, log2] : {std::pair{65520.0f, 2},
                                      {65519.0f, 0},   // rounds to 65504
                                      {131039.0f, 2},  // a fourth is below 32760
                                      {131040.0f, 3},  // a fourth is 32760, twice that 65520
                                      {1.5e6f, 6},     // 1.5e6 / 64 is 23437.5
                                      {1e30f, 86}}) {  // 1e30 is 2^99.66
    const auto found = Net{.fc1 = {1, -largest}}.shifts();
    CAPTURE(largest);
    if (log2 == 0 || log2 > 12) {  // nothing overflows; fc2's largest weight is 2^2
      CHECK(found.empty());
      continue;
    }
    REQUIRE(found.size() == 1);
    CHECK(found[0].log2 == log2);
    CHECK(found[0].max_abs == largest);
  }
}

TEST_CASE("a shift names its layers and what it does to weights", "[layer_shift]") {
  const auto found = Net().shifts();
  REQUIRE(found.size() == 1);
  CHECK(found[0].activation == "activation/fc1");
  CHECK(found[0].layer == "fc1");
  CHECK(found[0].next == "fc2");
  CHECK(found[0].next_max_abs == 16);
  CHECK(found[0].of == Interval(3));  // bias 0 is no value
  CHECK(found[0].flushed == Interval(0));
  CHECK(found[0].subnormal == Interval(0));
  CHECK(found[0].in_sequence);
  CHECK_FALSE(found[0].censored);
  CHECK(found[0].between.empty());
}

TEST_CASE("weights that become subnormal or zero are counted", "[layer_shift]") {
  // Times 2^-2: 2^-13 becomes subnormal, 2^-24 becomes 2^-26, which is 0; 2^-12 stays normal;
  // 2^-30 is 0 before.
  const float p = 0.5f;
  const auto found = Net{.weight1 = {std::ldexp(p, -12), std::ldexp(p, -23), std::ldexp(p, -11)},
                         .bias1 = {1, std::ldexp(p, -29)}}
                         .shifts();
  REQUIRE(found.size() == 1);
  CHECK(found[0].log2 == 2);
  CHECK(found[0].of == Interval(5));
  CHECK(found[0].flushed == Interval(1));
  CHECK(found[0].subnormal == Interval(1));
}

TEST_CASE("the next layer's weights must hold the factor", "[layer_shift]") {
  CHECK(Net{.weight2 = {16379, 1}}.shifts().size() == 1);  // times 4: 65516
  CHECK(Net{.weight2 = {16380, 1}}.shifts().empty());      // times 4: 65520
  CHECK(Net{.weight2 = {INFINITY, 1}}.shifts().empty());
}

TEST_CASE("an activation between the layers may be the largest", "[layer_shift]") {
  const auto found = Net{.fc1 = {70000, 1}, .act = {300000, 1}}.shifts();
  REQUIRE(found.size() == 1);
  CHECK(found[0].activation == "activation/act");
  CHECK(found[0].log2 == 4);  // 300000 / 16 = 18750
}

TEST_CASE("every layer that overflows has its own factor", "[layer_shift]") {
  const auto found = Net{.fc2 = {-140000, 2}}.shifts();
  REQUIRE(found.size() == 2);
  CHECK(found[0].layer == "fc1");
  CHECK(found[0].log2 == 2);
  CHECK(found[1].layer == "fc2");
  CHECK(found[1].next == "fc3");
  CHECK(found[1].log2 == 3);  // 140000 / 8 is 17500
}

TEST_CASE("infinities of FP16 hide the size, and only the first of a step count", "[layer_shift]") {
  const Net overflowed{
      .fc1 = {INFINITY, 1}, .act = {INFINITY, 0}, .fc2 = {INFINITY, 1}, .computed = Dtype::f16};
  const auto found = overflowed.shifts();
  REQUIRE(found.size() == 1);
  CHECK(found[0].censored);
  CHECK(found[0].max_abs == 65520);
  CHECK(found[0].log2 == 2);
  CHECK(found[0].activation == "activation/fc1");
  CHECK(Net{.fc1 = {INFINITY, NAN}, .computed = Dtype::f16}.shifts().empty());
  CHECK(Net{.fc1 = {INFINITY, 1}, .computed = Dtype::f32}.shifts().empty());  // the model's
  CHECK(
      Net{.fc1 = {INFINITY, 1}, .weight1 = {INFINITY, 1}, .computed = Dtype::f16}.shifts().empty());
  const underflow::Target bfloat16{"bfloat16", kBfloat16};
  CHECK(overflowed.shifts(bfloat16).empty());
  CHECK(Net().shifts(bfloat16).empty());
}

TEST_CASE("only what commutes with a positive factor may stand between", "[layer_shift]") {
  for (const char* type : {"ReLU", "LeakyReLU", "MaxPool2d", "AdaptiveAvgPool1d", "Dropout",
                           "Dropout2d", "Flatten", "Identity", "ZeroPad2d"}) {
    CAPTURE(type);
    const auto found = Net{.text = with(type)}.shifts();
    REQUIRE(found.size() == 1);
    CHECK(found[0].in_sequence);
  }
  for (const char* type : {"GELU", "SiLU", "ReLU6", "Tanh", "Softmax", "AlphaDropout", "LSTM",
                           "Own", "Pool", "MaxPool4d"}) {
    CAPTURE(type);
    CHECK(Net{.text = with(type)}.shifts().empty());
  }
}

TEST_CASE("without the network's text the shift has conditions", "[layer_shift]") {
  const auto found = Net{.text = ""}.shifts();
  REQUIRE(found.size() == 1);
  CHECK_FALSE(found[0].in_sequence);
  CHECK(found[0].between == std::vector<std::string>{"act"});
  std::string own = kSequence;
  own.replace(0, 10, "Net");
  const auto of_own = Net{.text = own}.shifts();
  REQUIRE(of_own.size() == 1);
  CHECK_FALSE(of_own[0].in_sequence);
  CHECK(of_own[0].between.empty());
}

TEST_CASE("a Sequential with something unrecorded between the layers", "[layer_shift]") {
  std::string text = kSequence;
  const auto add = [&](const std::string& line) {
    return std::string(text).insert(text.find("  (fc2)"), line);
  };
  CHECK(Net{.text = add("  (drop): Dropout(p=0.5, inplace=False)\n")}.shifts().size() == 1);
  CHECK(Net{.text = add("  (more): Softplus(beta=1)\n")}.shifts().empty());
  CHECK(Net{.text = add("  (block): Block(\n    (relu): ReLU()\n  )\n")}.shifts().empty());
}

TEST_CASE("layers that cannot take or give a factor", "[layer_shift]") {
  const auto linear_as = [](const char* layer, const char* type) {
    std::string text = kSequence;
    const std::size_t at = text.find("Linear", text.find(layer));
    return text.replace(at, 6, type);
  };
  CHECK(Net{.text = linear_as("(fc1)", "BatchNorm1d")}.shifts().size() == 1);
  CHECK(Net{.text = linear_as("(fc1)", "LSTM")}.shifts().empty());
  CHECK(Net{.text = linear_as("(fc2)", "Conv2d")}.shifts().size() == 1);
  CHECK(Net{.text = linear_as("(fc2)", "BatchNorm1d")}.shifts().empty());
}

}  // namespace
}  // namespace halfscope::analyzers::overflow::test_layer_shift
