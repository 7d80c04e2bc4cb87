// SPDX-License-Identifier: Apache-2.0
#include "reports/page/page.hpp"

#include <nlohmann/json.hpp>

#include <fstream>
#include <iterator>

#include "catch.hpp"
#include "halfscope/log/error.hpp"
#include "reports/answer/series.hpp"
#include "reports/charts/charts.hpp"
#include "reports/page/worst.hpp"
#include "reports/sample.hpp"
#include "temp_folder.hpp"

namespace test_page {

using namespace halfscope;
using namespace halfscope::reports;
using halfscope::test::TempFolder;
namespace fs = std::filesystem;

analyzers::underflow::Analysis analysis_of(const std::vector<fs::path>& logs) {
  return analyzers::underflow::analyze(logs, {}, {});
}

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::uint64_t total(const std::vector<analyzers::underflow::BinadeCount>& binades) {
  std::uint64_t out = 0;
  for (const auto& binade : binades) out += binade.count.high;
  return out;
}

analyzers::Study study_of(const analyzers::underflow::Analysis& analysis) {
  analyzers::Study out;
  out.analysis = analysis;
  out.advice = analyzers::recommend::recommend({analysis, {}, {}});
  return out;
}

TEST_CASE("sums over a role hold every value once", "[reports][series]") {
  const TempFolder folder;
  sample::training_run(folder / "run");
  const analyzers::underflow::Analysis analysis = analysis_of({folder / "run"});
  const answer::Tensors gradients =
      answer::of_role(answer::of_log(analysis.logs[0]), log::Role::weight_grad);
  REQUIRE(gradients.size() == 8);
  const answer::Series series = answer::sum(gradients);
  CHECK(series.counts.total == 400U * 36 * 10);
  CHECK(total(series.binades) == series.counts.finite_nonzero);
  CHECK(series.columns.size() == 10);
  std::uint64_t in_columns = 0;
  for (const answer::Column& column : series.columns) in_columns += total(column.binades);
  CHECK(in_columns == series.counts.finite_nonzero);
  const std::size_t at_1 = static_cast<std::size_t>(-analyzers::underflow::kFirstLog2Scale);
  CHECK(answer::by_scale(gradients, {}).at(at_1) == series.counts.classes);
}

TEST_CASE("long runs are drawn with several steps a column", "[reports][series]") {
  analyzers::underflow::TensorFindings tensor;
  for (std::int64_t step = 0; step < 1000; ++step) {
    analyzers::underflow::StepFindings findings;
    findings.step = step * 10;
    findings.binades = {{-3, std::uint64_t{7}}};
    tensor.per_step.push_back(findings);
  }
  const answer::Series series = answer::sum({&tensor});
  CHECK(series.recorded_steps == 1000);
  REQUIRE(series.columns.size() <= answer::kMostColumns);
  std::uint64_t values = 0;
  std::int64_t after = -1;
  for (const answer::Column& column : series.columns) {
    CHECK(column.first_step > after);
    after = column.last_step;
    values += total(column.binades);
  }
  CHECK(values == 7000);
  CHECK(after == 9990);
}

TEST_CASE("charts show all values and both sets of limits", "[reports][charts]") {
  const TempFolder folder;
  sample::training_run(folder / "run");
  const analyzers::underflow::Analysis analysis = analysis_of({folder / "run"});
  const analyzers::recommend::Recommendation advice =
      analyzers::recommend::recommend({analysis, {}, {}});
  REQUIRE(advice.static_log2);
  REQUIRE(*advice.static_log2 != 0);
  const charts::Window window = charts::window_of(analysis, advice);
  for (const log::Role role : answer::roles_in(analysis)) {
    const answer::Series series =
        answer::sum(answer::of_role(answer::of_log(analysis.logs[0]), role));
    std::uint64_t shown = 0;
    for (const auto& [exponent, count] : series.binades) {
      if (exponent >= window.first_exponent && exponent < window.last_exponent) shown += count.low;
    }
    CHECK(shown * 100 >= series.counts.finite_nonzero.low * 98);
  }
  const std::string drawn = charts::series_parameters(window).dump();
  for (const std::string& label : {std::string("2^-25"), std::string("2^-14"), std::string("65520"),
                                   "2^" + std::to_string(-25 - *advice.static_log2),
                                   "2^" + std::to_string(-14 - *advice.static_log2)}) {
    CAPTURE(label);
    CHECK(drawn.find("\"" + label + "\"") != std::string::npos);
  }
}

TEST_CASE("values far out do not press the rest together, and are told of", "[reports][charts]") {
  analyzers::underflow::Analysis analysis;
  analysis.logs.resize(1);
  analyzers::underflow::TensorFindings tensor;
  tensor.binades = {{-140, std::uint64_t{3}},
                    {-60, std::uint64_t{7}},
                    {-10, std::uint64_t{2000}},
                    {100, std::uint64_t{1}}};
  analysis.logs[0].tensors = {tensor};
  const charts::Window window = charts::window_of(analysis, {});
  CHECK(window.first_exponent == -29);  // four binades below the limit of zero
  CHECK(window.last_exponent == 20);
  CHECK(charts::left_out(window, tensor.binades.list()) ==
        " Not drawn: 10 values below 2^-29. Not drawn: 1 value at or above 2^20.");
  tensor.binades = {{-60, std::uint64_t{500}}, {-10, std::uint64_t{500}}};
  analysis.logs[0].tensors = {tensor};
  CHECK(charts::window_of(analysis, {}).first_exponent == -60);
  CHECK(charts::left_out(charts::window_of(analysis, {}), tensor.binades.list()).empty());
}

TEST_CASE("the worst tensor is one that a loss scale acts on", "[reports][worst]") {
  const TempFolder folder;
  sample::training_run(folder / "run");
  const analyzers::underflow::Analysis analysis = analysis_of({folder / "run"});
  CHECK(analysis.logs[0].tensors[page::worst_tensor(analysis)].name ==
        "weight_grad/layer0.conv.weight");
  CHECK(page::worst_tensor({}) == 0);
}

TEST_CASE("a report appears whole or not at all", "[reports][page]") {
  if (!page::has_charts()) return;
  const TempFolder folder;
  sample::no_gradients_run(folder / "run");
  const analyzers::underflow::Analysis analysis = analysis_of({folder / "run"});
  const analyzers::Study study = study_of(analysis);
  const fs::path out = folder / "report.html";
  std::ofstream(out) << "the old one";
  page::write_report(study, "t", out);
  CHECK(text_of(out) == page::page_html(study, "t"));
  std::size_t files = 0;
  for (const auto& entry : fs::directory_iterator(out.parent_path()))
    files += entry.is_regular_file();
  CHECK(files == 1);  // nothing temporary is left

  const fs::path nowhere = folder / "missing" / "report.html";
  CHECK_THROWS_AS(page::write_report(study, "t", nowhere), log::BadInput);
  CHECK_THROWS_WITH(page::write_report(study, "t", nowhere), Catch::Contains("missing"));
  CHECK_THROWS_AS(page::write_report(study, "t", out.parent_path()), log::BadInput);
}

TEST_CASE("without the charts' script a report is refused with the way out", "[reports][page]") {
  if (page::has_charts()) return;
  CHECK_THROWS_AS(page::page_html({}, "t"), page::MissingPart);
  CHECK_THROWS_WITH(page::page_html({}, "t"), Catch::Contains("vl-convert-python"));
}

}  // namespace test_page
