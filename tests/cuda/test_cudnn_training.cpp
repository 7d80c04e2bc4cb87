// SPDX-License-Identifier: Apache-2.0
// Whole networks on the cuDNN backend: the optimizer's bits, statistics, runs beside emulated ones.
#include <nlohmann/json.hpp>

#include <cmath>
#include <random>

#include "cuda/device_backend.hpp"
#include "sim/backend/operation_differences.hpp"
#include "sim/backend/update_constants.hpp"
#include "sim/operation.hpp"
#include "sim/training.hpp"
#include "temp_folder.hpp"

namespace halfscope::test::test_cudnn_training {
namespace {

using namespace halfscope::sim;
using sim_test::Floats;

backend::UpdateRule rule_of(backend::UpdateRule::Kind kind) {
  backend::UpdateRule rule;
  rule.kind = kind;
  rule.weight_decay = 0.01;
  rule.t = 3;
  return rule;
}

/// Weight, delta and state after an update that began with the same bits.
std::vector<Floats> updated(backend::Backend& backend, const backend::UpdateRule& rule,
                            Dtype gradient, Dtype weight) {
  constexpr std::int64_t kCount = 777;
  const auto made = [&](std::uint64_t seed, Dtype dtype, double deviation) {
    return sim_test::tensor_of(backend, {kCount}, dtype, sim_test::normal(kCount, seed, deviation));
  };
  backend::Tensor g = made(1, gradient, 1000), w = made(2, weight, 1),
                  delta = backend.allocate_uninitialized({kCount}, weight);
  std::vector<backend::Tensor> state;
  for (std::size_t i = 0; i < backend::state_count(rule.kind); ++i) {
    state.push_back(made(3 + i, weight, 0.1));
    if (i == 1) backend.relu_forward(backend::Tensor(state[1]), state[1]);  // squares
  }
  backend.update(rule, g, 1.0 / 1024, w, state, delta);
  std::vector<Floats> found = {backend.get(w), backend.get(delta)};
  for (const backend::Tensor& tensor : state) found.push_back(backend.get(tensor));
  return found;
}

TEST_CASE("cudnn backend: the optimizer's bits are the emulation's", "[gpu]") {
  const auto device = device_backend();
  if (!device) return;
  const auto emulation = backend::make_cpu_backend(backend::Accumulation::fp32, 1);
  using Kind = backend::UpdateRule::Kind;
  for (const Kind kind : {Kind::sgd, Kind::momentum, Kind::adam}) {
    for (const auto& [gradient, weight] : {std::pair{Dtype::f32, Dtype::f32},
                                           {Dtype::f16, Dtype::f32},
                                           {Dtype::f16, Dtype::f16},
                                           {Dtype::bf16, Dtype::bf16},
                                           {Dtype::bf16, Dtype::f32}}) {
      INFO("rule " << static_cast<int>(kind) << ", " << name_of(gradient) << " to "
                   << name_of(weight));
      const auto found = updated(*device, rule_of(kind), gradient, weight);
      const auto wanted = updated(*emulation, rule_of(kind), gradient, weight);
      REQUIRE(found.size() == wanted.size());
      for (std::size_t i = 0; i < found.size(); ++i) {
        std::size_t different = 0;
        for (std::size_t j = 0; j < found[i].size(); ++j) {
          different += std::bit_cast<std::uint32_t>(found[i][j]) !=
                       std::bit_cast<std::uint32_t>(wanted[i][j]);
        }
        CHECK(different == 0);
      }
    }
  }
}

TEST_CASE("cudnn backend: statistics are the emulation's", "[gpu]") {
  const auto device = device_backend();
  if (!device) return;
  const auto emulation = backend::make_cpu_backend(backend::Accumulation::fp32, 1);
  for (const Dtype dtype : {Dtype::f32, Dtype::f16, Dtype::bf16}) {
    std::vector<backend::Tensor> here, there;
    std::uint64_t seed = 0;
    for (const std::int64_t count : {0, 1, 17, 5000}) {
      Floats values = sim_test::normal(count, ++seed, 0x1p-12);
      if (count > 16) values[3] = -0.0F;
      if (count > 1000) values[999] = INFINITY, values[998] = 0x1p-140F;
      for (const auto& [backend, list] :
           {std::pair{device.get(), &here}, {emulation.get(), &there}}) {
        list->push_back(sim_test::tensor_of(*backend, {count}, dtype, values));
      }
    }
    const auto later = device->statistics_later(here);
    const auto facts_later = device->facts_later(here);
    for (backend::Tensor& tensor : here) device->fill(tensor, 7);  // they are counted as they were
    const auto found = later(), wanted = emulation->statistics_later(there)();
    const auto facts = facts_later(), wanted_facts = emulation->facts_later(there)();
    REQUIRE((found.size() == 4 && facts.size() == 4));
    for (std::size_t i = 0; i < found.size(); ++i) {
      CHECK(found[i].table == wanted[i].table);
      CHECK(found[i].moments.mean == Approx(wanted[i].moments.mean).epsilon(1e-9).margin(1e-15));
      CHECK(facts[i].nonfinite == wanted_facts[i].nonfinite);
      CHECK(facts[i].max_abs == wanted_facts[i].max_abs);
      CHECK(facts[i].sum_squares == Approx(wanted_facts[i].sum_squares).epsilon(1e-12));
    }
  }
}

training::Settings run_of(const char* network, const char* precision_name, const char* scaling,
                          bool cudnn) {
  training::Settings s = settings(precision_name, scaling, *networks::find_network(network));
  s.batch = 4;
  s.steps = 3;
  s.threads = 0;
  s.cudnn = cudnn;
  s.check_operations = cudnn;
  return s;
}

double loss_at(const std::filesystem::path& run, std::size_t step) {
  return log::RunLog(run).scalars().at(step).loss.value();
}

TEST_CASE("cudnn backend: networks train beside their emulation", "[gpu][slow]") {
  if (!device_backend()) return;
  for (const auto& [network, mode, scaling, limit] :
       {std::tuple{"lenet", "fp32", "", 1e-4},
        {"lenet", "mixed", "static,scale=1024", 1e-2},
        {"lenet", "fp16", "", 1e-2},
        {"mlp", "mixed", "torch", 1e-2},
        {"charlstm", "mixed", "static,scale=1024", 1e-2},
        {"tinyssd", "mixed", "static,scale=1024", 2e-2},
        {"resnet20", "mixed", "static,scale=1024", 2e-2}}) {
    INFO(network << " " << mode);
    const TempFolder folder;
    const auto here = folder / "device", again = folder / "again", there = folder / "emulated";
    training::train(run_of(network, mode, scaling, true), here, {});
    training::train(run_of(network, mode, scaling, true), again, {});
    training::train(run_of(network, mode, scaling, false), there, {});
    CHECK(contents(here) == contents(again));  // byte for byte, run after run
    for (std::size_t step = 0; step < 3; ++step) {
      // After updates rounding alone drives the two apart.
      const double allowed = step == 0 ? limit : std::max(limit, 5e-2);
      CHECK(loss_at(here, step) == Approx(loss_at(there, step)).epsilon(allowed));
    }
    const auto operations = bytes_of(here / backend::kOperationsFile);
    CHECK(operations.find("\"operation\"") != std::string::npos);
    const log::RunLog run_log(here);
    const auto about = *run_log.manifest().about;
    CHECK(about.at("backend").get<std::string>().starts_with("cudnn: "));
    CHECK(about.at("simulation").at("backend") == "cudnn");
    if (std::string(network) == "lenet") {
      const auto& convolutions = about.at("backend_details").at("convolutions");
      REQUIRE(convolutions.size() == 2);
      for (const char* const what : {"fprop", "dgrad", "wgrad"}) {
        const auto& plan = convolutions[0].at(what);
        const bool narrow = std::string(mode) != "fp32";
        if (!narrow) CHECK(plan.at("math") == "FMA_MATH");  // of few channels cuDNN decides
        CHECK(plan.at("compute") == "F32");
        CHECK(plan.at("workspace_bytes").is_number_integer());
      }
    }
  }
}

}  // namespace
}  // namespace halfscope::test::test_cudnn_training
