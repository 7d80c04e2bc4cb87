// SPDX-License-Identifier: Apache-2.0
#include "sim/training/trainer.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>

#include "catch.hpp"
#include "halfscope/number/convert.hpp"
#include "sim/training.hpp"
#include "temp_folder.hpp"

namespace test_trainer {

using namespace halfscope;
using namespace halfscope::test;
using sim::backend::UpdateRule;

TEST_CASE("the same seed gives the same bits on 1 and 2 threads") {
  const TempFolder temp;
  for (const char* const mode : {"fp32", "mixed", "fp16"}) {
    for (const sim::networks::Network* const network : {&kDense, &kConv}) {
      auto s = settings(mode, "torch,init_scale=1024", *network);
      s.steps = 4;
      const std::string name = std::string(mode) + std::string(network->name);
      sim::training::train(s, temp / (name + "-1"));
      s.threads = 2;
      sim::training::train(s, temp / (name + "-2"));
      const auto one = contents(temp / (name + "-1")), two = contents(temp / (name + "-2"));
      INFO(name);
      CHECK((one == two));
      s.seed = 8;
      sim::training::train(s, temp / (name + "-other"));
      CHECK((contents(temp / (name + "-other")) != one));
    }
  }
}

TEST_CASE("a run that went on from a checkpoint is the run that was never stopped") {
  const TempFolder temp;
  // The scale is too large at first: when the run stops after step 0, one overflow of two that
  // lower it has been seen.
  const std::string scaling = "megatron,initial_scale=2^22,hysteresis=2,growth_interval=3";
  for (const UpdateRule::Kind kind :
       {UpdateRule::Kind::sgd, UpdateRule::Kind::momentum, UpdateRule::Kind::adam}) {
    auto s = settings("mixed", scaling);
    s.rule.kind = kind;
    s.rule.learning_rate = 0.01;
    const std::string name = std::to_string(static_cast<int>(kind));
    const sim::training::RunSummary whole = sim::training::train(s, temp / (name + "-whole"));
    REQUIRE(whole.skipped >= 2);
    REQUIRE(whole.skipped < s.steps);
    const std::string last = "checkpoint/step-000012.safetensors";
    for (const std::int64_t stop : {0, 5, 10}) {
      const auto folder = temp / (name + "-" + std::to_string(stop));
      const sim::training::RunSummary first = sim::training::train(
          s, folder, [stop](const sim::training::StepResult& step) { return step.step < stop; });
      CHECK(first.ended == "stopped after step " + std::to_string(stop));
      const sim::training::RunSummary rest = sim::training::resume(s, folder);
      INFO(name << " stopped after step " << stop);
      CHECK(rest.skipped == whole.skipped);
      CHECK(rest.first_loss == whole.first_loss);
      CHECK((contents(folder) == contents(temp / (name + "-whole"))));
      CHECK((bytes_of(folder / last) == bytes_of(temp / (name + "-whole") / last)));
    }
  }
}

TEST_CASE("a run that is killed at any step leaves a log, and goes on from its last checkpoint") {
  const TempFolder temp;
  const auto s = settings("mixed", "torch,init_scale=2^22,growth_interval=2");
  const auto copy_of = [&](std::int64_t step) { return temp / ("copy-" + std::to_string(step)); };
  sim::training::train(s, temp / "run", [&](const sim::training::StepResult& step) {
    std::filesystem::copy(temp / "run", copy_of(step.step),
                          std::filesystem::copy_options::recursive);
    return true;
  });
  const auto whole = contents(temp / "run");
  for (std::int64_t step = 0; step < s.steps; ++step) {
    const log::RunLog log(copy_of(step));
    CHECK(log.scalars().size() == static_cast<std::size_t>(step) + 1);
    CHECK(log.notes().empty());
    if (step % 3 == 0) {
      sim::training::resume(s, copy_of(step));
      CHECK((contents(copy_of(step)) == whole));
    }
  }
}

TEST_CASE(
    "only the last two checkpoints are kept, and the one before serves where the last fails") {
  const TempFolder temp;
  const auto s = settings("fp32");
  sim::training::train(s, temp / "run");
  const auto folder = temp / "run" / "checkpoint";
  const auto end = std::filesystem::directory_iterator();
  CHECK(std::distance(std::filesystem::directory_iterator(folder), end) == 2);
  const auto whole = contents(temp / "run");
  std::filesystem::resize_file(folder / "step-000012.safetensors", 100);
  sim::training::resume(s, temp / "run");  // from step 10
  CHECK((contents(temp / "run") == whole));
}

TEST_CASE("a flipped bit in the last checkpoint is noticed, wherever it is") {
  const TempFolder temp;
  const auto s = settings("fp32");
  sim::training::train(s, temp / "run");
  const auto whole = contents(temp / "run");
  const auto last = temp / "run" / "checkpoint" / "step-000012.safetensors";
  const auto flip = [&](std::uintmax_t byte) {
    std::fstream file(last, std::ios::binary | std::ios::in | std::ios::out);
    file.seekg(static_cast<std::streamoff>(byte));
    const int old = file.get();
    file.seekp(static_cast<std::streamoff>(byte));
    file.put(static_cast<char>(old ^ 4));
  };
  const std::uintmax_t size = std::filesystem::file_size(last), parts = 24;
  for (std::uintmax_t part = 0; part < parts; ++part) {
    CAPTURE(part);
    flip(part * (size - 1) / (parts - 1));
    sim::training::resume(s, temp / "run");  // from step 10
    REQUIRE((contents(temp / "run") == whole));
  }
  flip(size - 1);
  std::filesystem::remove(temp / "run" / "checkpoint" / "step-000010.safetensors");
  CHECK(message_of([&] {
          sim::training::resume(s, temp / "run");
        }).find("its checksum does not fit") != std::string::npos);
}

TEST_CASE("a longer run goes on where a finished one ended") {
  const TempFolder temp;
  auto s = settings("fp32");
  s.sample_every = 5;
  s.steps = 6;
  sim::training::train(s, temp / "run");
  CHECK(message_of([&] { sim::training::resume(s, temp / "run"); }).find("has done its 6 steps") !=
        std::string::npos);
  s.steps = 12;
  sim::training::resume(s, temp / "run");
  sim::training::train(s, temp / "whole");
  CHECK((contents(temp / "run") == contents(temp / "whole")));
}

TEST_CASE("microbatches are one batch") {
  const TempFolder temp;
  auto s = settings("fp32");
  s.steps = 1;
  s.batch = 16;
  sim::training::train(s, temp / "one");
  s.batch = 8;
  s.accumulation_steps = 2;
  sim::training::train(s, temp / "two");
  const auto one = log::RunLog(temp / "one").scalars().at(0);
  const auto two = log::RunLog(temp / "two").scalars().at(0);
  CHECK(std::abs(*one.loss - *two.loss) < 1e-5 * *one.loss);
  CHECK(std::abs(*one.max_abs_weight_grad - *two.max_abs_weight_grad) <
        1e-4 * *one.max_abs_weight_grad);
  const double first = two.more.at("max_abs/activation_grad/microbatch-0");
  const double second = two.more.at("max_abs/activation_grad/microbatch-1");
  CHECK(std::max(first, second) == *two.max_abs_activation_grad);
  CHECK(one.more.empty());
  log::RunLog(temp / "two").for_each([](log::TensorRecord&& record) {
    if (record.name == "activation/fc1") {
      CHECK(record.shape == std::vector<std::uint64_t>{2, 8, 12});
      CHECK(record.table.total() == 2 * 8 * 12);
    }
  });
}

TEST_CASE("clipping bounds the norm of the unscaled gradients") {
  const TempFolder temp;
  auto s = settings("fp32", "static,scale=1024");
  s.steps = 1;
  s.clip = 0.01;
  s.rule.learning_rate = 0.5;
  sim::training::train(s, temp / "run");
  const log::RunLog log(temp / "run");
  const log::Safetensors sample(log.samples().at(0));
  double squares = 0, gradients = 0;
  for (const char* const name : {"fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"}) {
    for (const float u : floats(sample, std::string("update/") + name)) squares += double{u} * u;
    for (const float g : floats(sample, std::string("weight_grad/") + name)) {
      gradients += double{g} * g / 1024 / 1024;
    }
  }
  REQUIRE(std::sqrt(gradients) > 0.1);  // there is something to clip
  CHECK(std::abs(std::sqrt(squares) - 0.5 * 0.01) < 1e-5 * 0.005);
}

TEST_CASE("samples hold the weight before the step, its gradient with the scale, and the update") {
  const TempFolder temp;
  auto s = settings("fp32", "static,scale=256");
  s.steps = 3;
  s.sample_every = 1;
  s.rule.learning_rate = 0.5;
  sim::training::train(s, temp / "run");
  const auto samples = log::RunLog(temp / "run").samples();
  REQUIRE(samples.size() == 3);
  const log::Safetensors first(samples.at(0)), second(samples.at(1));
  CHECK(first.metadata().at("scale") == "256");
  CHECK(first.metadata().at("gradients") == "scaled");
  const auto weight = floats(first, "weight/fc1.weight"),
             update = floats(first, "update/fc1.weight");
  const auto gradient = floats(first, "weight_grad/fc1.weight");
  const auto next = floats(second, "weight/fc1.weight");
  for (std::size_t i = 0; i < weight.size(); ++i) {
    CHECK(weight[i] + update[i] == next[i]);
    CHECK(update[i] == -0.5F * (gradient[i] / 256));
  }
}

TEST_CASE("in mixed precision the weight is the master's, rounded") {
  const TempFolder temp;
  sim::training::train(settings("mixed", "static,scale=64"), temp / "run");
  const log::Safetensors last(temp / "run" / "checkpoint" / "step-000012.safetensors");
  const log::Safetensors first(log::RunLog(temp / "run").samples().at(0));
  const auto weight = last.tensor("weight/fc1.weight"), begun = first.tensor("weight/fc1.weight");
  REQUIRE((weight && begun && weight->view.dtype == Dtype::f16));
  const auto master = floats(last, "master_weight/fc1.weight");
  std::size_t moved = 0, between = 0;
  for (std::size_t i = 0; i < master.size(); ++i) {
    std::uint16_t now = 0, then = 0;
    std::memcpy(&now, weight->view.data + 2 * i, 2);
    std::memcpy(&then, begun->view.data + 2 * i, 2);
    const auto rounded = from_double(kBinary16, master[i]).bits;
    CHECK(now == rounded);
    moved += now != then ? 1 : 0;
    between += to_double(kBinary16, rounded) != double{master[i]} ? 1 : 0;
  }
  CHECK(moved > 0);
  CHECK(between > 0);
}

TEST_CASE("a run that diverges ends with a message and a log") {
  const TempFolder temp;
  auto s = settings("fp32");
  s.rule.learning_rate = 1e30;
  s.steps = 1000;
  s.record_every = 50;
  const sim::training::RunSummary summary = sim::training::train(s, temp / "run");
  CHECK(summary.ended.find("diverged: the loss has not been finite for 100 steps") == 0);
  CHECK(summary.steps < 110);
  CHECK(log::RunLog(temp / "run").scalars().size() == static_cast<std::size_t>(summary.steps));
}

TEST_CASE("a policy that gives up ends the run with its message") {
  const TempFolder temp;
  auto s = settings("mixed", "fairseq");
  s.rule.learning_rate = 1e30;
  s.steps = 1000;
  const sim::training::RunSummary summary = sim::training::train(s, temp / "run");
  CHECK(summary.ended.find("loss scaling by fairseq ends training here: FloatingPointError") !=
        std::string::npos);
  CHECK(summary.steps < 100);
  const auto scalars = log::RunLog(temp / "run").scalars();
  CHECK(scalars.back().step == summary.steps - 1);
}

TEST_CASE("settings that cannot be are refused in words") {
  const TempFolder temp;
  const auto refused = [&](const sim::training::Settings& s) {
    return message_of([&] { sim::training::train(s, temp / "none"); });
  };
  CHECK(refused(settings("mixed", "te-delayed")).find("is not a loss scale") != std::string::npos);
  auto s = settings("mixed", "als");
  s.accumulation_steps = 2;
  CHECK(refused(s).find("microbatches would carry different scales") != std::string::npos);
  s = settings("fp32");
  s.steps = 0;
  CHECK_THROWS_AS(sim::training::train(s, temp / "none"), std::invalid_argument);
  CHECK_FALSE(std::filesystem::exists(temp / "none"));

  s = settings("fp32");
  s.steps = 2;
  sim::training::train(s, temp / "run");
  CHECK(message_of([&] {
          sim::training::train(s, temp / "run");
        }).find("holds a run log already") != std::string::npos);
  s.steps = 4;
  s.batch = 9;
  CHECK(message_of([&] {
          sim::training::resume(s, temp / "run");
        }).find("has batch 8, and 9 was asked for") != std::string::npos);
  s.batch = 8;
  s.rule.weight_decay = 0.1;
  CHECK(message_of([&] { sim::training::resume(s, temp / "run"); }).find("\"weight_decay\":0.1") !=
        std::string::npos);
  s.rule.weight_decay = 0;
  std::filesystem::remove_all(temp / "run" / "checkpoint");
  CHECK(message_of([&] { sim::training::resume(s, temp / "run"); }).find("has no checkpoint") !=
        std::string::npos);
}

}  // namespace test_trainer
