// SPDX-License-Identifier: Apache-2.0
// The section on loss-scaling policies: lines, marks, and what is left out of long ones. Studies
// are put together by hand or replayed from small series.
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "analyzers/study.hpp"
#include "catch.hpp"
#include "reports/answer/answer.hpp"
#include "reports/answer/findings.hpp"
#include "reports/answer/policy_lines.hpp"
#include "reports/answer/text.hpp"
#include "reports/charts/charts.hpp"
#include "reports/export/json.hpp"
#include "reports/page/page_data.hpp"
#include "reports/page/sections.hpp"
#include "reports/sample_policies.hpp"
#include "reports/sample_series.hpp"
#include "temp_folder.hpp"

namespace test_policies {

using namespace halfscope;
using namespace halfscope::reports;
using analyzers::replay::PolicyStudy;
using analyzers::replay::StepSeries;
using analyzers::replay::Trace;
using test::has;
using test::steps;
using test::TempFolder;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

analyzers::Study study_of(const std::filesystem::path& log) {
  return analyzers::study(analyzers::analyze({log}, {}, {}, {.series = true}, {}), {}, {},
                          analyzers::replay::PolicyOptions());
}

std::size_t policy_findings(const analyzers::Study& study) {
  const auto all = answer::findings(study);
  return static_cast<std::size_t>(std::count_if(
      all.begin(), all.end(),
      [](const answer::Finding& f) { return f.evidence == answer::Evidence::policies; }));
}

TEST_CASE("lines break at blanks and are indented", "[reports]") {
  CHECK(answer::wrapped_text("one two three", 20, 2) == "one two three\n");
  CHECK(answer::wrapped_text("one two three four", 8, 2) == "one two\n  three\n  four\n");
  CHECK(answer::wrapped_text("  averyveryverylongword and", 8, 4) ==
        "  averyveryverylongword\n    and\n");
}

TEST_CASE("short lines are drawn whole", "[reports][policies]") {
  Trace trace;
  trace.length = 10;
  trace.scale = {{0, 4.0}, {3, 2.0}, {7, 0.0}};
  const auto drawn = answer::plateaus(trace);
  REQUIRE(drawn.size() == 2);  // nothing is drawn at 0
  CHECK(drawn[0].first == 0);
  CHECK(drawn[0].last == 2);
  CHECK(drawn[0].until == 3);
  CHECK(drawn[0].scale == 4);
  CHECK(drawn[1].last == 6);
}

TEST_CASE("long lines keep their extremes", "[reports][policies]") {
  Trace trace;
  trace.length = 100000;
  for (std::size_t i = 0; i < trace.length; ++i) {
    trace.scale.emplace_back(i, i == 54321   ? 0x1p20
                                : i == 54322 ? 0x1p-20
                                : i % 2 == 0 ? 1.0
                                             : 1.5);
  }
  const auto drawn = answer::plateaus(trace);
  CHECK(drawn.size() <= answer::kScalesDrawn + 2);
  CHECK(drawn.size() > answer::kScalesDrawn / 2);
  const auto [least, most] = std::minmax_element(
      drawn.begin(), drawn.end(),
      [](const answer::Plateau& a, const answer::Plateau& b) { return a.scale < b.scale; });
  CHECK(least->scale == 0x1p-20);
  CHECK(least->first == 54322);
  CHECK(most->scale == 0x1p20);
  CHECK(most->first == 54321);
  for (std::size_t i = 0; i + 1 < drawn.size(); ++i) {
    CHECK(drawn[i].until == drawn[i + 1].first);
    CHECK(drawn[i].last < drawn[i].until);
  }
}

TEST_CASE("marks count every step once, by what happened", "[reports][policies]") {
  StepSeries series = steps(1000, 1);
  Trace trace;
  trace.length = 1000;
  trace.scale = {{0, 8.0}, {500, 4.0}};
  for (std::int64_t i = 0; i < 1000; i += 2) trace.skipped.push_back(i);
  trace.unknown = {5, 7};
  series.seen[10] = {kNan, 0};       // at every scale
  series.seen[12] = {kNan, 0x1p10};  // above a scale
  trace.applied_nonfinite = {11};
  trace.attempts = {{13, 2}, {14, 2}};  // 14 was skipped in the end
  const auto found = answer::marks(trace, series);
  std::uint64_t overflow = 0;
  std::size_t drawn = 0;
  for (const answer::Mark& mark : found) {
    if (mark.what == answer::Happening::overflow) {
      overflow += mark.count;
      ++drawn;
      CHECK(mark.first <= mark.last);
      CHECK(mark.scale == (mark.first < 500 ? 8 : 4));
    }
  }
  CHECK(overflow == 500 - 1);
  CHECK(drawn <= answer::kMarksDrawn);
  const auto steps_of = [&](answer::Happening what) {
    std::vector<std::int64_t> out;
    for (const answer::Mark& mark : found) {
      if (mark.what == what) out.push_back(mark.first);
    }
    return out;
  };
  CHECK(steps_of(answer::Happening::in_model) == std::vector<std::int64_t>{10});
  CHECK(steps_of(answer::Happening::unknown) == std::vector<std::int64_t>{5, 7});
  CHECK(steps_of(answer::Happening::applied) == std::vector<std::int64_t>{11});
  CHECK(steps_of(answer::Happening::retried) == std::vector<std::int64_t>{13});
}

TEST_CASE("a policy whose every step is unknown is not drawn", "[reports][policies]") {
  Trace trace;
  trace.length = 4;
  trace.scale = {{0, 8.0}};
  trace.unknown = {0, 1, 2, 3};
  analyzers::replay::PolicyStudy study;
  study.series = steps(4, 1);
  study.traces = {trace};
  study.groups = {{0}};
  CHECK(answer::policy_lines(study).empty());
  study.fixed = trace;
  CHECK(answer::policy_lines(study).empty());
  study.traces[0].unknown.pop_back();
  CHECK(answer::policy_lines(study).size() == 2);
}

TEST_CASE("a run that skips too often is a finding, with its cure", "[reports][policies]") {
  const TempFolder folder;
  sample::restless_run(folder / "run");
  const analyzers::Study study = study_of(folder / "run");
  REQUIRE(study.policies.size() == 1);
  REQUIRE(study.policies[0].check);
  CHECK(!study.policies[0].check->first_difference);
  CHECK(policy_findings(study) >= 1);
  const auto lines = answer::policy_lines(study.policies[0]);
  CHECK(lines.size() <= answer::kPoliciesDrawn);
  CHECK(lines.front().name.starts_with("the run itself"));
  CHECK(lines.back().fixed);
  CHECK(has(lines[lines.size() - 2].name, "best found: torch"));
  const auto own = page::own_charts_json(study);
  CHECK(!own["policy-scales"]["rows"]["0"]["all"].empty());
  CHECK(!own["policy-flushed"]["rows"]["0"]["all"].empty());
  const std::string html = page::sections_of(study, answer::answer_of(study)).html;
  CHECK(has(html, "<details class=\"section\" id=\"policies\">"));
  for (const char* row : {"the run itself", "recommended static scale", "best found: torch"}) {
    CHECK(has(html, std::string("<tr class=\"marked\"><th scope=\"row\">") + row));
  }
  CHECK(has(html, "<p>For PyTorch:</p>\n<div class=\"paste\"><pre tabindex=\"0\">scaler ="));
  const std::string marks = own["policy-scales"]["parameters"]["marks"].dump();
  CHECK(has(marks, "skipped: overflow by the scale"));
  CHECK(!has(marks, "tried again"));  // a legend of what occurs
}

TEST_CASE("policies as JSON are whole in any pieces", "[reports][policies]") {
  PolicyStudy study;
  study.series = steps(100000, 0.5);
  study.series.seen[3].max_abs = kNan;
  study.series.retried[5] = {{1e6, 0}, {0.5, 0}};
  study.traces = analyzers::replay::replay(
      {policy::make("chainer,interval=3"), policy::make("nnabla"), policy::make("te-delayed"),
       policy::make("keras3,dynamic_growth_steps=1")},
      study.series);
  study.recorded = study.traces[1];
  study.recorded->name = "recorded";
  std::string text;
  std::size_t pieces = 0;
  std::vector<PolicyStudy> studies;
  studies.push_back(std::move(study));
  exports::write_traces(studies, {.with_recorded = true}, [&](std::string_view piece) {
    CHECK(piece.size() < 1 << 17);
    text += piece;
    ++pieces;
  });
  CHECK(pieces > 10);
  const auto all = nlohmann::json::parse(text);
  REQUIRE(all.size() == 5);
  for (std::size_t i = 0; i < 4; ++i) {
    const Trace& trace = studies[0].traces[i];
    const auto& entry = all[i];
    CHECK(entry["policy"] == trace.name);
    if (!trace.unavailable.empty()) continue;
    REQUIRE(entry["scale"].size() == trace.length);
    REQUIRE(entry["attempts"].size() == trace.length);
    bool same = true;
    for (std::size_t step = 0; step < trace.length; ++step) {
      const double scale = trace.scale_at(step);
      same = same && (std::isfinite(scale) ? entry["scale"][step] == scale
                                           : entry["scale"][step].is_null());
      const auto tried = trace.attempts.find(step);
      same = same && entry["attempts"][step] == (tried == trace.attempts.end() ? 1 : tried->second);
    }
    CHECK(same);
    CHECK(entry["skipped"] == nlohmann::json(trace.skipped));
    CHECK(entry["overflow"] == nlohmann::json(trace.overflow));
    CHECK(entry["applied_nonfinite"] == nlohmann::json(trace.applied_nonfinite));
  }
  CHECK(all[4]["policy"] == "recorded");
  text.clear();
  exports::write_traces({}, {.with_recorded = true},
                        [&](std::string_view piece) { text += piece; });
  CHECK(nlohmann::json::parse(text) == nlohmann::json::array());
}

TEST_CASE("a calm run is no finding", "[reports][policies]") {
  const TempFolder folder;
  sample::calm_run(folder / "run");
  const analyzers::Study study = study_of(folder / "run");
  REQUIRE(study.policies.size() == 1);
  CHECK(policy_findings(study) == 0);
}

TEST_CASE("missing steps are said instead of replayed", "[reports][policies]") {
  const TempFolder folder;
  sample::gap_run(folder / "run");
  const analyzers::Study study = study_of(folder / "run");
  CHECK(study.policies.empty());
  REQUIRE(study.not_replayed.size() == 1);
  const std::string html = page::sections_of(study, answer::answer_of(study)).html;
  CHECK(has(html, "holds step 49 and then step 60: the steps between have no scalars"));
  CHECK(has(html, "--assume-constant-between"));
  CHECK(!has(html, "data-chart=\"policy-scales\""));
}

TEST_CASE("series are of binary16 alone", "[reports][policies]") {
  const TempFolder folder;
  sample::calm_run(folder / "run");
  const auto series_in = [&](const analyzers::underflow::Target& target) {
    return analyzers::analyze({folder / "run"}, target, {}, {.series = true}, {})
        .series.series.size();
  };
  CHECK(series_in({}) == 1);
  CHECK(series_in({.name = "bfloat16", .format = kBfloat16}) == 0);
}

}  // namespace test_policies
