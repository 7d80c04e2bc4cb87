// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/common/timeline.hpp"

#include <cmath>
#include <limits>

#include "analyzers/readers/common/roles.hpp"
#include "catch.hpp"

namespace halfscope::analyzers::readers::test_timeline {
namespace {

using analyzers::frames::Frame;
using analyzers::frames::Notes;
using analyzers::frames::RoleSource;
using analyzers::frames::Selection;
using analyzers::frames::StepPeak;
using analyzers::frames::Visitor;
using log::Role;

/// Keeps what a visitor is told.
struct Told {
  std::vector<Frame> frames;
  std::vector<StepPeak> peaks;
  std::vector<log::StepScalars> scalars;
  std::vector<analyzers::frames::SkippedSteps> skips;
  Notes notes;

  Visitor visitor() {
    Visitor visit;
    visit.frame = [this](Frame&& frame) { frames.push_back(std::move(frame)); };
    visit.peak = [this](const StepPeak& peak) { peaks.push_back(peak); };
    visit.scalars = [this](const log::StepScalars& s) { scalars.push_back(s); };
    visit.skipped = [this](const analyzers::frames::SkippedSteps& s) { skips.push_back(s); };
    return visit;
  }
  bool says(const std::string& part) const {
    for (const std::string& note : notes) {
      if (note.find(part) != std::string::npos) return true;
    }
    return false;
  }
};

Frame frame_of(const std::string& name, std::int64_t step, double value) {
  Frame frame;
  frame.name = name;
  frame.step = step;
  BinadeTable table;
  table.add(magnitude_of(value), false);
  frame.table = table;
  return frame;
}

TEST_CASE("roles are read from the words of tags") {
  const std::pair<const char*, std::optional<Role>> rows[] = {
      {"gradients/conv1.weight", Role::weight_grad},
      {"conv1.weight.grad", Role::weight_grad},
      {"conv1/weight_grad", Role::weight_grad},
      {"grad_norm/total", Role::weight_grad},
      {"Gradients/fc", Role::weight_grad},
      {"parameters/fc.bias", Role::weight},
      {"weights/fc", Role::weight},
      {"dense/kernel_0", Role::weight},
      {"activations/relu", Role::activation},
      {"conv1/activation_grad", Role::activation_grad},
      {"grad_output/fc", Role::activation_grad},
      {"layer1.dgrad", Role::activation_grad},
      {"layer1.wgrad", Role::weight_grad},
      {"grad/encoder.output", Role::weight_grad},
      {"encoder.output.dense.weight", Role::weight},
      {"upgrade/gradual", std::nullopt},
      {"conv1", std::nullopt},
      {"", std::nullopt}};
  for (const auto& [tag, role] : rows) {
    INFO(tag);
    CHECK(common::role_in_words(tag) == role);
  }
}

TEST_CASE("a scale series tells no more than its neighbours agree on") {
  common::ScaleSeries series;
  CHECK(series.empty());
  series.add(10, 1024);
  series.add(20, 1024);
  series.add(30, 512);
  CHECK(series.at(10) == 1024);
  CHECK(series.at(15) == 1024);
  CHECK(series.at(25) == std::nullopt);
  CHECK(series.at(9) == std::nullopt);
  CHECK(series.at(31) == std::nullopt);
  series.add(20, 512);  // a run that started again: the last value holds
  CHECK(series.at(15) == std::nullopt);
  CHECK(series.at(25) == 512);
}

TEST_CASE("frames get roles, scales and the step's largest magnitude") {
  Told told;
  const Visitor visit = told.visitor();
  Selection selection;
  SECTION("no scale is told: taken as unscaled, and said so") {
    common::Timeline timeline("run", selection, visit);
    timeline.names({"gradients/a", "parameters/a"});
    timeline.loss_scale(3, 1024);
    timeline.tensor(frame_of("gradients/a", 3, 2.0));
    timeline.tensor(frame_of("gradients/b", 3, 8.0));
    timeline.tensor(frame_of("parameters/a", 3, 64.0));
    timeline.finish(told.notes);
    REQUIRE(told.frames.size() == 3);
    CHECK(told.frames[0].role == Role::weight_grad);
    CHECK(told.frames[0].role_source == RoleSource::name);
    CHECK(told.frames[0].loss_scaled);
    CHECK(told.frames[0].scale == 1);
    CHECK(told.frames[0].run_scale == 1024);
    CHECK(told.frames[0].shape == std::vector<std::uint64_t>{1});
    CHECK_FALSE(told.frames[2].loss_scaled);
    CHECK(told.frames[2].run_scale == 1);
    REQUIRE(told.scalars.size() == 1);
    CHECK(told.scalars[0].max_abs_weight_grad == 8.0);
    CHECK(told.scalars[0].max_abs_activation_grad == std::nullopt);
    CHECK(told.says("treated as unscaled"));
    REQUIRE(told.peaks.size() == 2);
    CHECK(told.peaks[0].max_abs == 8.0);
    CHECK(told.peaks[0].loss_scale == 1024);
  }
  SECTION("a number: gradients alone carry it") {
    selection.recorded_scale = 4;
    common::Timeline timeline("run", selection, visit);
    timeline.tensor(frame_of("gradients/a", 3, 2.0));
    timeline.tensor(frame_of("parameters/a", 3, 64.0));
    timeline.finish(told.notes);
    CHECK(told.frames[0].scale == 4);
    CHECK(told.frames[0].run_scale == 4);
    CHECK(told.frames[1].scale == 1);
    CHECK(told.scalars[0].max_abs_weight_grad == 0.5);
    CHECK_FALSE(told.says("treated as unscaled"));
  }
  SECTION("a tag: steps without a known scale are skipped and counted") {
    selection.scale_tag = "amp/scale";
    common::Timeline timeline("run", selection, visit);
    CHECK(timeline.recorded_scale("amp/scale", 1, 16));
    CHECK_FALSE(timeline.recorded_scale("loss", 1, 0.5));
    CHECK(timeline.recorded_scale("amp/scale", 5, 8));
    timeline.tensor(frame_of("gradients/a", 1, 2.0));
    timeline.tensor(frame_of("gradients/a", 3, 2.0));  // 16 or 8: not known
    timeline.tensor(frame_of("gradients/a", 5, 2.0));
    timeline.finish(told.notes);
    REQUIRE(told.frames.size() == 2);
    CHECK(told.frames[0].scale == 16);
    CHECK(told.frames[1].scale == 8);
    CHECK(told.says("1 entry of gradients is skipped, at 1 step from 3 to 3"));
    CHECK(told.scalars.front().loss_scale == 16);
  }
  SECTION("a tag that is not there is refused with what is") {
    selection.scale_tag = "amp/scale";
    common::Timeline timeline("run", selection, visit);
    timeline.recorded_scale("loss", 1, 0.5);
    timeline.recorded_scale("amp/loss_scale", 1, 0.5);
    try {
      timeline.finish(told.notes);
      FAIL("was not refused");
    } catch (const log::BadInput& error) {
      CHECK_THAT(error.what(), Catch::Contains("no scalar 'amp/scale'"));
      CHECK_THAT(error.what(), Catch::Contains("it has 'amp/loss_scale', 'loss'"));
    }
  }
}

TEST_CASE("of other tools' logs --role, --step and --tensor hold") {
  Told told;
  const Visitor visit = told.visitor();
  Selection selection;
  selection.roles = {{"x*", Role::activation_grad}};
  selection.first_step = 2;
  selection.end_step = 4;
  common::Timeline timeline("run", selection, visit);
  timeline.names({"x1", "y"});
  timeline.tensor(frame_of("x1", 2, 1));
  timeline.tensor(frame_of("y", 3, 1));
  timeline.tensor(frame_of("x1", 4, 1));
  timeline.loss(1, 1);
  timeline.finish(told.notes);
  REQUIRE(told.frames.size() == 2);
  CHECK(told.frames[0].role == Role::activation_grad);
  CHECK(told.frames[0].role_source == RoleSource::option);
  CHECK(told.frames[1].role == Role::unknown);  // who names some wants no others guessed
  CHECK(told.scalars.size() == 1);

  Selection by_name;
  by_name.tensor_glob = "conv*";
  const common::Timeline named("run", by_name, visit);
  CHECK(named.wants("gradients/conv1", 0));
  CHECK(named.wants("conv2", 0));
  CHECK_FALSE(named.wants("other/conv1", 0));
}

TEST_CASE("where no name carries a role all are taken as gradients") {
  Told told;
  const Visitor visit = told.visitor();
  const Selection selection;
  common::Timeline timeline("run", selection, visit);
  timeline.names({"a", "b"});
  timeline.tensor(frame_of("a", 0, 1));
  timeline.finish(told.notes);
  CHECK(told.frames[0].role == Role::weight_grad);
  CHECK(told.frames[0].role_source == RoleSource::assumed);
  CHECK(told.says("all are treated as weight_grad"));
}

TEST_CASE("the largest magnitude is not told where a table leaves it open") {
  Told told;
  const Visitor visit = told.visitor();
  const Selection selection;
  common::Timeline timeline("run", selection, visit);
  const auto with = [&](std::int64_t step, const Span& span) {
    Frame frame = frame_of("gradients/a", step, 1.0);
    frame.table.add(span);
    timeline.tensor(std::move(frame));
  };
  with(0, {magnitude_of(2), magnitude_of(4), true, 3});  // 2 to 4
  with(1, {magnitude_of(2), std::nullopt, true, 3});     // infinite, perhaps
  with(2, {magnitude_of(1e20), std::nullopt, true, 3});  // beyond everything
  with(3, {std::nullopt, magnitude_of(0.5), true, 3});   // small: 1 is the largest
  Frame frame =
      frame_of("gradients/a", 4, 1.0);  // no finite value above 8; some are infinite, perhaps
  frame.table.add({magnitude_of(2), std::nullopt, true, 3});
  frame.table.limit_largest(magnitude_of(8));
  timeline.tensor(std::move(frame));
  timeline.finish(told.notes);
  REQUIRE(told.scalars.size() == 5);
  CHECK(told.scalars[0].max_abs_weight_grad == std::nullopt);
  CHECK(told.scalars[1].max_abs_weight_grad == std::nullopt);
  CHECK(told.scalars[2].max_abs_weight_grad == std::numeric_limits<double>::infinity());
  CHECK(told.scalars[3].max_abs_weight_grad == 1.0);
  CHECK(told.scalars[4].max_abs_weight_grad == std::nullopt);
  REQUIRE(told.peaks.size() == 3);
  CHECK(told.peaks[0].max_abs == 4.0);
  CHECK(told.peaks[0].at_least == 2.0);
}

TEST_CASE("peaks of single tensors carry scales as frames do") {
  Told told;
  const Visitor visit = told.visitor();
  Selection selection;
  selection.recorded_scale = 8;
  common::Timeline timeline("run", selection, visit);
  StepPeak peak;
  peak.tensor = "gradients/a";
  peak.step = 7;
  peak.max_abs = 16;
  peak.at_least = 8;
  peak.min_abs_nonzero = 1;
  timeline.peak(peak);
  peak.step = 8;
  peak.at_least.reset();
  peak.max_abs = std::numeric_limits<double>::quiet_NaN();
  timeline.peak(peak);
  timeline.finish(told.notes);
  REQUIRE(told.peaks.size() == 4);  // two of steps, then two of the tensor
  CHECK(told.peaks[2].max_abs == 2);
  CHECK(told.peaks[2].at_least == 1);
  CHECK(told.peaks[2].min_abs_nonzero == 0.125);
  CHECK(told.peaks[2].role == Role::weight_grad);
  CHECK(std::isnan(*told.scalars[1].max_abs_weight_grad));
  CHECK(told.scalars[0].max_abs_weight_grad == std::nullopt);  // 1 to 2
}

TEST_CASE("logs that are joined are told once, at the end") {
  Told told;
  const Visitor visit = told.visitor();
  common::TimelineSelection selection;
  selection.joined = std::make_shared<common::TimelineState>();
  selection.joined->joined = true;
  common::Timeline scales("a", selection, visit);
  scales.loss_scale(5, 256);
  scales.finish(told.notes);
  CHECK(told.scalars.empty());
  common::Timeline tensors("b", selection, visit);
  tensors.tensor(frame_of("gradients/a", 5, 1));
  tensors.finish(told.notes);
  selection.joined->joined = false;
  common::Timeline("folder", selection, visit).finish(told.notes);
  REQUIRE(told.scalars.size() == 1);
  CHECK(told.scalars[0].loss_scale == 256);
  CHECK(told.scalars[0].max_abs_weight_grad == 1);
  CHECK(told.frames[0].run_scale == 256);
}

TEST_CASE("what can be no loss scale is skipped and noted, 0 is one that collapsed") {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  Told told;
  const Visitor visit = told.visitor();
  common::Timeline timeline("run", Selection(), visit);
  timeline.loss_scale(1, 1024);
  timeline.loss_scale(2, 0);
  for (const double odd : {kInf, std::numeric_limits<double>::quiet_NaN(), -4.0}) {
    for (const std::int64_t step : {1, 4, 7}) timeline.loss_scale(step, odd);
  }
  timeline.finish(told.notes);
  REQUIRE(told.scalars.size() == 2);
  CHECK(told.scalars[0].loss_scale == 1024);
  CHECK(told.scalars[1].loss_scale == 0);
  CHECK(told.says("run: a loss scale is infinite, nan or negative at 3 steps, first at step 1"));
}

TEST_CASE("where a run started again among steps, what they left is unknown") {
  Told told;
  const Visitor visit = told.visitor();
  common::Timeline timeline("run", Selection(), visit);
  timeline.skipped({11, 20, 3, 1024, 128, {1024, 512, 512, 256, 256, 128}});
  timeline.skipped({21, 30, 1, 128, 64, {128, 64}});
  timeline.restart(15);
  timeline.finish(told.notes);
  REQUIRE(told.skips.size() == 1);
  CHECK(told.skips[0].last == 14);
  CHECK(told.skips[0].count == Interval(0, 3));
  CHECK(told.skips[0].scale_from == 1024);
  CHECK_FALSE(told.skips[0].scale_to);
  CHECK(told.skips[0].scales.empty());
}

}  // namespace
}  // namespace halfscope::analyzers::readers::test_timeline
