// SPDX-License-Identifier: Apache-2.0
// What zeros hide, what the run's own test of its gradients proves, and whose gradients policies
// follow.
#include <nlohmann/json.hpp>

#include <cmath>

#include "analyzers/replay/replay_loop.hpp"
#include "analyzers/series_logs.hpp"
#include "catch.hpp"

namespace halfscope::analyzers::test_step_series_tested {
namespace {

log::Manifest driven_by(nlohmann::json policy) {
  log::Manifest manifest;
  (*manifest.about)["loss_scaling"] = std::move(policy);
  return manifest;
}

TEST_CASE("A zero that FP16 made may overflow at scales far above its own") {
  const Scalars scalars = {step(0, 0.0, 0.0, 1024.0), step(1, 0.0, 0.0, 0.0),
                           step(2, 0.0, 0.0, std::nullopt)};
  const replay::StepSeries series = read(scalars);
  const double limit = 65520 * 0x1p25;  // times the scale at which it was made
  CHECK(replay::judge(series.seen[0], limit * 1024) == replay::OverflowVerdict::unknown);
  CHECK(replay::judge(series.seen[0], std::nextafter(limit * 1024, 0)) ==
        replay::OverflowVerdict::clean);
  CHECK(replay::judge(series.seen[1], 0x1p-140) == replay::OverflowVerdict::unknown);
  CHECK(replay::judge(series.seen[1], 0) == replay::OverflowVerdict::clean);
  CHECK(replay::judge(series.seen[2], limit) == replay::OverflowVerdict::unknown);  // as at scale 1
  CHECK(replay::judge(series.seen[2], limit / 2) == replay::OverflowVerdict::clean);
  CHECK(at_scale(series, "65536").unknown == Steps{1});
  // Of ranks the least scale hides most.
  const replay::StepSeries ranks =
      read_ranks({{step(0, 0.0, {}, 1024.0)}, {step(0, 0.0, {}, 1.0)}});
  CHECK(replay::judge(ranks.seen[0], limit) == replay::OverflowVerdict::unknown);
  // What was computed in FP32 is 0 wherever it is 0.
  const auto wide = [](const char* name) {
    return computed_in(Dtype::f32, record_of(name, 0, {0.0f}));
  };
  const replay::StepSeries known =
      read(scalars, {wide("weight_grad/a.weight"), wide("activation_grad/a")});
  CHECK(at_scale(known, "2^100").unknown.empty());
  // A series that is given as magnitudes holds true ones.
  replay::StepSeries plain;
  plain.seen.push_back({0, 0});
  CHECK(replay::judge(plain.seen[0], 0x1p100) == replay::OverflowVerdict::clean);
}

TEST_CASE("A step the run tested and applied is clean up to the run's scale") {
  const Scalars scalars = {step(0, 0.5, 0.5), step(1, 0.5), step(2, {}, {}), step(3, 0.5, 0.5)};
  const auto unknown = [&](const log::Manifest& manifest, const std::string& scale) {
    return at_scale(read(scalars, {}, manifest), scale).unknown;
  };
  const auto torch = driven_by({{"policy", "torch"}, {"init_scale", 1024}});
  CHECK(unknown(torch, "1024").empty());
  CHECK(unknown(torch, "512").empty());
  CHECK(unknown(torch, "2048") == Steps{1, 2});
  // What is recorded and overflows overflows, whatever the weights' gradients were.
  Scalars infinite = scalars;
  infinite[1].max_abs_weight_grad = 64;
  CHECK(at_scale(read(infinite, {}, torch), "1024").skipped == Steps{1});
}

TEST_CASE("A run that is not known to test its gradients proves nothing") {
  Scalars scalars = {step(0, 0.5, 0.5), step(1, 0.5), step(2, 0.5, 0.5)};
  const auto unknown = [&](const log::Manifest& manifest) {
    return at_scale(read(scalars, {}, manifest), "1024").unknown;
  };
  const auto torch = driven_by({{"policy", "torch"}});
  CHECK(unknown(torch).empty());
  CHECK(unknown({}) == Steps{1});
  CHECK(unknown(driven_by({{"policy", "none"}})) == Steps{1});
  CHECK(unknown(driven_by({{"policy", "nvcaffe"}})) == Steps{1});
  CHECK(unknown(driven_by({{"policy", "mxnet-static"}})) == Steps{1});
  CHECK(unknown(driven_by({{"policy", "static"}, {"scale", 1024}})) == Steps{1});
  CHECK(unknown(driven_by({{"policy", "static"}, {"scale", 1024}, {"skip", false}})) == Steps{1});
  CHECK(unknown(driven_by({{"policy", "static"}, {"scale", 1024}, {"skip", true}})).empty());
  std::vector<std::string> blind;
  for (const policy::Policy& policy : policy::all()) {
    const std::string name(policy::info_of(policy).name);
    if (name != "static" && !unknown(driven_by({{"policy", name}})).empty()) blind.push_back(name);
  }
  CHECK(blind == std::vector<std::string>{"mxnet-static", "nvcaffe", "als", "te-delayed"});
  // fastai v1 applies what overflows at a scale of 1 or below.
  const auto fastai = driven_by({{"policy", "fastai1"}});
  CHECK(unknown(fastai).empty());
  scalars[1].loss_scale = 1;
  CHECK(at_scale(read(scalars, {}, fastai), "1").unknown == Steps{1});
  CHECK(at_scale(read(scalars, {}, torch), "1").unknown.empty());
  scalars[1].loss_scale = 1024;
  // A run that applied an infinity did not test.
  scalars[2].max_abs_weight_grad = kInf;
  CHECK(unknown(torch) == Steps{1});
  // One that skipped tests, whatever it is called.
  scalars[2].found_inf = true;
  CHECK(unknown({}).empty());
  scalars[1].found_inf.reset();
  CHECK(unknown(torch) == Steps{1});
}

TEST_CASE("One rank alone of several is not the whole run") {
  const Scalars scalars = {step(0, 0.5, 0.5), step(1, 0.5, 64)};
  log::Manifest manifest;
  manifest.world_size = 8;
  frames::Notes notes;
  const replay::Trace trace = at_scale(read_ranks({scalars}, {}, manifest, {}, &notes), "1024");
  CHECK(trace.unknown == Steps{0});
  CHECK(trace.skipped == Steps{1});
  REQUIRE(notes.size() == 1);
  CHECK(notes[0].text().find("is only rank 0 of 8") != std::string::npos);
  // Gradients of weights are the same on all ranks, unless each has a part of them.
  const Scalars weights = {step(0, 0.5), step(1, 0.5)};
  notes.clear();
  CHECK(at_scale(read_ranks({weights}, {}, manifest, {}, &notes), "1024").unknown.empty());
  CHECK(notes.empty());
  // The run's own test is of all ranks.
  auto tested = manifest;
  (*tested.about)["loss_scaling"] = {{"policy", "torch"}};
  CHECK(at_scale(read(scalars, {}, tested), "1024").unknown.empty());
  for (log::Manifest* const each : {&manifest, &tested}) {
    each->sharded = {log::Role::weight_grad};
    CHECK(at_scale(read(weights, {}, *each), "1024").unknown == Steps{0, 1});
  }
}

TEST_CASE("Attempts that are missing are not taken as none") {
  log::StepScalars retry = retried(1, {kInf, kInf, 0.5}, 4096);
  const auto without = [&](const char* number) {
    log::StepScalars cut = retry;
    auto more = cut.more.map();
    more.erase(std::string("max_abs/weight_grad/attempt-") + number);
    more.erase(std::string("loss_scale/attempt-") + number);
    cut.more = more;
    return read({step(0, 0.5), cut});
  };
  const replay::StepSeries first = without("0");
  CHECK(at_scale(first, "1024").unknown == Steps{1});
  CHECK_FALSE(first.recorded_scale[1].has_value());
  REQUIRE(first.retried.at(1).size() == 3);
  CHECK(first.retried.at(1)[1].overflow_from == 2048);
  const replay::StepSeries middle = without("1");
  CHECK(at_scale(middle, "4096").skipped == Steps{1});
  CHECK(middle.retried.at(1)[1].partial);
  CHECK(middle.retried.at(1)[2].max_abs == 0.5);
  // A number of one beyond all bounds costs nothing.
  retry.more = {{"max_abs/weight_grad/attempt-4000000000", 0.5}};
  CHECK(read({step(0, 0.5), retry}).retried.at(1).size() == 2);
}

TEST_CASE("Policies that follow magnitudes see those of weights") {
  const policy::Policy policy = policy::make("nvcaffe,adaptive=true");
  const auto final_scale = [&](const replay::StepSeries& series) {
    return replay::replay(policy, series).final_scale;
  };
  CHECK(final_scale(read({step(0, 0.25, 8.0)})) == 16);  // 4 over it
  CHECK(final_scale(read({step(0, {}, 8.0)})) == 0.5);   // all that there is
  const replay::StepSeries part = read({step(0, 0.25, 8.0), step(1, {}, 8.0), step(2, 0.25, 8.0)});
  CHECK(replay::replay(policy, part).unknown == Steps{1});
  // A step that the run found clean is known, what a policy follows is not.
  const replay::StepSeries tested =
      read({step(0, 0.25, 8.0), step(1, {}, 8.0)}, {}, driven_by({{"policy", "torch"}}));
  CHECK(at_scale(tested, "1024").unknown.empty());
  CHECK(replay::replay(policy, tested).unknown == Steps{1});
  CHECK(replay::replay(policy::make("nvcaffe"), read({step(0, 0.25, 8.0)})).unknown.empty());
  // Microbatches are no gradient that the weights see, and overflow all the same.
  log::StepScalars batches = step(0, 0.25);
  batches.more["max_abs/weight_grad/microbatch-0"] = 8;
  CHECK(final_scale(read({batches})) == 16);
  CHECK(at_scale(read({batches}), "8192").skipped == Steps{0});
  // Tables stand for the magnitude; what is computed in binary32 among FP16 does not count.
  const auto narrow = computed_in(Dtype::f16, record_of("weight_grad/a.weight", 0, {0.25f}));
  const auto wide = computed_in(Dtype::f32, record_of("weight_grad/norm.weight", 0, {8}));
  const auto outputs = computed_in(Dtype::f16, record_of("activation_grad/a", 0, {8}));
  CHECK(final_scale(read({step(0, {}, {})}, {narrow, wide, outputs})) == 16);
  // Known for the weights alone, the activations' decide that the step is unknown.
  CHECK(replay::replay(policy, read({step(0, 0.25, 8.0), step(1, 0.25)})).unknown == Steps{1});
}

TEST_CASE("A zero that a policy follows is known up to the scale that made it") {
  const replay::StepSeries series = read({step(0, 0.0, 0.5, 1.0), step(1, 0.0, 0.5, 0.5)});
  const replay::Trace trace = replay::replay(policy::make("os2s-logmax"), series);  // starts at 1
  CHECK(trace.unknown.empty());  // minus infinity, and NaN from then on, as in the framework
  CHECK(std::isnan(trace.final_scale));
  const policy::Policy above = policy::make("nvcaffe,adaptive=true,initial_scale=2");
  CHECK(replay::replay(above, series).unknown == Steps{0, 1});
}

TEST_CASE("Delayed scaling takes the largest value of all ranks") {
  const TempFolder folder;
  const auto te = [&](const std::string& name, const std::vector<float>& values, int world_size) {
    log::Manifest manifest;
    manifest.world_size = world_size;
    for (std::size_t rank = 0; rank < values.size(); ++rank) {
      manifest.rank = static_cast<int>(rank);
      log::RunLogWriter writer(folder / name / ("rank-000" + std::to_string(rank)), manifest);
      for (const std::int64_t at : {0, 1}) {
        writer.write(step(at, 0.5));
        if (at == 0 || !std::isnan(values[rank])) {
          const float value = std::isnan(values[rank]) ? 1.0f : values[rank];
          writer.write(record_of("activation_grad/a", at, {value}));
        }
      }
    }
    return replay::replay(policy::make("te-delayed,fp8_format=E4M3"), series_in(folder / name));
  };
  CHECK(te("both", {1, 4}, 2).final_scale == 112);  // 448 over it
  CHECK(te("same", {4, 4}, 2).final_scale == 112);
  CHECK(te("first", {4, 1}, 2).final_scale == 112);
  CHECK(te("infinite", {4, INFINITY}, 2).applied_nonfinite == Steps{0, 1});
  const std::string cut = te("cut", {1, NAN}, 2).unavailable;
  CHECK(cut.find("a has those of 1 of 2 ranks at step 1") != std::string::npos);
  CHECK(te("missing", {1, 4}, 4).unavailable.find("2 of 4 ranks") != std::string::npos);
}

TEST_CASE("Gaps of more than a million steps are not assumed") {
  const auto message = [](std::int64_t second, std::int64_t third) {
    replay::StepSeries series = read({step(0, 0.5), step(second, 0.5), step(third, 0.5)});
    std::string said = test::message_of([&] { replay::close_gaps(series, true); });
    return std::pair(said, series.steps.size());
  };
  const auto [none, all] = message(500'001, 1'000'002);
  CHECK(none.empty());
  CHECK(all == 1'000'003);
  const auto [said, kept] = message(500'001, 1'000'003);
  CHECK(kept == 3);
  CHECK(said.find("holds step 500001 and then step 1000003, the widest gap") != std::string::npos);
  CHECK(said.find("together are 1000001 steps") != std::string::npos);
  CHECK(said.find("--step") != std::string::npos);
}

}  // namespace
}  // namespace halfscope::analyzers::test_step_series_tested
