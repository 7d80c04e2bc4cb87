// SPDX-License-Identifier: Apache-2.0
#include "reports/answer/ranks.hpp"

#include <limits>
#include <utility>

#include "catch.hpp"
#include "reports/answer/text.hpp"

namespace test_ranks {

using namespace halfscope;
using namespace halfscope::analyzers::ranks;
using namespace halfscope::reports::answer;

constexpr double kInf = std::numeric_limits<double>::infinity();

/// Eight ranks that agree.
RankComparison compared(log::Role role) {
  RankComparison all;
  all.role = role;
  all.peak_limit = all.middle_limit = all.underflow_limit = 2;
  all.median_max_abs = 1;
  for (std::uint64_t rank = 0; rank < 8; ++rank) {
    RankValues& values = all.ranks.emplace_back();
    values.rank = 10 + rank;
    values.steps = 50;
    values.max_abs = 1;
    values.skew = 0;
    values.peak = 0.5;
    values.middle = 0;
  }
  return all;
}

/// With these changes of rank 13.
template <class Change>
RankStudy study_of(log::Role role, const Change& change) {
  RankComparison all = compared(role);
  change(all.ranks[3]);
  if (all.ranks[3].differs()) all.worst = {3};
  return {"run", 8, {std::move(all), compared(log::Role::activation)}};
}

std::string title(const RankStudy& study) { return ranks_finding(study)->title; }

TEST_CASE("ranks that agree are one sentence", "[table]") {
  const RankStudy study = study_of(log::Role::local_weight_grad, [](RankValues&) {});
  CHECK(title(study) == "The 8 ranks agree in their weight gradients and activations.");
  CHECK(ranks_finding(study)->severity == Severity::note);
  analyzers::Findings found;
  found.ranks = {study};
  REQUIRE(ranks_sections(found).size() == 1);
  CHECK(ranks_sections(found)[0].tables.empty());
  CHECK(differing_ranks(found).empty());
}

TEST_CASE("nothing is said where nothing can be compared", "[table]") {
  RankStudy study = study_of(log::Role::local_weight_grad, [](RankValues&) {});
  for (RankComparison& all : study.compared) all.peak_limit = kInf;
  CHECK_FALSE(ranks_finding(study));
}

TEST_CASE("the worst rank, by its number and by what", "[table]") {
  const auto peak = [](RankValues& rank) {
    rank.peaks = true;
    rank.max_abs = 32;
    rank.max_step = rank.peak_step = 40;
    rank.peak = 5;
  };
  CHECK(title(study_of(log::Role::local_weight_grad, peak)) ==
        "Rank 13 is the worst of 8: its weight gradients reach 32 (2^5.0) at step 40, 5.0 binades "
        "above the median rank's.");
  CHECK(title(study_of(log::Role::loss, peak)) ==
        "Rank 13 is the worst of 8: its loss reaches 32 (2^5.0) at step 40, 32 times the median "
        "rank's.");
  CHECK(title(study_of(log::Role::weight_grad,
                       [&](RankValues& rank) {
                         peak(rank);
                         rank.max_step = 3;  // the largest of all steps is another
                         rank.since = 30;
                       })) ==
        "Rank 13 is the worst of 8: its weight gradients are 5.0 binades above the median rank's "
        "at step 40, and far from it since step 30.");
  CHECK(title(study_of(log::Role::activation_grad,
                       [](RankValues& rank) {
                         rank.departs = true;
                         rank.middle = -3.25;
                       })) ==
        "Rank 13 is the worst of 8: its activation gradients are 3.2 binades below the median "
        "rank's at half of its steps or more.");
  CHECK(title(study_of(log::Role::activation_grad,
                       [](RankValues& rank) {
                         rank.departs = true;
                         rank.middle = -kInf;
                         rank.since = 5;
                       })) ==
        "Rank 13 is the worst of 8: its activation gradients are 0 at half of its "
        "steps or more, first at step 5.");
}

TEST_CASE("a rank that departs at most steps and stands out at one", "[table]") {
  const RankStudy study = study_of(log::Role::loss, [](RankValues& rank) {
    rank.peaks = rank.departs = true;
    rank.max_abs = 32;
    rank.max_step = rank.peak_step = 40;
    rank.peak = 20;
    rank.middle = 3;
  });
  CHECK(
      title(study) ==
      "Rank 13 is the worst of 8: its loss reaches 32 (2^5.0) at step 40, 2^20.0 times the median "
      "rank's; 8 times at half of its steps or more.");
}

TEST_CASE("values that are not judged do not agree", "[table]") {
  RankStudy study = study_of(log::Role::weight_grad, [](RankValues&) {});
  study.compared[0].peak_limit = kInf;
  CHECK(title(study) == "The 8 ranks agree in their activations.");
}

TEST_CASE("infinities and NaN of one rank", "[table]") {
  const RankStudy study = study_of(log::Role::loss, [](RankValues& rank) {
    rank.is_nonfinite = true;
    rank.nonfinite = Nonfinite{12, true};
  });
  CHECK(title(study) == "Rank 13 is the first of 8 ranks with NaN in its loss, at step 12.");
  CHECK(ranks_finding(study)->severity == Severity::serious);
  CHECK(title(study_of(log::Role::weight_grad,
                       [](RankValues& rank) {
                         rank.overflows = true;
                         rank.nonfinite_steps = 9;
                         rank.overflow = 20;
                       })) ==
        "Rank 13 is the worst of 8: its weight gradients are infinite or NaN at 9 of 50 steps, "
        "first at step 20 (0 of the median rank's).");
}

TEST_CASE("other ranks that differ are counted and named", "[table]") {
  RankStudy study = study_of(log::Role::loss, [](RankValues& rank) {
    rank.peaks = true;
    rank.peak = 9;
  });
  for (const std::size_t i : {5U, 6U}) {
    study.compared[1].ranks[i].peaks = true;
    study.compared[1].ranks[i].peak = 4;
    study.compared[1].worst.push_back(i);
  }
  CHECK(ranks_finding(study)->action ==
        "2 other ranks differ too: 15 to 16. Look at the data and at the machine of this rank.");
  analyzers::Findings found;
  found.ranks = {study};
  CHECK(ranks_digest(found) == "3 of 8 ranks differ");
  const std::vector<Section> sections = differing_ranks(found);
  REQUIRE(sections.size() == 1);
  const Table& table = sections[0].tables[0];
  REQUIRE(table.rows.size() == 3);
  CHECK(table.rows[0].cells[0].text == "13");
}

}  // namespace test_ranks
