// SPDX-License-Identifier: Apache-2.0
// The picture at the top of the page, and what it says in words.
#include "reports/page/sections.hpp"

#include <nlohmann/json.hpp>

#include "catch.hpp"
#include "reports/charts/charts.hpp"
#include "reports/sample.hpp"
#include "reports/sample_study.hpp"
#include "temp_folder.hpp"

namespace test_gradients {

using namespace halfscope;
using namespace halfscope::reports;
using halfscope::test::TempFolder;

/// 100 gradient values of magnitude 2^-30, 300 of 2^-20, 100 of 2^18: flushed, kept, overflow.
analyzers::underflow::Analysis of_three_binades() {
  analyzers::underflow::TensorFindings tensor;
  tensor.name = "weight_grad/w";
  tensor.role = log::Role::weight_grad;
  tensor.loss_scaled = true;
  tensor.binades = {{-30, std::uint64_t{100}}, {-20, std::uint64_t{300}}, {18, std::uint64_t{100}}};
  tensor.counts.total = 500;
  tensor.counts.finite_nonzero = 500;
  tensor.counts.classes = {.flushed_to_zero = 100, .subnormal = 300, .normal = 0, .overflow = 100};
  tensor.per_step.push_back({});
  analyzers::underflow::Analysis out;
  out.logs.resize(1);
  out.logs[0].tensors = {tensor};
  return out;
}

bool has(const std::string& text, const std::string& what) {
  UNSCOPED_INFO("looked for " << what << " in " << text);
  return text.find(what) != std::string::npos;
}

TEST_CASE("the picture of all gradients says in a line what is lost", "[reports][gradients]") {
  const std::string html = page::gradients_html(of_three_binades(), {});
  CHECK(has(html, "data-chart=\"gradients\" data-series=\"gradients\""));
  CHECK(has(html,
            "Unscaled magnitudes of 500 finite nonzero values: weight_grad (1 tensor, 1 step). The "
            "bar at 2^e holds 2^e up to 2^(e+1). "));
  CHECK(has(html, "20.0 % become zero without loss scaling; "));
  CHECK(has(html, "20.0 % overflow without loss scaling."));
  CHECK(!has(html, "recommended"));
  CHECK(!has(html, "swatch zero saved"));  // one scale: nothing is saved by another
}

TEST_CASE("the picture compares with the recommended scale", "[reports][gradients]") {
  const TempFolder folder;
  const analyzers::Study study = sample::full_study(folder / "run");
  REQUIRE(study.advice.static_log2);
  const std::string html = page::gradients_html(study.analysis, study.advice);
  CHECK(has(html, "at the recommended "));
  CHECK(has(html, "<span class=\"swatch zero saved\"></span><span class=\"swatch zero solid\">"));
}

TEST_CASE("without gradients there is no empty frame", "[reports][gradients]") {
  CHECK(page::gradients_html({}, {}).empty());
  analyzers::underflow::Analysis analysis = of_three_binades();
  analysis.logs.push_back(analysis.logs[0]);
  analysis.logs[1].tensors[0].loss_scaled = false;
  analysis.logs[0].name = "a";
  analysis.logs[1].name = "b";
  const std::string html = page::gradients_html(analysis, {});
  CHECK(has(html, "<div data-log=\"0\"><code>a</code>: Unscaled magnitudes of 500 "));
  CHECK(!has(html, "data-log=\"1\""));
}

TEST_CASE("the picture has the limits at both scales", "[reports][gradients]") {
  analyzers::recommend::Recommendation advice;
  advice.static_log2 = 10;
  const charts::Window window = charts::gradient_window(of_three_binades(), advice);
  const nlohmann::ordered_json drawn = charts::gradient_parameters(window);
  CHECK(drawn["limits-now"][0] == -25);
  CHECK(drawn["limits-now"][1] == -14);
  CHECK(drawn["limits-then"][0] == -35);
  CHECK(drawn["limits-then"][1] == -24);
  REQUIRE(drawn["classes-shown"].size() == 2);
  CHECK(drawn["classes-shown"][1]["title"] == "at scale 2^10");
  const nlohmann::ordered_json alone =
      charts::gradient_parameters(charts::gradient_window(of_three_binades(), {}));
  CHECK(alone["limits-then"] == alone["limits-now"]);
  CHECK(alone["classes-shown"].size() == 1);
  CHECK(alone["limits"][0]["place"] == "alone");
}

TEST_CASE("its window is the gradients', whatever else is in the log", "[reports][gradients]") {
  analyzers::underflow::Analysis analysis = of_three_binades();
  analysis.logs[0].tensors.push_back(analysis.logs[0].tensors[0]);
  analyzers::underflow::TensorFindings& weight = analysis.logs[0].tensors.back();
  weight.loss_scaled = false;
  weight.role = log::Role::weight;
  weight.binades = {{-90, std::uint64_t{100}}, {-10, std::uint64_t{100}}};
  CHECK(charts::gradient_window(analysis, {}).first_exponent == -30);
  CHECK(charts::window_of(analysis, {}).first_exponent == -90);
}

}  // namespace test_gradients
