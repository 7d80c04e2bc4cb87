// SPDX-License-Identifier: Apache-2.0
// What a page says of updates, overflow, formats and the rest of a recommendation.
#include <nlohmann/json.hpp>

#include "reports/page/sections.hpp"

#include <algorithm>

#include "analyzers/formats/format_fit.hpp"
#include "catch.hpp"
#include "reports/answer/answer.hpp"
#include "reports/answer/formats.hpp"
#include "reports/answer/overflow.hpp"
#include "reports/answer/text.hpp"
#include "reports/answer/updates.hpp"
#include "reports/page/html.hpp"
#include "reports/page/page.hpp"
#include "reports/page/page_data.hpp"
#include "reports/sample_study.hpp"
#include "temp_folder.hpp"

namespace test_sections {

using namespace halfscope;
using namespace halfscope::reports;
using halfscope::test::TempFolder;

std::size_t occurrences(const std::string& text, const std::string& what) {
  std::size_t out = 0;
  for (auto at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++out;
  return out;
}

bool has(const std::string& text, const std::string& what) {
  UNSCOPED_INFO("looked for " << what);
  return occurrences(text, what) > 0;
}

answer::Section updates_of(const analyzers::underflow::Analysis& analysis) {
  return answer::updates_section(analysis, answer::all_tensors(analysis));
}

std::string headroom_html(const analyzers::Study& study) {
  return page::table_html(answer::headroom_table(study));
}

std::string events_html(const analyzers::Study& study) {
  std::string out;
  for (const answer::Section& event : answer::event_sections(study)) {
    out += page::section_html(event);
  }
  return out;
}

std::string formats_html(const analyzers::Study& study) {
  return page::table_html(answer::formats_table(study.analysis));
}

page::Sections sections_of(const analyzers::Study& study) {
  return page::sections_of(study, answer::answer_of(study));
}

TEST_CASE("parts a study does not have are not on the page", "[reports][sections]") {
  const TempFolder folder;
  sample::training_run(folder / "run");
  const analyzers::Study study = sample::study_of({folder / "run"});
  CHECK(updates_of(study.analysis).empty());
  CHECK(answer::event_sections(study).empty());
  CHECK(answer::headroom_table(study).empty());
  CHECK(answer::formats_section(study).empty());
  CHECK(page::tables_html({}, answer::Evidence::advice).empty());
  CHECK(page::own_charts_json(study).empty());
  CHECK(!has(sections_of(study).html, "id=\"updates\""));
  CHECK(!has(sections_of(study).html, "id=\"formats\""));
  CHECK(sections_of({}).html.empty());
}

TEST_CASE("updates of all weights together", "[reports][sections]") {
  const TempFolder folder;
  const analyzers::Study study = sample::full_study(folder / "run");
  const answer::UpdateSum sum = answer::all_updates(study.analysis);
  std::uint64_t n = 0;
  for (std::uint64_t one = 100; one <= 450; one += 50) n += one;
  CHECK(sum.weights == 8);
  CHECK(sum.table.counts.half.lost() == 7 * n);
  CHECK(sum.table.counts.updates() == 10 * n);
  CHECK(sum.undetermined == 24);
  REQUIRE(sum.what_if);
  CHECK(sum.what_if->kahan.moved == 9 * n);
  const std::string html = page::section_html(updates_of(study.analysis));
  CHECK(has(html, ">pure FP16</th><td data-v=\"0.7\">70.0 %</td><td data-v=\"15400\">15,400</td>"));
  CHECK(has(html, "22,000 are counted as lost or not"));
  CHECK(has(html, ">smaller than weight / 2048 (rule of thumb)</th><td data-v=\"0.8\">"));
  CHECK(has(html, ">BF16 weights</th><td data-v=\"0.9\">"));
  CHECK(has(html, "stochastic rounding with 8 bits</th><td data-v=\"0.2\">20.0 %</td>"));
  CHECK(has(html, "can never change; a step changes 40.0 % of the weights on average"));
  CHECK(has(html, "Kahan&#39;s compensation</th><td data-v=\"0.1\">"));
  CHECK(has(html, "learning rate times 4</th><td data-v=\"0.3\">"));
  CHECK(has(html, ">FP32 master weights</th><td data-v=\"0.1\">"));
  CHECK(has(html, "half after 8 to 15 equal updates"));
  CHECK(has(html, "24 more are differences of recorded weights that are zero"));
}

TEST_CASE("events come with their cause and what led there", "[reports][sections]") {
  const TempFolder folder;
  const std::string html = events_html(sample::full_study(folder / "run"));
  CHECK(occurrences(html, ">Cause: ") == 3);
  CHECK(has(html, "in step 50, first in <code>activation/<wbr>layer3</code>: 4,321 NaN"));
  CHECK(has(html, "it is in the model: no loss scale and no format helps.</li>\n<li>Its inputs"));
  CHECK(
      has(html, "in steps 100 to 200, first in <code>activation/<wbr>layer7</code>: 17 overflow"));
  CHECK(has(html, "A scale of 2048 (2^11) would have held."));
  CHECK(has(html, "<td data-v=\"12.5\">12.5 (2^3.6)</td>"));
  CHECK(has(html, "nothing finite, 4,321 NaN"));
}

TEST_CASE("room is told at the recommended scale where a scale acts", "[reports][sections]") {
  const TempFolder folder;
  analyzers::Study study = sample::full_study(folder / "run");
  auto& tensors = study.analysis.logs[0].tensors;
  const auto gradient = std::find_if(tensors.begin(), tensors.end(),
                                     [](const auto& tensor) { return tensor.loss_scaled; });
  REQUIRE(gradient != tensors.end());
  study.advice.static_log2 = 10;
  analyzers::overflow::Headroom h;
  h.tensor = static_cast<std::size_t>(gradient - tensors.begin());
  h.least = h.least_at_1 = 8;
  h.last = h.last_at_1 = 9;
  study.overflow.headroom.push_back(h);
  const auto rooms = answer::headroom_to_use(study);
  CHECK(rooms.front().headroom->tensor == h.tensor);  // though it has the most room at scale 1
  CHECK(rooms.front().least == -2);
  CHECK(rooms.front().last == -1);
  CHECK(rooms.back().least == rooms.back().headroom->least);
  CHECK(has(sections_of(study).html, "least headroom -2.0 binades at the recommended 1024 (2^10)"));
  study.advice.static_log2.reset();
  CHECK(has(sections_of(study).html, "least headroom -0.8 binades at loss scale 1"));
}

TEST_CASE("growth is told of the recorded steps alone", "[reports][sections]") {
  const TempFolder folder;
  const std::string html = headroom_html(sample::full_study(folder / "run"));
  // 1.5 binades in 1,000 steps, of which 200 were recorded.
  CHECK(has(html, ">+0.30</td>"));
  CHECK(!has(html, "1,000 steps"));
}

TEST_CASE("tensors with NaN or infinity fit no format", "[reports][sections]") {
  const TempFolder folder;
  analyzers::Study study = sample::full_study(folder / "run");
  const std::size_t before = answer::fit_sums(study.analysis).eight_bits;
  auto& tensors = study.analysis.logs[0].tensors;
  const auto fits_8_bits = [](const auto& tensor) {
    const auto narrowest = tensor.whole->narrowest;
    return narrowest && find_format(narrowest->format)->format.width == 8;
  };
  const auto tensor = std::find_if(tensors.begin(), tensors.end(), fits_8_bits);
  REQUIRE(tensor != tensors.end());
  tensor->counts.nan = 3;
  const answer::FitSums sums = answer::fit_sums(study.analysis);
  CHECK(sums.tensors == tensors.size());
  CHECK(sums.nonfinite == 1);
  CHECK(sums.eight_bits == before - 1);
  CHECK(has(formats_html(study), ", besides NaN</td>"));
  CHECK(has(sections_of(study).html, "; 1 holds NaN or infinity"));
  const auto own = page::own_charts_json(study);
  std::size_t drawn = 0;
  for (const auto& row : own["fits"]["rows"]["0"]["all"]) {
    if (row[1] == "holds NaN or infinity") drawn += row[3].get<std::size_t>();
  }
  CHECK(drawn == 1);
}

TEST_CASE("names break at their separators", "[reports][sections]") {
  CHECK(page::breakable_name("weight_grad/a.b") == "weight_<wbr>grad/<wbr>a.<wbr>b");
  CHECK(page::breakable_name("<img/>") == "&lt;img/<wbr>&gt;");
}

TEST_CASE("formats tell fits, fits with a scale, and no", "[reports][sections]") {
  const TempFolder folder;
  const analyzers::Study study = sample::full_study(folder / "run");
  const std::string html = formats_html(study);
  const std::size_t tensors = study.analysis.logs[0].tensors.size();
  REQUIRE(tensors == 40);
  CHECK(occurrences(html, "<th scope=\"row\">") == tensors);
  // By formats::WholePass: every fourth tensor fits E4M3 with a scale; three of four fit E5M2, one
  // as it is.
  CHECK(occurrences(html, ">at 2^9 (~30 to 32)<") == tensors / 4);
  CHECK(occurrences(html, ">at 2^4 (~24 to 26)<") == tensors / 2);
  CHECK(occurrences(html, ">32</td>") == tensors / 4);
  CHECK(has(html, ">MXFP8 E4M3</button>"));
  CHECK(has(html, "title=\"3 of 1,000 become zero, 2 saturate\""));
  const answer::FitSums sums = answer::fit_sums(study.analysis);
  CHECK(sums.tensors == tensors);
  CHECK(sums.eight_bits == 3 * tensors / 4);
  CHECK(sums.eight_bits_as_is == tensors / 4);
  CHECK(sums.wider_than_16 == tensors / 4);
}

TEST_CASE("the rest of a recommendation", "[reports][sections]") {
  const TempFolder folder;
  const analyzers::Study study = sample::full_study(folder / "run");
  const answer::Answer answer = answer::answer_of(study);
  const std::string html = page::tables_html(answer, answer::Evidence::advice);
  for (const char* text : {"2^12 to 2^30", ">4096</td>", "+4 binades", "10 x 257"}) {
    CHECK(has(html, text));
  }
  std::string details;
  for (const std::string& sentence : answer.details) details += answer::plain(sentence) + "\n";
  for (const char* text :
       {"torch starts at 16384 (2^14) with growth_interval 1000.",
        "Replayed over the recorded steps, it skips 1 of 800 (< 0.01 % to 0.70 %, 95 %).",
        "Sum over 16 ranks in FP16"}) {
    CHECK(has(details, text));
  }
  const std::string scales = page::tables_html(answer, answer::Evidence::scales);
  CHECK(occurrences(scales, "<th scope=\"row\"") == 20);
  CHECK(occurrences(scales, "<tr class=\"marked\">") == 1);
  CHECK(has(scales, "at most 30.0 %"));
  CHECK(has(scales, "assumes nothing about the magnitudes"));
  CHECK(has(scales, "12,345 of "));
}

TEST_CASE("findings beyond the first are folded, and lead to their evidence",
          "[reports][sections]") {
  const TempFolder folder;
  const analyzers::Study study = sample::full_study(folder / "run");
  const answer::Answer answer = answer::answer_of(study);
  const page::Sections sections = page::sections_of(study, answer);
  const std::string html = page::findings_html(answer, sections);
  const std::size_t all = occurrences(html, "<li class=");
  CHECK(all > page::kFindingsShown);
  CHECK(all == answer.findings.size());
  CHECK(occurrences(html.substr(0, html.find("<details>")), "<li class=") == page::kFindingsShown);
  CHECK(has(html, "<a href=\"#updates\">"));
  CHECK(has(html, "<a href=\"#overflow\">"));
  analyzers::Study bare = study;  // a finding whose section is not there leads nowhere
  bare.overflow = {};
  bare.advice.nonfinite_steps = {1};
  const answer::Answer less = answer::answer_of(bare);
  CHECK(!has(page::findings_html(less, page::sections_of(bare, less)), "href=\"#overflow\""));
  for (const answer::Evidence evidence : sections.evidence) {
    CHECK(has(sections.html,
              "<details class=\"section\" id=\"" + std::string(answer::name_of(evidence))));
  }
}

TEST_CASE("where nothing was found no more is said than the log could have shown",
          "[reports][sections]") {
  analyzers::Study clear;
  const auto said = [&] { return page::findings_html(answer::answer_of(clear), {}); };
  CHECK(has(said(), "The log reports no loss scale and no skipped step either."));
  clear.analysis.logs.resize(1);
  clear.analysis.logs[0].tensors.emplace_back();
  CHECK(has(said(), "It holds no gradients"));
  clear.analysis.logs[0].tensors.back().loss_scaled = true;
  CHECK(has(said(), "Nothing was found that harms training in FP16.<"));
  clear.advice.underflow_not_identifiable = true;
  CHECK(has(said(), "Nothing was found that harms training in FP16, as far as the log shows.<"));
}

}  // namespace test_sections
