// SPDX-License-Identifier: Apache-2.0
// Whose dynamic settings are recommended: each framework's own, as long as they make a step.
#include <algorithm>
#include <string>
#include <vector>

#include "analyzers/replay/policy_facts.hpp"
#include "analyzers/scalar_run.hpp"
#include "catch.hpp"

namespace test_dynamic {

using namespace halfscope;
using namespace halfscope::analyzers;
using test::study_of;
using test::write_run;

const recommend::DynamicAdvice* advice_of(const Study& study, std::string_view policy) {
  const auto& all = study.advice.dynamic;
  const auto found = std::ranges::find_if(
      all, [&](const auto& advice) { return policy::info_of(advice.policy).name == policy; });
  return found == all.end() ? nullptr : &*found;
}

TEST_CASE("the run's own policy is advised first, every framework's beside it", "[dynamic]") {
  const test::TempFolder folder;
  const Study found =
      study_of({write_run(folder / "run", std::vector<double>(200, 0.01), {{"policy", "paddle"}})});
  REQUIRE(found.advice.dynamic.size() == 12);
  CHECK(policy::info_of(found.advice.dynamic[0].policy).name == "paddle");
  for (const std::string_view framework : {"torch", "keras2", "keras3", "deepspeed", "megatron",
                                           "fairseq", "apex", "mxnet", "nnabla", "flax", "jmp"}) {
    CAPTURE(framework);
    const recommend::DynamicAdvice* const advice = advice_of(found, framework);
    REQUIRE(advice != nullptr);
    // As `policies --framework` finds it.
    const policy::Policy alone =
        policy::make(framework == "deepspeed" ? "deepspeed,hysteresis=1" : std::string(framework));
    replay::StepSeries series;
    for (std::int64_t i = 0; i < 200; ++i) series.steps.push_back(i);
    series.seen.assign(200, replay::AttemptMagnitudes{0.01});
    series.flushed = found.policies[0].series.flushed;
    const auto tuned = replay::tune(alone, series, {});
    REQUIRE(tuned);
    CHECK(policy::text_of(tuned->trace.policy) == policy::text_of(advice->policy));
  }
}

TEST_CASE("a policy that makes no step is skipped", "[dynamic]") {
  const test::TempFolder folder;
  const Study found =
      study_of({write_run(folder / "run", std::vector<double>(20, 1e7), {{"policy", "keras2"}})});
  REQUIRE(found.advice.dynamic.size() > 1);
  CHECK(policy::info_of(found.advice.dynamic[0].policy).name == "torch");
  CHECK(found.advice.dynamic[0].init < 0x1p-6);
  CHECK(advice_of(found, "keras2") == nullptr);  // its floor is 1
}

TEST_CASE("of several runs, twice the static scale with each framework's interval", "[dynamic]") {
  const test::TempFolder folder;
  const auto a = write_run(folder / "a", std::vector<double>(20, 0.5), {});
  const auto b = write_run(folder / "b", std::vector<double>(20, 4.0), {});
  const Study found = study_of({a, b});
  REQUIRE(found.advice.static_log2 == 12);
  CHECK(advice_of(found, "torch")->init == 0x1p13);
  CHECK(advice_of(found, "torch")->growth_interval == 2000);
  CHECK(advice_of(found, "deepspeed")->growth_interval == 1000);
  CHECK(advice_of(found, "torch")->tried == 0);
}

TEST_CASE("a run beside a file that cannot be replayed is not tuned", "[dynamic]") {
  const test::TempFolder folder;
  const auto run = write_run(folder / "a", std::vector<double>(20, 0.5), {});
  const auto gap = write_run(folder / "b", {0.5}, {});
  const Study both = study_of({run, gap});
  CHECK(both.advice.dynamic[0].replayed);
  CHECK(both.advice.dynamic[0].tried == 0);
}

TEST_CASE("one log under two spellings of its path is read twice, and replayed", "[dynamic]") {
  const test::TempFolder folder;
  write_run(folder / "run", std::vector<double>(20, 0.5), {});
  const std::string path = (folder / "run").string();
  const Study found = study_of({path, (folder / "").string() + "/run"});
  CHECK(found.policies.size() == 2);
  for (const replay::PolicyStudy& replayed : found.policies) CHECK(replayed.fixed);
}

TEST_CASE("settings are set within what a framework takes", "[dynamic]") {
  const auto start = [](const char* policy, int log2) {
    const auto made = replay::with_settings(policy::make(policy), log2, 500);
    return made ? policy::scale_of(*made) : 0;
  };
  CHECK(start("torch", 20) == 0x1p20);
  CHECK(start("torch", -9) == 0x1p-9);
  CHECK(start("keras2", 0) == 1);
  CHECK(start("keras2", -1) == 0);     // its floor
  CHECK(start("deepspeed", -1) == 0);  // integers
  CHECK(start("deepspeed", 4) == 16);
  CHECK(start("apex", 30) == 0x1p24);  // its ceiling
}

}  // namespace test_dynamic
