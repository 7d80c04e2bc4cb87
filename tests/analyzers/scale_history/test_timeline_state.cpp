// SPDX-License-Identifier: Apache-2.0
// What is said of a run by its skipped steps, its loss scale and its scalars.
#include "analyzers/scale_history/timeline_facts.hpp"

#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <string>

#include "analyzers/study.hpp"
#include "analyzers/underflow/underflow.hpp"
#include "catch.hpp"

namespace halfscope::analyzers::test_timeline_state {
namespace {

using scale_history::RunState;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// A run whose counter covers steps 1 to `last`.
underflow::Analysis counted(std::int64_t last) {
  underflow::Analysis analysis;
  analysis.logs.resize(1);
  analysis.logs[0].name = "log";
  frames::LogKind kind{"console log", {frames::Gap::tensors}};
  kind.counted_from = 1;
  analysis.logs[0].kinds = {kind};
  for (std::int64_t step = 10; step <= last; step += 10) {
    log::StepScalars scalars;
    scalars.step = step;
    scalars.learning_rate = 0.1;
    analysis.logs[0].scalars.push_back(scalars);
  }
  return analysis;
}

void skip(underflow::Analysis& analysis, std::int64_t first, std::uint64_t count,
          std::optional<double> from, std::optional<double> to, std::vector<double> between = {}) {
  analysis.logs[0].skips.push_back(
      frames::SkippedSteps{first, first + 9, count, from, to, between});
}

scale_history::TimelineFacts facts_of(const underflow::Analysis& analysis) {
  const auto facts = findings_of(underflow::Analysis(analysis)).timelines;
  REQUIRE(facts.size() == 1);
  return facts[0];
}

TEST_CASE("a counter says that no step was skipped, and of how many") {
  const scale_history::TimelineFacts facts = facts_of(counted(100));
  CHECK(facts.skips_told);
  CHECK(facts.skipped_in_all == 0);
  CHECK(facts.attempts == 100);  // the first counter is of steps 1 to 10
  CHECK(facts.state == scale_history::RunState::normal);
}

TEST_CASE("many skipped steps are more than three and 5 %") {
  underflow::Analysis analysis = counted(100);
  skip(analysis, 41, 5, 1024, 1024);
  CHECK(facts_of(analysis).state == scale_history::RunState::normal);
  skip(analysis, 51, 1, 1024, 1024);
  CHECK(facts_of(analysis).state == scale_history::RunState::skipping);
  underflow::Analysis few = counted(10);
  skip(few, 1, 2, std::nullopt, std::nullopt);
  CHECK(facts_of(few).state == scale_history::RunState::normal);  // a fifth, of too few to judge
}

TEST_CASE("steps skipped at a scale of 1 are said, and are in vain where they are most") {
  underflow::Analysis analysis = counted(100);
  skip(analysis, 61, 3, 2, 1, {2, 1, 1, 1, 1, 1});
  CHECK(facts_of(analysis).skipped_at_one == 2);
  CHECK(facts_of(analysis).state == scale_history::RunState::skipping);
  for (const std::int64_t first : {71, 81, 91}) skip(analysis, first, 6, 1, 1);
  const scale_history::TimelineFacts facts = facts_of(analysis);
  CHECK(facts.state == scale_history::RunState::broken);
  REQUIRE(facts.in_vain);
  CHECK(facts.in_vain->first == 61);
  CHECK(facts.in_vain->count == 20);
}

TEST_CASE("a slow start goes over several lines") {
  underflow::Analysis analysis = counted(50);
  skip(analysis, 1, 10, std::nullopt, 0x1p22);
  skip(analysis, 11, 5, 0x1p22, 0x1p17);
  skip(analysis, 31, 1, 0x1p17, 0x1p16);
  const scale_history::TimelineFacts facts = facts_of(analysis);
  CHECK(facts.state == scale_history::RunState::slow_start);
  REQUIRE(facts.slow_start);
  CHECK(facts.slow_start->count == 15);
  CHECK(facts.slow_start->last == 20);
  CHECK(facts.slow_start->scale_from == std::nullopt);
  CHECK(facts.slow_start->scale_to == 0x1p17);
}

TEST_CASE("where the scale after skipped steps is unknown, it did not come down") {
  underflow::Analysis analysis = counted(100);
  skip(analysis, 1, 5, 1024, std::nullopt);
  CHECK_FALSE(facts_of(analysis).slow_start);
  analysis.logs[0].skips[0].scale_to = 32;
  CHECK(facts_of(analysis).slow_start);
}

TEST_CASE("each change that lines tell counts, and a fall ends where the scale holds") {
  underflow::Analysis analysis = counted(400);
  skip(analysis, 1, 3, 0x1p16, 0x1p13, {0x1p16, 0x1p15, 0x1p15, 0x1p14, 0x1p14, 0x1p13});
  skip(analysis, 251, 1, 0x1p13, 0x1p12, {0x1p13, 0x1p12});
  const scale_history::TimelineFacts facts = facts_of(analysis);
  REQUIRE(facts.changes.size() == 4);
  CHECK(facts.changes[1].after == 1);
  CHECK(facts.changes[1].by == 11);
  REQUIRE(facts.falls.size() == 1);
  CHECK(facts.falls[0].to == 0x1p13);
  CHECK(facts.falls[0].by == 11);
  CHECK(facts.falls[0].reductions == 3);
}

TEST_CASE("NaN that ended again is not what lasts") {
  underflow::Analysis analysis = counted(100);
  const auto norm = [&](std::size_t line, double value) {
    analysis.logs[0].scalars[line].more[std::string(frames::kGradientNorm)] = value;
  };
  norm(1, kNan);
  for (const std::size_t line : {2, 4, 5}) norm(line, 1);
  norm(3, std::numeric_limits<double>::infinity());
  CHECK(facts_of(analysis).state == scale_history::RunState::normal);
  CHECK(facts_of(analysis).nonfinite_since() == 20);
  for (const std::size_t line : {7, 8, 9}) norm(line, kNan);
  const scale_history::TimelineFacts facts = facts_of(analysis);
  CHECK(facts.state == scale_history::RunState::broken);
  CHECK(facts.nonfinite_since() == 80);
  CHECK(facts.nonfinite.at(0).count == 5);
  CHECK(facts.nonfinite[0].count_since == 3);
  CHECK(facts.nonfinite[0].last_before == 40);
}

TEST_CASE("an evaluation that is NaN does not say that training broke") {
  underflow::Analysis analysis = counted(100);
  analysis.logs[0].scalars[4].more[std::string(frames::kEvaluationLoss)] = kNan;
  const scale_history::TimelineFacts facts = facts_of(analysis);
  CHECK(facts.alarming());
  CHECK(facts.state == scale_history::RunState::normal);
  CHECK_FALSE(facts.nonfinite_since());
}

/// The state where these lines, each of ten steps, have such a scalar; all others have `otherwise`.
RunState state_with(std::string_view tag, double value, double otherwise, std::size_t first,
                    std::size_t end, std::int64_t last = 100, double loss = 2) {
  underflow::Analysis analysis = counted(last);
  auto& lines = analysis.logs[0].scalars;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (std::isfinite(loss)) lines[i].loss = loss;
    lines[i].more[std::string(tag)] = i >= first && i < end ? value : otherwise;
  }
  return facts_of(analysis).state;
}

TEST_CASE("norms that are infinite now and then, or at the start, are those of skipped steps") {
  const auto norms = [](std::size_t first, std::size_t end, std::int64_t last = 100) {
    return state_with(frames::kGradientNorm, kNan, 1, first, end, last);
  };
  CHECK(norms(9, 10) == RunState::normal);
  CHECK(norms(8, 10) == RunState::normal);
  CHECK(norms(7, 10) == RunState::broken);
  CHECK(norms(0, 5, 50) == RunState::normal);   // a start: no finite one is before
  CHECK(norms(0, 10) == RunState::broken);      // longer than from 2^32 to 1, each by two
  CHECK(norms(0, 5, 100) == RunState::normal);  // finite ones follow
  // A Trainer leaves losses that are NaN out, or prints 0.
  for (const double loss : {kNan, 0.0}) {
    CHECK(state_with(frames::kGradientNorm, kNan, 1, 0, 10, 100, loss) == RunState::broken);
  }
}

TEST_CASE("iterations with NaN last where they are most of those at the end") {
  const auto counts = [](double count, std::size_t first) {
    return state_with(frames::kNanIterations, count, 0, first, 10);
  };
  CHECK(counts(1, 9) == RunState::normal);
  CHECK(counts(1, 2) == RunState::normal);  // 8 of the last 80
  CHECK(counts(10, 9) == RunState::broken);
  CHECK(counts(10, 2) == RunState::broken);
  for (const double none : {kNan, -1.0, 0x1p80}) CHECK(counts(none, 2) == RunState::normal);
}

TEST_CASE("without a scale, as many steps as a start costs may be skipped") {
  for (const std::int64_t last : {10, 60, 70}) {
    underflow::Analysis analysis = counted(last);
    for (std::int64_t first = 1; first < last; first += 10) {
      skip(analysis, first, 10, std::nullopt, std::nullopt);
    }
    const bool broken = facts_of(analysis).state == RunState::broken;
    CHECK(broken == (last == 70));
  }
}

TEST_CASE("the last steps, each line without an update, are skipped in vain") {
  for (const std::uint64_t lines : {9, 10}) {
    underflow::Analysis analysis = counted(100);
    const auto last = static_cast<std::int64_t>(100 + lines);
    analysis.logs[0].skips = {{.first = 101, .last = last, .count = lines}};
    analysis.logs[0].kinds[0].skips_at_least = true;
    CHECK(facts_of(analysis).in_vain.has_value() == (lines == 10));
  }
}

TEST_CASE("a step that alone was skipped shows no scale that is normal") {
  underflow::Analysis analysis = counted(10);
  skip(analysis, 1, 6, std::nullopt, std::nullopt);
  CHECK(facts_of(analysis).state == RunState::skipping);
  analysis.logs[0].skips[0] = frames::SkippedSteps{1, 1, 1, std::nullopt, std::nullopt, {}};
  analysis.logs[0].scalars[0].step = 1;
  CHECK(facts_of(analysis).state == RunState::unknown);
}

TEST_CASE("a lower bound of skipped steps is no upper one") {
  underflow::Analysis analysis = counted(100);
  skip(analysis, 41, 3, 1024, 512);
  CHECK(facts_of(analysis).skipped_bounds() == 3);
  analysis.logs[0].kinds[0].skips_at_least = true;
  CHECK(facts_of(analysis).skipped_bounds() == Interval(3, 100));
}

TEST_CASE("steps that may have been skipped beside those that were leave the state open") {
  underflow::Analysis analysis = counted(100);
  skip(analysis, 41, 3, 1024, 512);
  CHECK(facts_of(analysis).state == RunState::normal);
  analysis.logs[0].kinds[0].perhaps_skipped = 60;
  CHECK(facts_of(analysis).skipped_in_all == Interval(3, 63));
  CHECK(facts_of(analysis).state == RunState::unknown);
}

TEST_CASE("NaN at a skipped step is not the first that is left unexplained") {
  underflow::Analysis analysis = counted(100);
  const auto norm = std::string(frames::kGradientNorm);
  for (auto& line : analysis.logs[0].scalars) line.more[norm] = 1;
  skip(analysis, 1, 10, 1024, 512);
  analysis.logs[0].scalars[0].more[norm] = kNan;
  analysis.logs[0].scalars[4].more[norm] = kNan;
  const scale_history::TimelineFacts facts = facts_of(analysis);
  CHECK(facts.nonfinite.at(0).first == 10);
  CHECK(facts.nonfinite_since() == 50);
}

TEST_CASE("a scale beyond the last step is of no step of the run") {
  underflow::Analysis analysis = counted(100);
  log::StepScalars after;
  after.step = 101;
  after.loss_scale = 512;
  analysis.logs[0].scalars.push_back(after);
  CHECK(facts_of(analysis).last == 101);
  analysis.logs[0].kinds[0].last_step = 100;
  CHECK(facts_of(analysis).last == 100);
  CHECK(facts_of(analysis).steps == 10);
  CHECK(facts_of(analysis).attempts == 100);
  CHECK(facts_of(analysis).scale_last == 512);
}

TEST_CASE("a scale of 0 throughout is not normal, nor needless") {
  underflow::Analysis analysis = counted(100);
  for (const double scale : {1.0, 0.0}) {
    for (log::StepScalars& scalars : analysis.logs[0].scalars) scalars.loss_scale = scale;
    const RunState wanted = scale == 1 ? RunState::not_needed : RunState::unknown;
    CHECK(facts_of(analysis).state == wanted);
  }
}

TEST_CASE("of another loss scaler, and of unknown many steps, nothing says that all is well") {
  underflow::Analysis analysis = counted(100);
  analysis.logs[0].kinds[0].other_scalers = {{1, 40, 0x1p-24}};
  CHECK(facts_of(analysis).state == scale_history::RunState::unknown);
  analysis.logs[0].kinds[0] = {"console log", {frames::Gap::tensors, frames::Gap::steps}};
  analysis.logs[0].scalars.resize(1);
  analysis.logs[0].scalars[0].found_inf = true;
  analysis.logs[0].scalars[0].learning_rate.reset();
  CHECK(facts_of(analysis).state == scale_history::RunState::unknown);
  CHECK_FALSE(facts_of(analysis).attempts);
}

/// Steps 10 to 200, each with a learning rate, and with the loss that `loss` gives, if any.
underflow::Analysis with_losses(const std::function<std::optional<double>(std::int64_t)>& loss) {
  underflow::Analysis analysis = counted(200);
  for (log::StepScalars& scalars : analysis.logs[0].scalars) scalars.loss = loss(scalars.step);
  return analysis;
}

TEST_CASE("a loss that every line had and the last ones have not is missing") {
  using Loss = std::optional<double>;
  const auto missing = [](const underflow::Analysis& analysis) {
    return facts_of(analysis).loss_missing_since;
  };
  CHECK(missing(with_losses([](auto step) { return step <= 120 ? Loss(2) : Loss(); })) == 130);
  CHECK_FALSE(missing(with_losses([](auto step) { return step <= 180 ? Loss(2) : Loss(); })));
  CHECK_FALSE(missing(with_losses([](auto) { return Loss(2); })));
  CHECK_FALSE(missing(with_losses([](auto) { return Loss(); })));
  // It comes at every third line.
  CHECK_FALSE(missing(with_losses([](auto step) { return step % 30 == 0 ? Loss(2) : Loss(); })));
}

TEST_CASE("the last finite step is the one before NaN that lasts") {
  const auto last = [](std::int64_t from, std::int64_t to) {
    return facts_of(with_losses([=](std::int64_t step) -> std::optional<double> {
             return step >= from && step < to ? kNan : 2;
           }))
        .last_finite();
  };
  CHECK(last(100, 1000) == 90);
  CHECK_FALSE(last(100, 150));  // finite ones follow
  CHECK_FALSE(last(0, 1000));   // none is before
}

TEST_CASE("skipped steps are a slow start only where the first steps are in the log") {
  const auto state_from = [](std::int64_t first) {
    underflow::Analysis analysis;
    analysis.logs.resize(1);
    analysis.logs[0].name = "log";
    analysis.logs[0].kinds = {frames::LogKind{"console log", {frames::Gap::tensors}}};
    for (std::int64_t step = first; step < first + 100; ++step) {
      log::StepScalars scalars;
      scalars.step = step;
      scalars.loss = 2;
      scalars.found_inf = step < first + 4;
      scalars.loss_scale = step < first + 4 ? 65536 >> (step - first) : 4096;
      analysis.logs[0].scalars.push_back(scalars);
    }
    return facts_of(analysis).state;
  };
  CHECK(state_from(1) == RunState::slow_start);
  CHECK(state_from(5000) != RunState::slow_start);
}

}  // namespace
}  // namespace halfscope::analyzers::test_timeline_state
