// SPDX-License-Identifier: Apache-2.0
// What a log does not tell of a step is not counted as clean.
#include <cmath>

#include "analyzers/replay/policy_study.hpp"
#include "analyzers/replay/replay_loop.hpp"
#include "analyzers/series_logs.hpp"
#include "analyzers/study.hpp"
#include "catch.hpp"

namespace halfscope::analyzers::test_step_series_known {
namespace {

TEST_CASE("Of gradients that are partly recorded only overflow is known") {
  CHECK(replay::judge({2, 0, true}, 1024) == replay::OverflowVerdict::unknown);
  CHECK(replay::judge({64, 0, true}, 1024) == replay::OverflowVerdict::overflow);
  CHECK(replay::judge({2, 0, true}, 0) ==
        replay::OverflowVerdict::unknown);  // an infinity times 0 is NaN
  CHECK(replay::judge({kInf, 1024, true}, 1024) == replay::OverflowVerdict::overflow);
}

TEST_CASE("A step that lacks one role's magnitude is unknown where other steps have it") {
  const replay::StepSeries series = read({step(0, 0.5, 0.5), step(1, 0.5), step(2, {}, 0.5),
                                          step(3, 64), step(4, 0.5, 0.5), step(5, 0.5, kInf)});
  const replay::Trace trace = at_scale(series, "1024");
  CHECK(trace.unknown == Steps{1, 2});
  CHECK(trace.skipped == Steps{3, 5});  // 64 * 1024 = 65536, whatever the other role has
  CHECK(at_scale(series, "512").unknown == Steps{1, 2, 3, 5});
  // A log that never has the role is not asked for it.
  CHECK(at_scale(read({step(0, 0.5), step(1, 0.5)}), "1024").unknown.empty());
}

TEST_CASE("Tables of all tensors of a role stand for its magnitude") {
  const auto a = record_of("activation_grad/a", 1, {0.25f});
  const auto b = record_of("activation_grad/b", 1, {0.25f});
  const auto later = record_of("activation_grad/b", 2, {0.25f});
  const Scalars scalars = {step(0, 0.5, 0.5), step(1, 0.5), step(2, 0.5)};
  CHECK(at_scale(read(scalars, {a, b, later}), "1024").unknown == Steps{2});
  CHECK(at_scale(read(scalars, {a}), "1024").unknown == Steps{2});
}

TEST_CASE("Every rank has to tell what a step's gradients were") {
  const Scalars rank0 = {step(0, 0.5), step(1, 0.5), step(2, 0.5), step(3, 0.5)};
  SECTION("all do") {
    const replay::StepSeries series =
        read_ranks({rank0, {step(0, 1), step(1, 2), step(2, 64), step(3, 0.5)}});
    const replay::Trace trace = at_scale(series, "1024");
    CHECK(trace.unknown.empty());
    CHECK(trace.skipped == Steps{2});
  }
  SECTION("one lacks a step, and one a magnitude") {
    const replay::StepSeries series =
        read_ranks({rank0, {step(0, 0.5), step(2, {}), step(3, 0.5)}});
    CHECK(series.steps == Steps{0, 1, 2, 3});
    CHECK(at_scale(series, "1024").unknown == Steps{1, 2});
    CHECK(at_scale(series, "131072").skipped == Steps{0, 1, 2, 3});  // rank 0 alone overflows
  }
  SECTION("rank 0 lacks a step") {
    const replay::StepSeries series =
        read_ranks({{step(0, 0.5), step(2, 0.5)}, {step(0, 0.5), step(1, 0.5), step(2, 0.5)}});
    CHECK(series.steps == Steps{0, 1, 2});
    CHECK(at_scale(series, "1024").unknown == Steps{1});
  }
  SECTION("a rank has none at all") {
    CHECK(at_scale(read_ranks({rank0, {}}), "1024").unknown == Steps{0, 1, 2, 3});
  }
  SECTION("of the selected steps") {
    frames::Selection selection;
    selection.first_step = 1;
    selection.end_step = 3;
    const replay::StepSeries series = read_ranks({rank0, rank0}, {}, {}, selection);
    CHECK(series.steps == Steps{1, 2});
    CHECK(at_scale(series, "1024").unknown.empty());
  }
}

TEST_CASE("A step that any rank skipped for an infinity overflows") {
  const Scalars rank0 = {step(0, 0.5), step(1, 0.5), step(2, 0.5)};
  Scalars rank1 = rank0;
  rank1[1].found_inf = true;
  CHECK(read_ranks({rank1, rank0}).recorded_skip[1] == true);
  const replay::StepSeries series = read_ranks({rank0, rank1});
  CHECK(series.recorded_skip[1] == true);
  CHECK(series.recorded_skip[2] == false);
  CHECK(at_scale(series, "1024").skipped == Steps{1});
  CHECK(at_scale(series, "512").unknown == Steps{1});
  // Analysed for the report it is the same.
  const TempFolder folder;
  for (const int rank : {0, 1}) {
    log::Manifest manifest;
    manifest.world_size = 2;
    manifest.rank = rank;
    log::RunLogWriter writer(folder / ("run/rank-000" + std::to_string(rank)), manifest);
    for (const auto& s : rank == 0 ? rank0 : rank1) writer.write(s);
    writer.write(record_of("weight_grad/a", 0, {0.5f}));
  }
  const replay::LogSeries found = analyze({folder / "run"}, {}, {}, {.series = true}, {}).series;
  REQUIRE(found.series.size() == 1);
  CHECK(at_scale(found.series[0], "1024").skipped == Steps{1});
}

TEST_CASE("Of ranks with different scales an infinity may be that of the largest") {
  const replay::StepSeries series = read_ranks(
      {{step(0, 0.5), step(1, 0.5, {}, 1024.0)}, {step(0, 0.5), step(1, kInf, {}, 4096.0)}});
  CHECK(series.seen[1].overflow_from == 4096);
}

TEST_CASE("Attempts of every rank count, and what a step has besides is its last attempt's") {
  const Scalars rank0 = {step(0, 0.5), retried(1, {0.5, 0.5}, 2048)};
  SECTION("on another rank") {
    const replay::StepSeries series =
        read_ranks({rank0, {step(0, 0.5), retried(1, {kInf, 1}, 2048)}});
    REQUIRE(series.retried.count(1) == 1);
    CHECK(series.seen[1].overflow_from == 2048);
    CHECK(series.retried.at(1)[1].max_abs == 1);
    CHECK(at_scale(series, "2048").skipped == Steps{1});
  }
  SECTION("not told by another rank") {
    const replay::StepSeries series = read_ranks({rank0, {step(0, 0.5), step(1, 0.5)}});
    CHECK(series.retried.at(1)[0].partial);
    CHECK_FALSE(series.retried.at(1)[1].partial);  // rank 1's tags are the last attempt's
    CHECK(at_scale(series, "1024").unknown == Steps{1});
  }
  SECTION("microbatches, tables and other ranks are not lost") {
    Scalars own = rank0;
    own[1].more["max_abs/activation_grad/microbatch-0"] = 32;
    const auto table = record_of("weight_grad/a", 1, {48});
    CHECK(read(own).retried.at(1)[1].max_abs == 32);
    CHECK(read(rank0, {table}).retried.at(1)[1].max_abs == 48);
    CHECK(read_ranks({rank0, {step(0, 0.5), step(1, 8)}}).retried.at(1)[1].max_abs == 8);
    // A single attempt is first and last.
    Scalars once = {step(0, 0.5), retried(1, {0.5}, 2048)};
    CHECK(read(once, {table}).seen[1].max_abs == 48);
  }
}

TEST_CASE("Microbatches that carry a scale nobody says make a step unknown") {
  const log::Manifest scaled = manifest_of(log::ScaleState::scaled);
  Scalars scalars = {step(0, 0.5), step(1, 0.5, {}, std::nullopt), step(2, 0.5)};
  for (auto& s : scalars) s.more["max_abs/weight_grad/microbatch-0"] = 4096;
  const replay::StepSeries series = read(scalars, {}, scaled);
  CHECK(series.seen[0].max_abs == 4);
  CHECK(at_scale(series, "1024").unknown == Steps{1});
  frames::Selection told;
  told.recorded_scale = 512;
  const replay::StepSeries known = read(scalars, {}, scaled, told);
  CHECK(known.seen[1].max_abs == 8);
  CHECK(known.seen[0].max_abs == 4);  // the log says 1024
  CHECK(at_scale(known, "1024").unknown.empty());
  // A table of the step has the scale, too.
  auto table = record_of("weight_grad/a", 1, {256}, 2048);
  CHECK(read(scalars, {table}, scaled).seen[1].max_abs == 2);
  // Unscaled ones need none.
  CHECK(read(scalars).seen[1].max_abs == 4096);
}

TEST_CASE("Microbatches that other steps or ranks have are missing where there are none") {
  Scalars scalars = {step(0, 0.5), step(1, 0.5), step(2, 0.5)};
  scalars[0].more = {{"max_abs/weight_grad/microbatch-0", 0.5},
                     {"max_abs/activation_grad/microbatch-0", 0.5}};
  scalars[1].more = {{"max_abs/weight_grad/microbatch-0", 0.5}};
  CHECK(at_scale(read(scalars), "1024").unknown == Steps{1, 2});
  // The largest gradient of activations is one over all microbatches.
  for (auto& s : scalars) s.max_abs_activation_grad = 0.5;
  CHECK(at_scale(read(scalars), "1024").unknown.empty());
  for (const char* const role : {"weight_grad", "activation_grad"}) {
    const bool weights = role == std::string("weight_grad");
    const Scalars none = {step(0, 0.5), step(1, 0.5)};
    Scalars some = none;
    some[0].more = {{std::string("max_abs/") + role + "/microbatch-0", 0.5}};
    // One microbatch on one rank is all that was added up.
    CHECK(at_scale(read(some), "1024").unknown == (weights ? Steps{} : Steps{1}));
    CHECK(at_scale(read_ranks({none, some}), "1024").unknown == Steps{0, 1});
    some[1].more = some[0].more;
    CHECK(at_scale(read(some), "1024").unknown.empty());
    CHECK(at_scale(read_ranks({some, some}), "1024").unknown.empty());
  }
}

TEST_CASE("FP32 gradients of weights alone do not tell that no scale cures") {
  const auto weights = computed_in(Dtype::f32, record_of("weight_grad/a.weight", 0, {0.5f}));
  const auto outputs = computed_in(Dtype::f32, record_of("activation_grad/a", 0, {0.5f}));
  const auto halves = computed_in(Dtype::f16, record_of("activation/a", 0, {0.5f}));
  const Scalars scalars = {step(0, 0.5), step(1, kInf, {}, 4096.0), step(2, 0.5)};
  const replay::StepSeries unknown = read(scalars, {weights});
  CHECK(unknown.seen[1].overflow_from == 4096);
  CHECK(at_scale(unknown, "1024").unknown == Steps{1});
  CHECK(read(scalars, {weights, outputs, halves}).seen[1].overflow_from == 4096);
  const replay::StepSeries wide = read(scalars, {weights, outputs});
  CHECK(wide.seen[1].overflow_from == 0);
  CHECK(at_scale(wide, "1024").model_nan_skips == 1);
}

TEST_CASE("Steps that are partly known tell nothing of how large gradients are nearby") {
  const auto weights = computed_in(Dtype::f32, record_of("weight_grad/a.weight", 0, {0.5f}));
  const auto outputs = computed_in(Dtype::f32, record_of("activation_grad/a", 0, {0.5f}));
  Scalars scalars;
  for (int i = 0; i < 13; ++i) {
    const bool whole = i < 3 || i > 9;
    scalars.push_back(whole ? step(i, 8, 8, 4096.0) : step(i, 0.001, {}, 4096.0));
  }
  scalars[6] = step(6, kInf, 1, 4096.0);
  // 8 at 4096 is a binade below overflow: a cast to FP16 may have made it.
  CHECK(read(scalars, {weights, outputs}).seen[6].overflow_from == 4096);
}

TEST_CASE("A table of weights beyond the scalars refuses nothing") {
  const auto nan = record_of("weight/a.weight", 7, {NAN, 1});
  const replay::StepSeries series = read({step(0, 0.5), step(1, 0.5)}, {nan});
  CHECK(series.steps == Steps{0, 1});
  // At a step that has scalars it still says that the forward pass is broken.
  const auto there = record_of("weight/a.weight", 1, {NAN, 1});
  CHECK(read({step(0, 0.5), step(1, kInf)}, {there}).seen[1].overflow_from == 0);
}

TEST_CASE("Scalars alone are enough for a study of policies") {
  const replay::PolicyStudy study = replay::study_magnitudes(
      read({step(0, 0.5), step(1, 64), step(2, 0.5)}), replay::PolicyOptions{});
  CHECK(study.traces.size() == policy::all().size());
  CHECK(study.series.flushed.empty());
}

TEST_CASE("What the run did is known where it says its scale") {
  Scalars scalars = {step(0, 0.5), step(1, 64, {}, std::nullopt), step(2, 0.5), step(3, 64)};
  scalars[3].found_inf = true;
  std::optional<replay::Trace> trace = replay::recorded_trace(read(scalars));
  REQUIRE(trace);
  CHECK(trace->overflow == Steps{3});
  CHECK(trace->skipped == Steps{3});
  CHECK(trace->unknown.empty());
  scalars[1].found_inf.reset();  // then nobody knows whether it was skipped
  trace = replay::recorded_trace(read(scalars));
  REQUIRE(trace);
  CHECK(trace->overflow == Steps{3});
  CHECK(trace->unknown == Steps{1});
  // An FP32 run applies what would have overflowed in FP16.
  scalars = {step(0, 0.5), step(1, 64), step(2, kInf, {}, std::nullopt)};
  trace = replay::recorded_trace(read(scalars));
  REQUIRE(trace);
  CHECK(trace->overflow.empty());
  CHECK(trace->applied_nonfinite == Steps{2});
}

}  // namespace
}  // namespace halfscope::analyzers::test_step_series_known
