// SPDX-License-Identifier: Apache-2.0
#include "sim/training/true_error.hpp"

#include <cmath>
#include <cstring>

#include "catch.hpp"
#include "halfscope/number/convert.hpp"
#include "sim/backend/reference/backend.hpp"
#include "sim/training.hpp"
#include "temp_folder.hpp"

namespace test_true_error {

using namespace halfscope;
using namespace halfscope::test;
using sim::training::GradientError;
using sim::training::StepError;

sim::training::Settings compared(std::string_view mode, const std::string& scaling = {},
                                 const sim::networks::Network& network = kDense) {
  sim::training::Settings s = settings(mode, scaling, network);
  s.true_error = true;
  return s;
}

const GradientError& of(const StepError& step, log::Role role, const std::string& name) {
  for (const GradientError& error : step.tensors) {
    if (error.role == role && error.name == name) return error;
  }
  throw std::invalid_argument(name + ": not compared");
}

/// F16 or F32 values of a sample.
std::vector<double> sampled(const log::TensorFile& file, const std::string& name) {
  const auto tensor = file.tensor(name);
  if (!tensor) throw std::invalid_argument(name + ": not sampled");
  std::vector<double> values;
  for (std::size_t i = 0; i < tensor->view.count; ++i) {
    if (tensor->view.dtype == Dtype::f16) {
      std::uint16_t bits = 0;
      std::memcpy(&bits, tensor->view.data + 2 * i, 2);
      values.push_back(to_double(kBinary16, bits));
    } else {
      float value = 0;
      std::memcpy(&value, tensor->view.data + 4 * i, 4);
      values.push_back(value);
    }
  }
  return values;
}

/// The true gradients of the first step, from the weights that the run's sample has; those of a
/// mixed run from its master weights, which begin as the seed says.
std::vector<double> truth_of(const sim::training::Settings& s, const log::TensorFile& sample,
                             const std::string& name) {
  const auto backend = sim::backend::make_reference_backend();
  sim::autograd::Parameters parameters(*backend, sim::backend::kPrecisions[0], s.seed);
  const auto data = sim::data::open_data(s.data, s.seed);
  const sim::data::Batch batch = data->batch(0, s.batch);
  for (const bool trained : {false, true}) {  // the first makes the parameters
    sim::autograd::Tape tape(*backend, parameters, trained);
    s.network->forward(tape, *backend, batch, Dtype::f32, *data);
    if (trained) {
      tape.backward(1, false);
      break;
    }
    for (sim::autograd::Parameter* const parameter : parameters.trained()) {
      if (s.precision.master) continue;
      const auto values = sampled(sample, "weight/" + parameter->name);
      backend->set(parameter->weight, std::vector<float>(values.begin(), values.end()));
    }
  }
  for (sim::autograd::Parameter* const parameter : parameters.trained()) {
    if (parameter->name != name) continue;
    const auto values = sim::backend::reference::values(parameter->gradient);
    return {values.begin(), values.end()};
  }
  throw std::invalid_argument(name + ": no parameter");
}

TEST_CASE("true errors are what the sampled gradients and the reference say") {
  const TempFolder temp;
  for (const char* const mode : {"fp32", "fp16", "mixed", "bf16"}) {
    const bool sixteen = std::string_view(mode) != "fp32" && std::string_view(mode) != "bf16";
    // So small a scale that many gradients of binary16 underflow.
    const double scale = sixteen ? 0x1p-16 : 0x1p-3;
    auto s = compared(mode, sixteen ? "static,scale=2^-16" : "static,scale=0.125");
    s.steps = 1;
    INFO(mode);
    sim::training::train(s, temp / mode);
    if (std::string_view(mode) == "bf16") continue;  // no reader of its samples here
    const auto steps = sim::training::read_true_errors(temp / mode);
    REQUIRE(steps.size() == 1);
    CHECK(std::abs(steps[0].loss - steps[0].true_loss) < (sixteen ? 1e-2 : 1e-6));
    std::uint64_t lost_in_all = 0, small_in_all = 0;
    const log::Safetensors sample(log::RunLog(temp / mode).samples().at(0));
    for (const char* const name : {"fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"}) {
      INFO(name);
      const GradientError& error = of(steps[0], log::Role::weight_grad, name);
      const auto run = sampled(sample, std::string("weight_grad/") + name);
      const auto truth = truth_of(s, sample, name);
      REQUIRE(run.size() == truth.size());
      std::uint64_t nonzero = 0, lost = 0, small = 0, changed = 0;
      long double squares = 0, errors = 0, gone = 0, small_squares = 0;
      for (std::size_t i = 0; i < run.size(); ++i) {
        const long double x = run[i] / scale, t = truth[i];
        if (t != 0) ++nonzero;
        if (t != 0 && x == 0) ++lost, gone += t * t;
        // A tie is rounded to zero, the even one of the two.
        const bool too_small = std::abs(t) * scale <= (sixteen ? 0x1p-25L : 0x1p-150L);
        if (t != 0 && x == 0 && too_small) ++small, small_squares += t * t;
        if ((t < 0 && x > 0) || (t > 0 && x < 0)) ++changed;
        squares += t * t;
        errors += (x - t) * (x - t);
      }
      CHECK(error.total == run.size());
      CHECK(error.nonfinite == 0);
      CHECK(error.true_nonzero == nonzero);
      CHECK(error.lost == lost);
      CHECK(error.sign_changed == changed);
      CHECK(error.underflowed == small);
      lost_in_all += lost;
      small_in_all += small;
      CHECK(error.true_norm == Approx(std::sqrt(static_cast<double>(squares))).epsilon(1e-12));
      CHECK(error.error_norm == Approx(std::sqrt(static_cast<double>(errors))).epsilon(1e-9));
      CHECK(error.lost_norm == Approx(std::sqrt(static_cast<double>(gone))).epsilon(1e-12));
      CHECK(error.underflowed_norm ==
            Approx(std::sqrt(static_cast<double>(small_squares))).epsilon(1e-12));
    }
    CHECK((small_in_all > 0) == sixteen);
    CHECK((lost_in_all > small_in_all) == sixteen);  // what underflowed upstream is lost here
  }
}

TEST_CASE("binary32's gradients are within 1e-5 of the true ones, binary16's are not") {
  const TempFolder temp;
  for (const sim::networks::Network* const network : {&kDense, &kConv}) {
    const std::string name(network->name);
    sim::training::train(compared("fp32", {}, *network), temp / (name + "-fp32"));
    sim::training::train(compared("mixed", {}, *network), temp / (name + "-mixed"));
    double worst = 0;
    const auto wide = sim::training::read_true_errors(temp / (name + "-fp32"));
    REQUIRE(wide.size() == 12);
    for (const StepError& step : wide) {
      for (const GradientError& error : step.tensors) {
        // A bias before batch normalisation has no gradient but rounding errors.
        if (error.name == "conv.bias") continue;
        INFO(name << " step " << step.step << " " << error.name);
        CHECK(error.relative_error() < 1e-5);
        CHECK(error.cosine() > 1 - 1e-9);
      }
    }
    for (const StepError& step : sim::training::read_true_errors(temp / (name + "-mixed"))) {
      for (const GradientError& error : step.tensors) {
        if (error.name != "conv.bias") worst = std::max(worst, error.relative_error());
      }
    }
    CHECK(worst > 1e-5);
    CHECK(worst < 1);
  }
}

TEST_CASE("what a ReLU or a pool sends another way is lost, but did not underflow") {
  const TempFolder temp;
  // So small a scale that binary16 would store nothing: bfloat16 has binary32's range.
  auto s = compared("bf16", "static,scale=2^-40", *sim::networks::find_network("lenet"));
  s.steps = 41;
  s.record_every = 20;
  sim::training::train(s, temp / "run");
  std::uint64_t lost = 0, underflowed = 0;
  for (const StepError& step : sim::training::read_true_errors(temp / "run")) {
    for (const GradientError& error : step.tensors) {
      lost += error.lost;
      underflowed += error.underflowed;
      CHECK(error.underflowed_norm <= error.lost_norm);
    }
  }
  CHECK(lost > 0);
  CHECK(underflowed == 0);
}

TEST_CASE("a step that was tried again is compared with its last batch, microbatches with theirs") {
  const TempFolder temp;
  auto s = compared("mixed", "nnabla,scale=2^22");
  const sim::training::RunSummary summary = sim::training::train(s, temp / "again");
  REQUIRE(summary.attempts > summary.steps);
  s = compared("mixed", "static,scale=1024");
  s.accumulation_steps = 3;
  sim::training::train(s, temp / "micro");
  for (const char* const run : {"again", "micro"}) {
    for (const StepError& step : sim::training::read_true_errors(temp / run)) {
      INFO(run << " step " << step.step);
      const GradientError& error = of(step, log::Role::weight_grad, "fc2.weight");
      CHECK(error.relative_error() < 0.01);  // another batch's is another gradient: about 1
      CHECK(std::abs(step.loss - step.true_loss) < 0.01);
      const GradientError& logits = of(step, log::Role::activation_grad, "fc2");
      CHECK(logits.total == 8 * 10 * (std::string_view(run) == "micro" ? 3U : 1U));
      CHECK(logits.relative_error() < 0.01);
    }
  }
}

TEST_CASE("gradients that are infinite are counted, and skipped of norms") {
  const TempFolder temp;
  auto s = compared("mixed", "static,scale=2^24");
  s.steps = 1;
  sim::training::train(s, temp / "run");
  const auto steps = sim::training::read_true_errors(temp / "run");
  const GradientError& error = of(steps.at(0), log::Role::weight_grad, "fc2.bias");
  CHECK(error.nonfinite > 0);
  CHECK(error.true_nonzero + error.nonfinite <= error.total);
  CHECK(std::isfinite(error.error_norm));
}

TEST_CASE("true errors go on where a run goes on, and comparing changes nothing") {
  const TempFolder temp;
  auto s = compared("mixed", "torch,init_scale=2^22,growth_interval=3",
                    *sim::networks::find_network("mlp"));
  sim::training::train(s, temp / "whole");
  sim::training::train(s, temp / "parts",
                       [](const sim::training::StepResult& step) { return step.step < 6; });
  // As a kill leaves it: steps beyond the checkpoint, and a line that was cut off.
  std::filesystem::remove(temp / "parts/checkpoint/step-000007.safetensors");
  std::ofstream(temp / "parts/true_error.jsonl", std::ios::app) << R"({"step":7,"lo)";
  CHECK(sim::training::read_true_errors(temp / "parts").size() == 7);
  s = sim::training::recorded_settings(temp / "parts");
  CHECK(s.true_error);
  sim::training::resume(s, temp / "parts");
  CHECK(bytes_of(temp / "parts/true_error.jsonl") == bytes_of(temp / "whole/true_error.jsonl"));
  s.true_error = false;
  sim::training::train(s, temp / "plain");
  CHECK((contents(temp / "plain") == contents(temp / "whole")));
  CHECK(sim::training::read_true_errors(temp / "plain").empty());
}

TEST_CASE("a file of true errors that is none is refused with its line") {
  const TempFolder temp;
  for (const char* const line : {"{}", "nonsense",
                                 R"({"step":0,"loss":1,"true_loss":1,"tensors":)"
                                 R"([{"role":"none","name":"x"}]})"}) {
    std::ofstream(temp / "true_error.jsonl") << line << '\n';
    const std::string message = message_of([&] { sim::training::read_true_errors(temp / ""); });
    CHECK(message.find("true_error.jsonl, line 1: is not one of") != std::string::npos);
  }
}

}  // namespace test_true_error
