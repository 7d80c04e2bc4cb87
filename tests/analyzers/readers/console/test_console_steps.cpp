// SPDX-License-Identifier: Apache-2.0
// Which steps console lines are of, where they contradict themselves or each other too.
#include "analyzers/readers/console/console_steps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>

#include "analyzers/readers/console/console_lines.hpp"
#include "analyzers/readers/kinds.hpp"
#include "catch.hpp"
#include "temp_folder.hpp"

namespace halfscope::analyzers::readers::test_console_steps {
namespace {

using test::TempFolder;

struct Steps {
  std::map<std::int64_t, log::StepScalars> scalars;
  std::vector<analyzers::frames::SkippedSteps> skips;
  analyzers::frames::Notes notes;

  explicit Steps(const std::string& text) {
    const TempFolder folder;
    analyzers::frames::Visitor visit;
    visit.scalars = [this](const log::StepScalars& s) { scalars[s.step] = s; };
    visit.skipped = [this](const analyzers::frames::SkippedSteps& s) { skips.push_back(s); };
    visit.kind = [this](const analyzers::frames::LogKind& kind) {
      for (const std::string& remark : kind.remarks) notes.add(remark);
    };
    for_each_frame(folder.write("out.log", text), {}, visit, notes, {});
  }
  std::optional<bool> skipped(std::int64_t step) const {
    return scalars.count(step) ? scalars.at(step).found_inf : std::nullopt;
  }
  std::optional<double> scale(std::int64_t step) const {
    return scalars.count(step) ? scalars.at(step).loss_scale : std::nullopt;
  }
  Interval in_ranges() const {
    Interval count;
    for (const analyzers::frames::SkippedSteps& range : skips) count += range.count;
    return count;
  }
  /// How many notes have this text.
  std::size_t noted(const std::string& text) const {
    std::size_t count = 0;
    for (const std::string& note : notes) count += note.find(text) != std::string::npos;
    return count;
  }
};

std::string apex(const std::string& scale) {
  return "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to " + scale;
}

std::string attempted(int from, int to, const std::string& rank = "Rank 0 ") {
  return fmt::format("OVERFLOW! {}Skipping step. Attempted loss scale: {}, reducing to {}\n", rank,
                     from, to);
}

std::string done(int step, int skipped) {
  return fmt::format("step={}, skipped={}, lr=[0.1], mom=[0.9]\n", step, skipped);
}

std::string megatron(int iteration, const std::string& scale, int skipped) {
  return fmt::format(
      " iteration {}/ 100 | lm loss: 2.0E+00 | loss scale: {} | number of skipped iterations: {} | "
      "number of nan iterations: 0 |\n",
      iteration, scale, skipped);
}

TEST_CASE("several messages in one line are each counted") {
  const Steps apart("start\n" + apex("32768.0") + apex("16384.0") + "\n\n" + apex("8192.0") + "\n");
  CHECK(apart.scale(1) == 32768);
  CHECK(apart.scale(2) == 16384);
  CHECK(apart.scale(3) == 8192);
  CHECK(apart.skipped(2) == true);
  CHECK(apart.skipped(3) == std::nullopt);
  const Steps ranks("start\n" + apex("4.0") + apex("4.0") + "\nloss\n" + apex("2.0") + apex("2.0") +
                    "\nloss\n" + apex("1.0") + "\n" + apex("1.0") + "\n");
  CHECK(ranks.scale(3) == 1);  // two ranks, three steps
  CHECK(ranks.scale(4) == std::nullopt);
  const std::string line = "prefix " + apex("4.0") + "[1] " + apex("nan") + apex("2.0e-1");
  const auto messages = console::messages_in(line);
  REQUIRE(messages.size() == 3);
  CHECK(messages[0] == "prefix " + apex("4.0"));
  CHECK(messages[1] == "[1] " + apex("nan"));
  CHECK(messages[2] == apex("2.0e-1"));
  const std::string hysteresis =
      "OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 8, but hysteresis is 2. Reducing "
      "hysteresis to 1";
  CHECK(console::messages_in(hysteresis + attempted(8, 4)).size() == 2);
  CHECK(console::messages_in(apex("4.0") + " and loss 3").size() == 1);
  CHECK(console::messages_in("nothing").size() == 1);
}

TEST_CASE("text right behind a number is not of it") {
  CHECK(console::console_line(apex("32768.0info: 3")).overflow->next == 32768);
  CHECK(console::console_line(apex("32768.0epoch 4")).overflow->next == 32768);
  CHECK(console::console_line(apex("+4.0.")).overflow->next == 4);
}

TEST_CASE("what cannot be a loss scale is skipped and told, its step is skipped") {
  for (const std::string scale : {"nan", "inf", "-2.0"}) {
    INFO(scale);
    const Steps read(apex("4.0") + "\n" + apex(scale) + "\n" + apex("2.0") + "\n");
    CHECK(read.scale(1) == 4);
    CHECK(read.scale(2) == std::nullopt);
    CHECK(read.scale(3) == 2);
    CHECK(read.skipped(1) == true);
    CHECK(read.skipped(2) == true);
    CHECK(read.noted("a loss scale is 0, infinite, NaN or negative: once, in line 2 (" +
                     (scale == "-2.0" ? "-2" : scale) + "); 0 is kept, any other is skipped") == 1);
  }
  const Steps next(megatron(1, "4.0", 0) + megatron(2, "inf", 0) + megatron(3, "nan", 0));
  CHECK(next.scale(2) == 4);
  CHECK(next.scale(3) == std::nullopt);
  CHECK(next.noted("infinite, NaN or negative: 2 times, first in line 2 (inf); 0 is kept") == 1);
}

TEST_CASE("a loss scale of 0 is told as what it is") {
  const Steps read(apex("1e-323") + "\n" + apex("5e-324") + "\n" + apex("0.0") + "\n" +
                   apex("0.0") + "\n");
  CHECK(read.scale(3) == 0);
  CHECK(read.skipped(3) == true);
  CHECK(read.noted("a loss scale is 0, infinite, NaN or negative: 2 times, first in line 3 (0)") ==
        1);
}

TEST_CASE("more steps skipped than done") {
  const Steps read(megatron(10, "8.0", 0) + megatron(11, "8.0", 3) + megatron(20, "4.0", 10) +
                   megatron(30, "4.0", 10));
  CHECK(read.skipped(11) == std::nullopt);  // nobody knows
  REQUIRE(read.skips.size() == 1);          // what is possible is believed
  CHECK(read.skips[0].first == 21);
  CHECK(read.skips[0].count == 10);
  CHECK(
      read.noted("does not fit the steps or the overflow lines: 2 times, first in line 2 (step 11: "
                 "3 skipped, 0 by step 10, 0 overflow lines between); overflow lines are counted "
                 "instead") == 1);
  const Steps first(attempted(8, 4) + done(2, 3));
  CHECK(first.noted("once, in line 2 (step 2: 3 skipped, 0 by step 0, 1 overflow lines between)") ==
        1);
  CHECK(first.in_ranges() == 1);
}

TEST_CASE("fewer steps skipped in all than before") {
  const Steps read(done(10, 5) + attempted(8, 4) + done(20, 2) + done(21, 1));
  REQUIRE(read.skips.size() == 2);  // what the first counter says is of steps 1 to 10
  CHECK(read.skips[0].count == 5);
  CHECK(read.skips[1].first == 11);
  CHECK(read.skips[1].count == 1);
  CHECK(read.skipped(21) == std::nullopt);
  CHECK(read.noted("2 times, first in line 3 (step 20: 2 skipped, 5 by step 10, 1 overflow lines "
                   "between)") == 1);
  // A run that was started again counts from its checkpoint.
  const Steps again(done(10, 5) + done(4, 2) + done(20, 3));
  CHECK(again.noted("does not fit") == 0);
  REQUIRE(again.skips.size() == 2);  // two of steps 1 to 4, and one after step 4
  CHECK(again.skips[0].last == 4);
  CHECK(again.in_ranges() == 3);
}

TEST_CASE("steps skipped between a restart and the first line after it") {
  const std::string before = done(30, 2) + done(40, 2) + attempted(8, 4) + done(50, 3);
  const std::string skips = attempted(64, 32) + attempted(32, 16);
  for (const std::string& lines : {skips, std::string(), attempted(4, 2) + skips}) {
    const Steps read(before + lines + done(40, 4) + done(50, 4));
    INFO(lines);
    REQUIRE(read.skips.size() == 2);
    CHECK(read.skips[0].last == 30);
    CHECK(read.skips[1].first == 31);
    CHECK(read.skips[1].last == 40);
    CHECK(read.skips[1].count == 2);
    if (lines.empty()) continue;
    CHECK(read.skips[1].scale_from == 64);  // overflows before the restart are not among them
    CHECK(read.skips[1].scales == std::vector<double>{64, 32, 32, 16});
  }
  const Steps anew(done(30, 5) + done(40, 6) + done(40, 1));  // the counter began anew
  CHECK(anew.noted("does not fit") == 0);
  CHECK(anew.in_ranges() == 6);
  const Steps intervals(megatron(10, "8.0", 0) + megatron(20, "8.0", 0) + megatron(30, "8.0", 1) +
                        megatron(20, "4.0", 2));
  REQUIRE(intervals.skips.size() == 1);
  CHECK(intervals.skips[0].first == 11);
  CHECK(intervals.skips[0].last == 20);
  CHECK(intervals.skips[0].count == 2);
  const Steps named("Grad overflow on iteration 3\n" + done(10, 1) + done(20, 1) +
                    "Grad overflow on iteration 12\nGrad overflow on iteration 40\n" + done(15, 2));
  CHECK(named.skipped(13) == true);
  CHECK_FALSE(named.skipped(41).has_value());
  CHECK(named.skips.empty());
}

TEST_CASE("overflows where no step is said to be skipped, and more than the steps") {
  const Steps none(done(10, 1) + attempted(8, 4) + attempted(4, 2) + done(20, 1));
  CHECK(none.in_ranges() == 1 + 2);
  CHECK(none.noted(
            "once, in line 4 (step 20: 1 skipped, 1 by step 10, 2 overflow lines between)") == 1);
  const Steps fewer(done(10, 1) + attempted(8, 4) + attempted(4, 2) + done(20, 2));
  CHECK(fewer.in_ranges() == 1 + 2);
  CHECK(fewer.noted("does not fit") == 1);
  const std::string unknown = attempted(8, 4, "") + attempted(8, 4, "");
  const Steps ranks(done(10, 1) + unknown + done(20, 2));  // two that say the same
  CHECK(ranks.in_ranges() == 1 + 1);
  CHECK(ranks.noted("does not fit") == 0);
  const Steps some(megatron(10, "8.0", 0) + unknown + megatron(13, "8.0", 0));  // or are two steps
  CHECK(some.in_ranges() == Interval(1, 2));
  const std::string four =
      attempted(32, 16, "") + attempted(16, 8, "") + attempted(8, 4, "") + attempted(4, 2, "");
  const Steps many(megatron(10, "8.0", 0) + four + megatron(13, "8.0", 0));
  CHECK(many.in_ranges() == 3);
  CHECK(many.noted("once, in line 6 (step 13: 0 skipped, 0 by step 10, 4 overflow lines between); "
                   "overflow lines are counted instead, at most one a step") == 1);
}

TEST_CASE("lines and counters that agree are no contradiction") {
  const Steps agree(done(10, 1) + attempted(8, 4) + done(20, 2) + attempted(4, 2) + done(20, 2) +
                    done(30, 3));
  CHECK(agree.in_ranges() == 1 + 2);
  CHECK(agree.notes.empty());  // a line that comes again is no restart
  const std::string unknown = attempted(8, 4, "") + attempted(4, 2, "");
  const Steps all(megatron(10, "8.0", 0) + unknown + megatron(12, "2.0", 0));
  CHECK(all.skipped(11) == true);
  CHECK(all.skipped(12) == true);
  CHECK(all.notes.empty());
}

TEST_CASE("an overflow of an earlier iteration is told") {
  const std::string on = "Grad overflow on iteration ";
  const Steps read(on + "7\n" + on + "7\n" + on + "4\n" + on + "9\n");
  CHECK(read.skipped(8) == true);
  CHECK(read.skipped(5) == true);
}

TEST_CASE("which skipped steps have a step of their own") {
  const std::string two = attempted(8, 4, "") + attempted(4, 2, "");
  const Steps each(done(10, 0) + two + done(12, 2));
  CHECK(each.skips.empty());
  CHECK(each.scale(11) == 8);
  CHECK(each.scale(12) == 4);
  // One of two steps, though two lines tell of overflows.
  const Steps one(done(10, 0) + two + done(12, 1));
  REQUIRE(one.skips.size() == 1);
  CHECK(one.skips[0].first == 11);
  CHECK(one.skips[0].last == 12);
  CHECK(one.skips[0].count == 1);
  CHECK(one.skipped(11) == std::nullopt);
  // All of three steps, of which two have lines.
  const Steps three(done(10, 0) + two + done(13, 3));
  REQUIRE(three.skips.size() == 1);
  CHECK(three.skips[0].count == 3);
  CHECK(three.skipped(11) == std::nullopt);
  // One of one step, of which two ranks tell.
  const Steps both(done(10, 0) + two + done(11, 1));
  CHECK(both.skips.empty());
  CHECK(both.skipped(11) == true);
  CHECK(both.scale(11) == 4);
}

TEST_CASE("Megatron-LM's lines know nothing of the steps that DeepSpeed skips") {
  // DeepSpeed prints its counter every 4 steps, Megatron-LM's line is of each.
  std::string text;
  for (int step = 1; step <= 12; ++step) {
    if (step == 3 || step == 9) text += attempted(256 >> (step / 8), 128 >> (step / 8));
    if (step % 4 == 0) text += done(step, step >= 12 ? 2 : 1);
    text += megatron(step, step < 3 ? "256" : step < 9 ? "128" : "64", 0);
  }
  const Steps run(text);
  CHECK(run.skipped(3) == true);
  CHECK(run.skipped(9) == true);
  CHECK(run.in_ranges() == Interval(0));
  CHECK(run.noted("skipped steps") == 0);
}

TEST_CASE("what a counter of all tells beyond messages is of the steps since the one before") {
  for (const bool counter_first : {false, true}) {
    std::string text;
    for (const int step : {100, 200, 300}) {
      const std::string counter = done(step, step == 100 ? 15 : 17);
      const std::string line = megatron(step, "128", 0);
      text += counter_first ? counter + line : line + counter;
      if (step == 100) text += attempted(256, 128);
    }
    const Steps run(text);
    CHECK(run.in_ranges() == Interval(17));
    for (const auto& range : run.skips) {
      CHECK(range.first == (range.last == 100 ? 1 : 101));
      CHECK(range.count.low <= (range.last == 100 ? 15 : 2));
    }
    CHECK(run.noted("differently") == 0);
  }
}

/// Lines with a step and the updates that `updates` gives, at every tenth step.
std::string with_updates(int steps, const std::function<int(int)>& updates) {
  std::string text;
  for (int step = 10; step <= steps; step += 10) {
    text += fmt::format("step {} updates {} loss {}\n", step, updates(step), 3 - step / 1e4);
  }
  return text;
}

TEST_CASE("steps without an update are skipped") {
  const Steps told(with_updates(300, [](int step) { return std::min(step, 83); }));
  CHECK(told.scalars.count(300) == 1);  // the step that is printed, not the counter of updates
  REQUIRE(told.skips.size() == 22);
  CHECK(told.skips[0].first == 81);
  CHECK(told.skips[0].last == 90);
  CHECK(told.skips[0].count == 7);
  CHECK(told.in_ranges() == 217);
  CHECK(Steps(with_updates(300, [](int step) { return step - 5; })).in_ranges() == 0);  // resumed
}

TEST_CASE("accumulated gradients are no skipped steps") {
  for (const int each : {2, 4, 64}) {
    CHECK(Steps(with_updates(900, [=](int step) { return step / each; })).in_ranges() == 0);
  }
}

/// 40 lines that count updates, `times` lines a number, then 30 lines that repeat the last number.
std::string standing(int times, bool anew = true) {
  std::string text;
  for (int i = 1; i <= 70; ++i) {
    text += fmt::format("num_updates: {} | loss: {}\n", (std::min(i, 40) + times - 1) / times * 10,
                        anew ? 8 - i / 100. : 8);
  }
  return text;
}

TEST_CASE("a remark calls a counter of updates as the log does") {
  const auto first_note = [](const std::string& text) { return Steps(text).notes.front().text(); };
  CHECK(first_note("nupdates: 1 | loss: 2\nnupdates: 2 | loss: 2\n").starts_with("nupdates "));
}

TEST_CASE("a counter of updates that stands still to the end skips a step a line at the least") {
  const Steps told(standing(1));
  REQUIRE(told.skips.size() == 1);
  CHECK(told.skips[0].first == 401);
  CHECK(told.skips[0].last == 430);
  CHECK(told.skips[0].count == 30);
  CHECK(Steps(standing(8)).skips.empty());         // eight ranks may print
  CHECK(Steps(standing(1, false)).skips.empty());  // one line is printed again
}

}  // namespace
}  // namespace halfscope::analyzers::readers::test_console_steps
