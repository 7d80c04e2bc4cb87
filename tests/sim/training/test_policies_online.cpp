// SPDX-License-Identifier: Apache-2.0
// Every policy at work in a run against the same policy stepped through what the run recorded.
#include <cmath>
#include <limits>

#include "catch.hpp"
#include "sim/training.hpp"
#include "temp_folder.hpp"

namespace test_policies_online {

using namespace halfscope;
using namespace halfscope::test;

struct Tried {
  double scale, weights, activations;  ///< largest magnitudes

  // In binary16 a gradient is infinite from 65520 on; 65504 is its largest number.
  bool overflow() const { return !(weights * scale < 65520) || !(activations * scale < 65520); }
};

/// All attempts of a step, as its scalars tell.
std::vector<Tried> attempts_of(const log::StepScalars& s) {
  std::vector<Tried> tried;
  for (int i = 0;; ++i) {
    const std::string end = "/attempt-" + std::to_string(i);
    const auto scale = s.more.find("loss_scale" + end);
    if (scale == s.more.end()) break;
    tried.push_back({scale->second, s.more.at("max_abs/weight_grad" + end),
                     s.more.at("max_abs/activation_grad" + end)});
  }
  if (tried.empty()) {
    tried.push_back({*s.loss_scale, *s.max_abs_weight_grad, *s.max_abs_activation_grad});
  }
  return tried;
}

/// Steps a fresh policy through a run. Returns how many steps it skipped.
std::int64_t follow(policy::Policy policy, const std::filesystem::path& run) {
  std::int64_t skipped = 0;
  for (const log::StepScalars& step : log::RunLog(run).scalars()) {
    const auto tried = attempts_of(step);
    policy::Decision decision;
    for (std::size_t i = 0; i < tried.size(); ++i) {
      INFO("step " << step.step << ", attempt " << i);
      CHECK(policy::scale_of(policy) == tried[i].scale);
      decision = policy::advance(
          policy,
          {.nonfinite = tried[i].overflow(), .max_abs = tried[i].weights, .layer = nullptr});
      CHECK((decision.action == policy::Action::retry) == (i + 1 < tried.size()));
    }
    CHECK((decision.action == policy::Action::skip) == *step.found_inf);
    skipped += *step.found_inf ? 1 : 0;
  }
  return skipped;
}

/// From a scale that is too large, growing again soon; empty where a policy has no such settings.
std::string pushed_text(const policy::Policy& policy) {
  const policy::Info& info = policy::info_of(policy);
  if (info.initial.empty() || info.interval.empty()) return {};
  const bool power = info.initial.find("power") != std::string_view::npos;
  return std::string(info.name) + "," + std::string(info.initial) + (power ? "=24" : "=2^24") +
         "," + std::string(info.interval) + "=2";
}

TEST_CASE("every policy does online what it does replayed") {
  const TempFolder temp;
  std::vector<std::string> texts = {"torch,init_scale=2^22,growth_interval=2", "static,scale=2^22",
                                    "nnabla,scale=2^22", "nvcaffe,adaptive=true,K=256",
                                    "nnabla-tutorial,loss_scale=2^22,interval=1"};
  for (const policy::Policy& policy : policy::all()) {
    texts.push_back(policy::text_of(policy));
    if (const std::string pushed = pushed_text(policy); !pushed.empty()) texts.push_back(pushed);
  }
  int with_skips = 0;
  for (const std::string& text : texts) {
    const policy::Policy policy = policy::make(text);
    const policy::Info& info = policy::info_of(policy);
    if (info.needs == policy::Needs::tensors || info.needs == policy::Needs::layers) continue;
    INFO(text);
    auto s = settings("mixed", text);
    s.steps = 40;
    s.record_every = 100;
    s.checkpoint_every = 100;
    const auto folder = temp / "run";
    std::filesystem::remove_all(folder);
    const sim::training::RunSummary summary = sim::training::train(s, folder);
    CHECK(summary.ended.empty());
    CHECK(follow(policy, folder) == summary.skipped);
    with_skips += summary.skipped > 0 ? 1 : 0;
  }
  CHECK(with_skips >= 20);  // else little was tried
}

TEST_CASE("policies that follow magnitudes see those of weights") {
  const TempFolder temp;
  for (const std::string text : {"nvcaffe,adaptive=true,K=16", "os2s-logmax"}) {
    INFO(text);
    auto s = settings("mixed", text);
    s.steps = 40;
    s.batch = 1;
    s.rule.learning_rate = 1;  // weights grow, and so do gradients that a ReLU stops
    s.record_every = 100;
    s.checkpoint_every = 100;
    std::filesystem::remove_all(temp / "run");
    sim::training::train(s, temp / "run");
    int larger = 0;
    for (const log::StepScalars& step : log::RunLog(temp / "run").scalars()) {
      larger += *step.max_abs_activation_grad > *step.max_abs_weight_grad ? 1 : 0;
    }
    CHECK(larger > 0);  // else nothing was tried
    follow(policy::make(text), temp / "run");
  }
}

TEST_CASE("a step that is tried again takes the next batch") {
  const TempFolder temp;
  auto s = settings("mixed", "nnabla,scale=2^20");
  s.steps = 2;
  const sim::training::RunSummary summary = sim::training::train(s, temp / "run");
  REQUIRE(summary.attempts > 3);
  CHECK(summary.skipped == 0);
  const auto step = log::RunLog(temp / "run").scalars().at(0);
  const auto tried = attempts_of(step);
  for (std::size_t i = 1; i < tried.size(); ++i) CHECK(tried[i].scale == tried[i - 1].scale / 2);
  CHECK(*step.loss_scale == tried.back().scale);
  // The weights are still those of the beginning: another loss is that of another batch.
  s.policy = policy::make("static,scale=1");
  sim::training::train(s, temp / "first");
  CHECK(*step.loss != *log::RunLog(temp / "first").scalars().at(0).loss);
}

TEST_CASE("without a policy nothing is skipped") {
  const TempFolder temp;
  auto s = settings("fp16");
  s.rule.learning_rate = 1e4;
  const sim::training::RunSummary summary = sim::training::train(s, temp / "run");
  CHECK(summary.skipped == 0);
  bool infinite = false;
  for (const log::StepScalars& step : log::RunLog(temp / "run").scalars()) {
    CHECK(*step.loss_scale == 1);
    CHECK_FALSE(*step.found_inf);
    infinite = infinite || !std::isfinite(*step.max_abs_weight_grad);
  }
  CHECK(infinite);
}

}  // namespace test_policies_online
