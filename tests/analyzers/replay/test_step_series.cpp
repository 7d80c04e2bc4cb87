// SPDX-License-Identifier: Apache-2.0
#include "analyzers/replay/step_series.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "analyzers/logs.hpp"
#include "analyzers/recommend/recommend.hpp"
#include "analyzers/replay/replay.hpp"
#include "analyzers/series_in.hpp"
#include "analyzers/underflow/underflow.hpp"
#include "catch.hpp"

namespace halfscope::analyzers::test_step_series {
namespace {

using test::record_of;
using test::TempFolder;
using test::Values;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr float kInfF = std::numeric_limits<float>::infinity();

/// A run log of these scalars and records, read.
replay::StepSeries read(const std::vector<log::StepScalars>& scalars,
                        const std::vector<log::TensorRecord>& records = {},
                        const log::Manifest& manifest = {}) {
  const TempFolder folder;
  {
    log::RunLogWriter writer(folder / "run", manifest);
    for (const auto& s : scalars) writer.write(s);
    for (const auto& r : records) writer.write(r);
  }
  return series_in(folder / "run");
}

log::StepScalars step(std::int64_t number, std::optional<double> max_abs, double scale = 1024,
                      bool skipped = false) {
  log::StepScalars s;
  s.step = number;
  s.max_abs_weight_grad = max_abs;
  s.loss_scale = scale;
  s.found_inf = skipped;
  return s;
}

log::TensorRecord computed_in(Dtype dtype, log::TensorRecord record) {
  record.computed_dtype = dtype;
  return record;
}

replay::StepSeries magnitudes(std::string_view text) {
  const TempFolder folder;
  return replay::read_magnitudes(folder.write("amax.txt", text));
}

TEST_CASE("A step's magnitude is the largest over roles, microbatches and tables") {
  log::Manifest scaled;
  scaled.gradients = log::ScaleState::scaled;
  log::StepScalars both = step(0, 0.5);
  both.max_abs_activation_grad = 0.75;
  log::StepScalars batches = step(1, 0.5);
  batches.more["max_abs/weight_grad/microbatch-0"] = 2048;  // scaled by 1024
  batches.more["max_abs/activation/microbatch-0"] = 1e9;    // no gradient
  log::StepScalars none = step(2, std::nullopt);
  const replay::StepSeries series =
      read({both, batches, none, step(3, 0.5)},
           {record_of("weight_grad/a.weight", 2, {3072, 1}, 1024),
            record_of("local_weight_grad/a.weight", 3, {4096, 1}, 1024)},
           scaled);
  REQUIRE(series.steps == std::vector<std::int64_t>{0, 1, 2, 3});
  CHECK(series.seen[3].max_abs == 4);
  CHECK(series.seen[0].max_abs == 0.75);
  CHECK(series.seen[1].max_abs == 2);
  CHECK(series.seen[2].max_abs == 3);
  CHECK(series.recorded_scale[1] == 1024.0);
  CHECK(series.recorded_skip[1] == false);
}

TEST_CASE("An infinity that FP16 made overflows from the recorded scale up") {
  const auto narrow = computed_in(Dtype::f16, record_of("weight_grad/a.weight", 0, {1}));
  const auto wide = computed_in(Dtype::f32, record_of("weight_grad/a.weight", 0, {1}));
  const auto scalars = std::vector{step(0, 1), step(1, kInf, 4096, true), step(2, 1)};
  CHECK(read(scalars, {narrow}).seen[1].overflow_from == 4096);
  CHECK(read(scalars).seen[1].overflow_from == 4096);  // nobody says what computed it
  // Far from the limit no rounding to 16 bits made it; near it, a cast by hand may have.
  const auto far = std::vector{step(0, 0.9), step(1, kInf, 4096, true), step(2, 0.9)};
  const auto small = computed_in(Dtype::f32, record_of("weight_grad/a.weight", 0, {0.5f}));
  const auto output = computed_in(Dtype::f32, record_of("activation_grad/a", 0, {0.5f}));
  CHECK(read(far, {small, output}).seen[1].overflow_from == 0);
  CHECK(read(scalars, {wide, output}).seen[1].overflow_from == 4096);
  auto with_loss = scalars;
  with_loss[1].loss = NAN;  // the forward pass fails: no scale helps
  CHECK(read(with_loss, {narrow}).seen[1].overflow_from == 0);
}

log::TensorRecord scaled_record(std::int64_t at, double scale) {
  log::TensorRecord record = record_of("weight_grad/a.weight", at, {1});
  record.state = log::ScaleState::scaled;
  record.scale = scale;
  return record;
}

TEST_CASE("Tables of a collapsed scale are skipped with one note, the steps stay") {
  const TempFolder folder;
  const auto write = [&](const char* name, const std::vector<double>& scales) {
    log::Manifest scaled;
    scaled.gradients = log::ScaleState::scaled;
    log::RunLogWriter writer(folder / name, scaled);
    for (std::size_t i = 0; i < scales.size(); ++i) {
      const auto at = static_cast<std::int64_t>(i);
      writer.write(step(at, 0.5, scales[i]));
      writer.write(scaled_record(at, scales[i]));
    }
    return folder / name;
  };
  frames::Notes notes;
  const replay::StepSeries series = series_in(write("run", {1024, 1024, 1e-42, 1e-43}), {}, &notes);
  CHECK(series.steps.size() == 4);
  CHECK(series.recorded_scale[3] == 1e-43);
  CHECK(std::count_if(notes.begin(), notes.end(), [](const std::string& note) {
          return note.find("2 histograms are skipped, from step 2 on") != std::string::npos;
        }) == 1);
  const auto dead = write("dead", {1e-42, 1e-43});
  const std::string message = test::message_of([&] { series_in(dead); });
  CHECK(message.find("positive normal binary32") != std::string::npos);
}

TEST_CASE("NaN that follows an infinity limits the recommended scale as it does the policies'") {
  const TempFolder folder;
  const auto static_scale = [&](const char* name, double gradient, double loss) {
    {
      log::RunLogWriter writer(folder / name, log::Manifest{});
      for (std::int64_t i = 0; i < 6; ++i) {
        auto s = step(i, i == 3 ? gradient : 0.1, 4096, i == 3);
        s.loss = i == 3 ? loss : 1.0;
        writer.write(s);
      }
      writer.write(computed_in(Dtype::f16, record_of("weight_grad/a.weight", 0, {0.1f})));
    }
    const underflow::Analysis analysis = underflow::analyze({folder / name}, {}, {});
    return recommend::recommend({analysis, overflow::find_overflow(analysis), {}}).static_log2;
  };
  CHECK(static_scale("inf", kInf, 1) == 10);  // below 2^12, and a binade to spare
  CHECK(static_scale("nan", NAN, 1) == 10);
  CHECK(static_scale("model", NAN, NAN) == 18);
}

TEST_CASE("Weights that hold NaN make a step that no scale cures") {
  const auto narrow = computed_in(Dtype::f16, record_of("weight_grad/a.weight", 0, {1}));
  const auto weight = record_of("weight/a.weight", 1, {NAN, 1});
  const replay::StepSeries series = read({step(0, 1), step(1, kInf, 4096, true)}, {narrow, weight});
  CHECK(series.seen[1].overflow_from == 0);
}

TEST_CASE("Lowering the scale far in vain means that no scale is to blame") {
  std::vector<log::StepScalars> scalars = {step(0, 0.01, 65536)};
  for (int i = 0; i < 17; ++i) scalars.push_back(step(i + 1, kInf, std::ldexp(65536.0, -i), true));
  scalars.push_back(step(18, 0.01, 0.5));
  const auto narrow = computed_in(Dtype::f16, record_of("weight_grad/a.weight", 0, {0.01f}));
  CHECK(read(scalars, {narrow}).seen[1].overflow_from == 0);
  scalars.erase(scalars.begin() + 6, scalars.end());  // four halvings tell nothing
  CHECK(read(scalars, {narrow}).seen[1].overflow_from == 65536);
}

TEST_CASE("found_inf without an infinity in what is recorded is kept apart") {
  const replay::StepSeries series =
      read({step(0, 0.5), step(1, 0.5, 1024, true), step(2, 64, 1024, true)});
  CHECK(series.seen[1].max_abs == kInf);
  CHECK(series.seen[1].overflow_from == 1024);
  REQUIRE(series.unexplained.size() == 1);
  CHECK(series.unexplained[0] == std::pair<std::size_t, double>(1, 0.5));
  CHECK(series.seen[2].max_abs == 64);  // 64 * 1024 = 65536 explains it
}

TEST_CASE("A skip at a scale that is not recorded is unknown at every scale") {
  log::StepScalars blind = step(0, 0.5, 1024, true);
  blind.loss_scale.reset();
  const replay::StepSeries series = read({blind, step(1, 0.5)});
  CHECK_FALSE(std::isfinite(series.seen[0].max_abs));
  CHECK(series.seen[0].overflow_from == kInf);
  const replay::Trace trace = replay::replay(policy::make("static,scale=512"), series);
  CHECK(trace.unknown == std::vector<std::int64_t>{0});
}

TEST_CASE("A scale below 0 is none") {
  const replay::StepSeries series = read({step(0, 0.5, -2), step(1, 0.5, 2)});
  CHECK_FALSE(series.recorded_scale[0].has_value());
  CHECK(series.recorded_scale[1] == 2.0);
}

TEST_CASE("Attempts of a retried step are all kept") {
  log::StepScalars retried = step(1, 0.5, 512);
  retried.more = {{"max_abs/weight_grad/attempt-0", kInf}, {"loss_scale/attempt-0", 2048},
                  {"max_abs/weight_grad/attempt-1", kInf}, {"loss_scale/attempt-1", 1024},
                  {"max_abs/weight_grad/attempt-2", 0.5},  {"loss_scale/attempt-2", 512}};
  const replay::StepSeries series = read({step(0, 0.5, 2048), retried});
  REQUIRE(series.retried.count(1) == 1);
  REQUIRE(series.retried.at(1).size() == 3);
  CHECK(series.retried.at(1)[1].overflow_from == 1024);
  CHECK(series.retried.at(1)[2].max_abs == 0.5);
  CHECK(series.seen[1].overflow_from == 2048);
  CHECK(series.recorded_scale[1] == 2048.0);
}

TEST_CASE("A step without a magnitude is refused with the way out") {
  const std::string message = test::message_of([] { read({step(0, 0.5), step(7, std::nullopt)}); });
  CHECK(message.find("step 7 has no magnitude of gradients") != std::string::npos);
  CHECK(message.find("docs/recording.md") != std::string::npos);
  const std::string no_scalars =
      test::message_of([] { read({}, {record_of("weight_grad/a.weight", 0, {1})}); });
  CHECK(no_scalars.find("--amax") != std::string::npos);
}

TEST_CASE("What is flushed at every scale follows from a step's tables") {
  // Becomes 0 at scale 2^k where x * 2^k <= 2^-25.
  const Values values = {0x1p-30f, 0x1p-26f, 1};
  const auto record = computed_in(Dtype::f32, record_of("weight_grad/a.weight", 3, values));
  const auto other = computed_in(Dtype::f32, record_of("activation_grad/a", 3, {0x1p-28f}));
  const auto weight = record_of("weight/a.weight", 3, {0x1p-30f});  // no loss scale acts on it
  const replay::StepSeries series = read({step(3, 1)}, {record, other, weight});
  REQUIRE(series.flushed.size() == 1);
  const replay::FlushedProfile& profile = series.flushed[0];
  CHECK(profile.step == 3);
  CHECK(profile.of == Interval(4));
  CHECK(profile.at(1) == Interval(3));
  CHECK(profile.at(2) == Interval(3));  // 2^-25 becomes 0 too: a tie
  CHECK(profile.at(0x1p2) == Interval(2));
  CHECK(profile.at(0x1p3) == Interval(2));
  CHECK(profile.at(0x1p4) == Interval(1));
  CHECK(profile.at(0x1p6) == Interval(0));
  CHECK(profile.at(0x1p-24) == Interval(3));
  CHECK(profile.at(0x1p-25) == Interval(4));
  CHECK(profile.at(0x1p-140) == Interval(4));
  CHECK(profile.at(0x1p100) == Interval(0));
  CHECK(profile.at(10) == Interval(1, 2));  // between 8 and 16
  CHECK(profile.at(0) == Interval(4));
  CHECK(profile.at(kInf) == Interval(0));
}

TEST_CASE("Zeros of FP16 gradients are perhaps flushed") {
  const auto record = computed_in(Dtype::f16, record_of("weight_grad/a.weight", 0, {0, 0, 1}));
  const replay::StepSeries series = read({step(0, 1)}, {record});
  REQUIRE(series.flushed.size() == 1);
  CHECK(series.flushed[0].of == Interval(1, 3));
  CHECK(series.flushed[0].at(1024) == Interval(0, 2));
}

TEST_CASE("Facts of tensors are unscaled") {
  log::TensorRecord record = record_of("activation_grad/a", 0, {2048, -1024, 1024, 0}, 1024);
  record.moments = {512, 2048.0 * 2048 + 2 * 1024.0 * 1024};
  const replay::StepSeries series =
      read({step(0, 2)}, {record, record_of("weight/a.weight", 0, {0.5f})});
  REQUIRE(series.tensors.size() == 2);
  const replay::TensorFacts& facts = series.tensors[0].steps.at(0);
  CHECK(facts.max_abs == 2);
  CHECK(facts.mean == 0.5);
  CHECK(facts.deviation == std::sqrt(6.0 / 4 - 0.25));
  CHECK(series.tensors[1].steps.at(0).max_abs == 0.5);
}

TEST_CASE("Gaps are refused, or filled with the step before") {
  replay::StepSeries series = read({step(0, 0.5), step(3, kInf, 4096, true), step(5, 2)});
  const std::string message = test::message_of([&] { replay::close_gaps(series, false); });
  CHECK(message.find("holds step 0 and then step 3") != std::string::npos);
  CHECK(message.find("--assume-constant-between") != std::string::npos);
  replay::close_gaps(series, true);
  CHECK(series.steps == std::vector<std::int64_t>{0, 1, 2, 3, 4, 5});
  CHECK(series.seen[2].max_abs == 0.5);
  CHECK(series.seen[4].overflow_from == 4096);
  CHECK(series.recorded_scale[4] == std::nullopt);
  CHECK(series.recorded_skip[3] == true);
  CHECK(series.recorded_skip[4] == std::nullopt);
}

TEST_CASE("A gap too wide to fill is refused") {
  replay::StepSeries series = read({step(0, 0.5), step(4'000'000'000'000, 0.5)});
  CHECK(test::message_of([&] { replay::close_gaps(series, true); }).find("--step") !=
        std::string::npos);
}

TEST_CASE("A plain series of magnitudes") {
  const replay::StepSeries series = magnitudes("0.5\n 1e-3\r\nnan\ninf\n0\n+2\n\n");
  CHECK(series.from_magnitudes);
  REQUIRE(series.seen.size() == 6);
  CHECK(series.steps.back() == 5);
  CHECK(series.seen[1].max_abs == 1e-3);
  CHECK(std::isnan(series.seen[2].max_abs));
  CHECK(series.seen[3].max_abs == kInf);
  CHECK(series.seen[4].max_abs == 0);
  CHECK(series.seen[5].max_abs == 2);
}

TEST_CASE("What is no magnitude is named with its line") {
  const auto refused = [](std::string_view text, std::string_view part) {
    const std::string message = test::message_of([&] { magnitudes(text); });
    INFO(message);
    CHECK(message.find(part) != std::string::npos);
  };
  refused("1\n-2\n", "line 2: -2 is negative");
  refused("1\n2 3\n", "line 2: found '2 3'");
  refused("one\n", "line 1: found 'one'");
  refused("1\n\n2\n", "line 2: is empty");
  refused("", "is empty");
  refused("1e999\n", "line 1: '1e999' is beyond binary64");
  refused("-inf\n", "line 1: -inf is negative");
  refused("++1\n", "line 1: found '++1'");
  refused("1\n" + std::string(1000, '1') + "\n", "line 2: is longer");
}

}  // namespace
}  // namespace halfscope::analyzers::test_step_series
