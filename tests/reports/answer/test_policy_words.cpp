// SPDX-License-Identifier: Apache-2.0
// What a replay says in words, policies by name, and lines to paste.
#include <stdexcept>
#include <string>

#include "catch.hpp"
#include "reports/answer/policies.hpp"
#include "reports/answer/policy_paste.hpp"
#include "reports/sample_series.hpp"

namespace test_policy_words {

using namespace halfscope;
using namespace halfscope::reports;
using analyzers::replay::PolicyStudy;
using analyzers::replay::StepSeries;
using analyzers::replay::Trace;
using analyzers::replay::TraceOutcome;
using test::has;
using test::steps;

TEST_CASE("skipped steps are a range where some are not known", "[reports][policies]") {
  Trace trace;
  trace.length = 200;
  trace.skipped = {3, 5, 9};
  CHECK(answer::skipped_text(trace) == "3");
  trace.unknown = {4, 7};
  CHECK(answer::skipped_text(trace) == "3 to 5");
  trace.applied_nonfinite = {8};
  CHECK(answer::skipped_text(trace) == "3 to 5 + 1 spoiled");
}

/// Lines of its framework, or nothing.
static std::string policy_line(const policy::Policy& policy) {
  const auto paste = answer::paste_of(policy);
  return paste ? paste->lines : "";
}

TEST_CASE("a tuned policy is a line of its framework", "[reports][policies]") {
  CHECK(policy_line(policy::make("torch,init_scale=2^12,growth_interval=500")) ==
        "scaler = torch.amp.GradScaler(\"cuda\", init_scale=4096.0, growth_interval=500)");
  CHECK(has(policy_line(policy::make("deepspeed,init_scale=2^12,scale_window=500")),
            "\"initial_scale_power\": 12, \"loss_scale_window\": 500, \"hysteresis\": 1"));
  CHECK(has(policy_line(policy::make("deepspeed,initial_scale_power=12,min_loss_scale=0")),
            "\"loss_scale_window\": 1000, \"hysteresis\": 2, \"min_loss_scale\": 0}"));
  CHECK(has(policy_line(policy::make("deepspeed,hysteresis=3,consecutive_hysteresis=true")),
            "\"hysteresis\": 3, \"min_loss_scale\": 1, \"consecutive_hysteresis\": true}"));
  CHECK(policy_line(policy::make("deepspeed,hysteresis=3,scale_factor=4")).empty());
  CHECK(policy_line(policy::make("deepspeed,init_scale=0.5")).empty());
  CHECK(has(policy_line(policy::make("torch,backoff_factor=0.25")),
            "growth_interval=2000, backoff_factor=0.25)"));
  CHECK(policy_line(policy::make("mxnet,max_loss_scale=4")).empty());
  CHECK(has(policy_line(policy::make("torch,init_scale=1000")), ", init_scale=1000.0, "));
  CHECK(has(policy_line(policy::make("torch,growth_interval=2147483647")),
            "growth_interval=2**31 - 1)  # never grows"));
  CHECK(policy_line(policy::make("megatron,hysteresis=3")) ==
        "--fp16 --initial-loss-scale 4294967296 --min-loss-scale 1 --loss-scale-window 1000 "
        "--hysteresis 3");
  CHECK(policy_line(policy::make("fairseq,init_scale=0.5")).empty());  // the flag is an integer
  CHECK(has(policy_line(policy::make("fairseq,threshold=0.25")), " --threshold-loss-scale 0.25"));
  CHECK(!has(policy_line(policy::make("fairseq")), "threshold"));
  CHECK(policy_line(policy::make("apex-hysteresis")).empty());
}

TEST_CASE("a framework has its own line where a policy serves several", "[reports][policies]") {
  const policy::Policy policy = answer::policy_called("FastAI, init_scale=4096");
  const auto paste = answer::paste_of(policy, answer::policy_name_in("FastAI, init_scale=4096"));
  REQUIRE(paste);
  CHECK(paste->where == "fastai");
  CHECK(paste->lines == "learn = learn.to_fp16(init_scale=4096.0, growth_interval=2000)");
  for (const auto& [framework, where] :
       {std::pair{"torch", "PyTorch"}, std::pair{"lightning", "Lightning"},
        std::pair{"accelerate", "Hugging Face Accelerate"},
        std::pair{"transformers", "Hugging Face Trainer"}}) {
    CAPTURE(framework);
    const auto own = answer::paste_of(policy, framework);
    REQUIRE(own);
    CHECK(own->where == where);
    CHECK(has(own->lines, "init_scale=4096.0, growth_interval=2000)"));
  }
}

TEST_CASE("every policy has lines to paste, or a reason", "[reports][policies]") {
  for (const policy::Policy& policy : policy::all()) {
    const std::string name(policy::info_of(policy).name);
    CAPTURE(name);
    const bool kernel = name == "apex-hysteresis";  // its caller has the settings
    CHECK(answer::paste_of(policy).has_value() ==
          (answer::why_not_tunable(policy).empty() && !kernel));
  }
  CHECK(has(answer::why_not_tunable(policy::make("chainer")), "no setting for where it starts"));
  CHECK(has(answer::why_not_tunable(policy::make("apex,loss_scale=128")), "constant"));
}

TEST_CASE("a name that is not known offers what is near", "[reports][policies]") {
  const auto said = [](const char* text) {
    try {
      answer::policy_called(text);
    } catch (const std::invalid_argument& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(has(said("jaxx"), "did you mean jax"));
  CHECK(has(said("torhc"), "did you mean torch"));
  CHECK(has(said("qqqqqqq"), "is unknown; use one of static, torch"));
  CHECK(has(said("jaxx"), "fastai for torch"));
  CHECK(policy::info_of(answer::policy_called("PyTorch")).name == "torch");
  CHECK(policy::info_of(answer::policy_called("TensorFlow")).name == "keras2");
  CHECK(policy::info_of(answer::policy_called("Keras")).name == "keras3");
  CHECK(policy::info_of(answer::policy_called("JAX")).name == "flax");
}

TEST_CASE("lost is a range where it is not known", "[reports][policies]") {
  StepSeries series = steps(100, 1);
  Trace trace;
  trace.length = 100;
  trace.skipped = {3};
  trace.unknown = {4, 5};
  CHECK(answer::lost_text(trace, series) == "1.00 to 3.00 %");
  trace.mean_flushed = {0.0, 0.5};
  CHECK(answer::lost_text(trace, series) == "1.00 to 51.5 %");
  trace.length = trace.untaken = 50;
  trace.error = {"the scale is at its minimum", 49};
  trace.unknown.clear();
  trace.mean_flushed.reset();
  CHECK(answer::lost_text(trace, series) == "52.0 %");
  trace.length = 100;
  trace.untaken = 0;
  trace.error.reset();
  series.flushed.resize(1);  // others know what is flushed
  CHECK(answer::lost_text(trace, series) == "at least 1.00 %");
}

TEST_CASE("not all skips are the model's where some are not known", "[reports][policies]") {
  PolicyStudy study;
  study.series = steps(10, 1);
  study.fixed.emplace();
  study.fixed->scale = {{0, 4.0}};
  study.fixed->length = 10;
  study.fixed->skipped = {1, 2};
  study.fixed->model_nan_skips = 2;
  CHECK(has(answer::fixed_text(study), "(all for NaN or infinity in the model"));
  study.fixed->unknown = {5};
  CHECK(has(answer::fixed_text(study), "2 to 3 of 10 steps skipped (2 for NaN"));
  study.fixed->unknown.clear();
  study.fixed->applied_nonfinite = {7};
  CHECK(has(answer::fixed_text(study),
            "2 of 10 steps skipped, 1 spoiled (NaN or infinity goes into"));
}

std::string answer_of(const PolicyStudy& study) {
  std::string all;
  for (const std::string& sentence : answer::replay_answer(study).sentences) all += sentence + "\n";
  return all;
}

TEST_CASE("lines to paste are told from the others", "[reports][policies]") {
  PolicyStudy study;
  study.series = steps(30, 1);
  study.tuned.emplace();
  study.tuned->trace.policy = policy::make("torch,init_scale=2^12");
  study.tuned->trace.length = 30;
  const answer::Section answer = answer::replay_answer(study);
  for (const std::string& sentence : answer.sentences) {
    CHECK(sentence.find('\n') == std::string::npos);
  }
  REQUIRE(answer.pastes.size() == 1);
  CHECK(answer.pastes[0].lines == policy_line(study.tuned->trace.policy));
}

TEST_CASE("settings are searched or it is said why not", "[reports][policies]") {
  PolicyStudy study;
  study.series = steps(10, 0);
  CHECK(has(answer::not_tuned_text(study, "Chainer"), "searched for chainer: it starts at 1"));
  CHECK(has(answer::not_tuned_text(study, "torch"), "no step shows which scale"));
}

TEST_CASE("settings that keep the target are not denied", "[reports][policies]") {
  PolicyStudy study;
  study.series = steps(30, 1);
  study.target_underflow = 1e-4;
  study.tuned.emplace();
  study.tuned->name = study.tuned->text = "apex-legacy";
  study.tuned->trace.policy = policy::make("apex-legacy");
  study.tuned->trace.length = 30;
  study.tuned->trace.mean_flushed = {0.01, 0.01};
  CHECK(has(answer_of(study), "No setting keeps the flushed share at the target of 0.01 %."));
  study.tuned->own_within_target.emplace();
  study.tuned->own_within_target->length = 30;
  study.tuned->own_within_target->skipped = {0, 1};
  CHECK(has(answer_of(study),
            "No setting that was tried keeps the flushed share at the target of 0.01 %; those it "
            "has do, with 2 of 30 steps skipped."));
  study.tuned->own_within_target->skipped.clear();
  CHECK(has(answer_of(study), "those it has do, from a scale that leaves too little headroom."));
}

TEST_CASE("a static scale that is refused is said to be", "[reports][policies]") {
  PolicyStudy study;
  study.series = steps(10, 1);
  CHECK(answer::fixed_text(study).empty());
  study.advised = {-46, analyzers::replay::NoStatic::diverges};
  CHECK(has(answer::fixed_text(study), "the largest gradients need one of 2^-46 or less"));
}

TEST_CASE("why steps were lost tells the model from the scale", "[reports][policies]") {
  Trace trace;
  trace.length = 100;
  CHECK(answer::why_text(trace).empty());
  trace.skipped = {1, 2, 3};
  CHECK(answer::why_text(trace) == "overflow by the scale");
  trace.model_nan_skips = 3;
  CHECK(answer::why_text(trace) == "NaN or infinity in the model, which no scale cures");
  trace.model_nan_skips = 1;
  CHECK(answer::why_text(trace) ==
        "2 overflow by the scale; 1 NaN or infinity in the model, which no scale cures");
  trace.applied_nonfinite = {4};
  CHECK(has(answer::why_text(trace), "; NaN or infinity applied to the weights at 1 step"));
}

TEST_CASE("a trace's end is told in words", "[reports][policies]") {
  const StepSeries series = steps(10, 1);
  Trace trace;
  trace.final_scale = 1024;
  CHECK(answer::end_text(trace, series) == "2^10");
  trace.outcome = TraceOutcome::floor;
  CHECK(answer::end_text(trace, series) == "2^10, its floor");
  trace.outcome = TraceOutcome::zero;
  CHECK(has(answer::end_text(trace, series), "0"));
  trace.outcome = TraceOutcome::infinity;
  CHECK(has(answer::end_text(trace, series), "infin"));
}

}  // namespace test_policy_words
