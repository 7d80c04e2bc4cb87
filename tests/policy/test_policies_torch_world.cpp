// SPDX-License-Identifier: Apache-2.0
// The policies of PyTorch's world over long runs and at their ends. Figures follow by hand from
// what the frameworks' sources say, one step after the other.
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "catch.hpp"
#include "policy/patterns.hpp"

namespace test_policies_torch_world {

using namespace halfscope::policy;

const auto always_tiny = [](int) { return 0x1p-40; };

/// Steps at whose end the scale grew.
std::vector<int> growths(const std::string& policy, int steps,
                         const std::function<double(int)>& magnitude) {
  std::vector<double> scale = run(policy.c_str(), steps, magnitude).scale;
  std::vector<int> grown;
  for (std::size_t i = 1; i < scale.size(); ++i) {
    if (scale[i] > scale[i - 1]) grown.push_back(static_cast<int>(i) - 1);
  }
  return grown;
}

double scale_at(const Run& run, int step) { return run.scale.at(static_cast<std::size_t>(step)); }

constexpr double infinity = std::numeric_limits<double>::infinity();

TEST_CASE("Defaults grow when their framework's counter says", "[policy]") {
  const std::map<std::string, std::vector<int>> wanted = {
      {"torch", {1999, 3999, 5999}},
      {"apex", {1999, 3999, 5999}},
      {"apex-legacy", {999, 1999, 2999, 3999, 4999, 5999}},
      {"apex-hysteresis", {1999, 3999, 5999}},
      {"megatron", {999, 1999, 2999, 3999, 4999, 5999}},
      {"colossalai", {999, 1999, 2999, 3999, 4999, 5999}},
      {"deepspeed", {999, 1999, 2999, 3999, 4999, 5999}},
      {"deepspeed-fused", {1000, 2000, 3000, 4000, 5000}},
      {"fairseq,scale_window=2000", {1999, 3999, 5999}},
      {"metaseq", {255, 511, 1023, 2047, 4095}},
      {"fastai1", {999, 1999, 2999, 3999, 4999, 5999}},
      {"fastai2", {499, 999, 1499, 1999, 2499, 2999, 3499, 3999, 4499, 4999, 5499, 5999}},
      {"static", {}}};
  for (const auto& [policy, steps] : wanted) {
    INFO(policy);
    CHECK(growths(policy, 6001, always_tiny) == steps);
  }
  CHECK(growths("fairseq", 33000, always_tiny) == std::vector{16383, 32767});
}

TEST_CASE("An overflow at step 100 moves growth as the framework's counter says", "[policy]") {
  const std::map<std::string, std::vector<int>> wanted = {
      {"torch", {2100}},
      {"apex", {2100}},
      {"apex-legacy", {1100, 2100}},
      {"apex-hysteresis", {2100}},
      {"megatron", {1100, 2100}},
      {"colossalai", {1100, 2100}},
      {"deepspeed", {1100, 2100}},
      {"deepspeed-fused", {1101, 2101}},
      {"fairseq,scale_window=2000", {2100}},
      {"metaseq", {228, 356, 612, 1124, 2148}},
      {"fastai1", {1100, 2100}},
      {"fastai2", {500, 1000, 1500, 2000, 2500}}};
  const auto once = [](int step) { return step == 100 ? infinity : 0x1p-40; };
  for (const auto& [policy, steps] : wanted) {
    INFO(policy);
    CHECK(growths(policy, 2900, once) == steps);
  }
}

TEST_CASE("Collapse to zero: NaN at every step and no floor", "[policy]") {
  SECTION("binary32 ends at 2^-149") {
    const Run torch = run("torch", 300, always_nan);
    CHECK(scale_at(torch, 164) == 0x1p-148);
    CHECK(scale_at(torch, 165) == 0x1p-149);
    CHECK(scale_at(torch, 166) == 0);
    CHECK(torch.final == 0);
    CHECK(torch.skipped.size() == 300);
    for (const char* hysteresis : {"colossalai", "apex-hysteresis"}) {
      const Run other = run(hysteresis, 300, always_nan);
      INFO(hysteresis);
      CHECK(scale_at(other, 1) == 65536);
      CHECK(scale_at(other, 2) == 32768);
      CHECK(scale_at(other, 166) == 0x1p-149);
      CHECK(scale_at(other, 167) == 0);
    }
  }
  SECTION("binary64 ends at 2^-1074") {
    const Run fastai = run("fastai2", 1200, always_nan);
    CHECK(scale_at(fastai, 1098) == 0x1p-1074);
    CHECK(scale_at(fastai, 1099) == 0);
    CHECK(fastai.error.empty());
    CHECK(fastai.skipped.size() == 1200);
  }
  SECTION("apex then divides by it") {
    const Run apex = run("apex", 1200, always_nan);
    CHECK(apex.scale.size() == 1092);
    CHECK(scale_at(apex, 1090) == 0x1p-1074);
    CHECK(scale_at(apex, 1091) == 0);
    CHECK(apex.error == "ZeroDivisionError: float division by zero");
    const Run floored = run("apex,min_loss_scale=128", 1200, always_nan);
    CHECK(floored.error.empty());
    CHECK(floored.final == 128);
  }
  SECTION("zero does not grow again") {
    const auto later = [](int step) { return step < 200 ? std::nan("") : 0.0; };
    CHECK(run("torch,growth_interval=1", 300, later).final == 0);
  }
}

TEST_CASE("Stuck at infinity", "[policy]") {
  struct Row {
    std::string policy;
    int last_finite;  ///< step
    double largest;
  };
  const Row rows[] = {{"megatron,growth_interval=1", 95, 0x1p127},
                      {"colossalai,growth_interval=1", 111, 0x1p127},
                      {"apex-legacy,scale_window=1", 991, 0x1p1023},
                      {"deepspeed,scale_window=1", 991, 0x1p1023},
                      {"deepspeed-fused,scale_window=1", 1008, 0x1p1023},
                      {"fairseq,scale_window=1", 1016, 0x1p1023},
                      {"fastai2,scale_wait=1", 999, 0x1p1023}};
  for (const Row& row : rows) {
    INFO(row.policy);
    const Run all = run(row.policy.c_str(), 1100, always_zero);
    CHECK(scale_at(all, row.last_finite) == row.largest);
    CHECK(scale_at(all, row.last_finite + 1) == infinity);
    CHECK(all.final == infinity);
    CHECK(all.error.empty());
    CHECK(static_cast<int>(all.skipped.size()) == 1099 - row.last_finite);
    CHECK(all.skipped.front() == row.last_finite + 1);
  }
}

TEST_CASE("Growth that stops in time", "[policy]") {
  struct Row {
    std::string policy;
    double largest;
    int first;  ///< step that uses it
  };
  const Row rows[] = {{"torch,growth_interval=1", 0x1p127, 111},
                      {"apex-hysteresis,growth_interval=1", 0x1p127, 111},
                      {"apex,scale_window=1", 0x1p24, 8},
                      {"fastai1,max_noskip=1", 0x1p24, 8},
                      {"colossalai,growth_interval=1,max_scale=2^32", 0x1p32, 16}};
  for (const Row& row : rows) {
    INFO(row.policy);
    const Run all = run(row.policy.c_str(), 1100, always_zero);
    CHECK(scale_at(all, row.first - 1) == row.largest / 2);
    CHECK(scale_at(all, row.first) == row.largest);
    CHECK(all.final == row.largest);
    CHECK(all.skipped.empty());
  }
  CHECK(scale_at(run("apex,init_scale=2^30", 1, always_zero), 0) == 0x1p24);
  // The count goes on at the largest scale; an overflow still restarts it.
  CHECK(used("fastai1,max_noskip=2,loss_scale=2^24", "....O....") ==
        std::vector{24, 24, 24, 24, 24, 23, 23, 24, 24});
}

TEST_CASE("An exception at the floor", "[policy]") {
  SECTION("DeepSpeed") {
    const std::string message =
        "Exception: Current loss scale already at minimum - cannot decrease scale anymore. Exiting "
        "run.";
    const Run all = run("deepspeed", 100, always_nan);
    CHECK(all.error == message);
    CHECK(all.scale.size() == 33);
    CHECK(scale_at(all, 32) == 1);
    const Run configured = run("deepspeed,hysteresis=2", 100, always_nan);
    CHECK(configured.error == message);
    CHECK(configured.scale.size() == 18);
    CHECK(scale_at(configured, 1) == 65536);
    CHECK(scale_at(configured, 17) == 1);
    for (const char* quiet : {"deepspeed,raise_error_at_min_scale=false", "deepspeed-fused"}) {
      const Run other = run(quiet, 100, always_nan);
      CHECK(other.error.empty());
      CHECK(other.final == 1);
    }
  }
  SECTION("fairseq") {
    const Run all = run("fairseq", 100, always_nan);
    CHECK(all.error ==
          "FloatingPointError: Minimum loss scale reached (0.0001). Your loss is probably "
          "exploding. Try lowering the learning rate, using gradient clipping or increasing the "
          "batch size.");
    CHECK(all.scale.size() == 21);
    CHECK(scale_at(all, 20) == 0x1p-13);
    CHECK(all.final == 0x1p-13);
    // Reaching it is enough.
    const Run exact = run("fairseq,init_scale=1,min_loss_scale=0.5", 100, always_nan);
    CHECK(exact.scale.size() == 1);
    CHECK(exact.error.find("(0.5)") != std::string::npos);
    CHECK(run("fairseq,init_scale=4,min_loss_scale=1", 9, always_nan).error.find("(1.0)") !=
          std::string::npos);
    CHECK(run("fairseq,min_loss_scale=1e-5", 99, always_nan).error.find("(1e-05)") !=
          std::string::npos);
    // A threshold above it never lets it happen.
    const Run kept = run("fairseq,threshold=0.001", 100, always_nan);
    CHECK(kept.error.empty());
    CHECK(kept.final == 0.001);
    CHECK(kept.skipped.size() == 100);
  }
}

TEST_CASE("Floors that skip for ever", "[policy]") {
  const Run megatron = run("megatron", 100, always_nan);
  CHECK(scale_at(megatron, 32) == 2);
  CHECK(scale_at(megatron, 33) == 1);
  CHECK(megatron.final == 1);
  const Run legacy = run("apex-legacy", 100, always_nan);
  CHECK(scale_at(legacy, 32) == 1);
  CHECK(legacy.final == 1);
  const Run metaseq = run("metaseq", 100, always_nan);
  CHECK(scale_at(metaseq, 6) == 0x1p-4);
  CHECK(scale_at(metaseq, 7) == 0x1p-5);
  CHECK(metaseq.final == 0x1p-5);
  for (const Run* all : {&megatron, &legacy, &metaseq}) {
    CHECK(all->error.empty());
    CHECK(all->skipped.size() == 100);
  }
  CHECK(used("metaseq,init_scale=1,min_loss_scale=0.5,scale_window=99", "OOO") ==
        std::vector{0, -1, -1});
  // metaseq's window halves there all the same: 8, 4, and growth after 4 clean steps.
  CHECK(used("metaseq,init_scale=1,min_loss_scale=1,scale_window=8", "O.......") ==
        std::vector{0, 0, 0, 0, 0, 1, 1, 1});
  // It is an integer, 1 or above: 3, 1; 1, 1, 2.
  CHECK(used("metaseq,init_scale=4,scale_window=3", "O..") == std::vector{2, 1, 2});
  CHECK(used("metaseq,init_scale=4,scale_window=1", "O....") == std::vector{2, 1, 2, 3, 3});
  CHECK(run("colossalai,min_scale=1", 100, always_nan).final == 1);
}

TEST_CASE("NaN gradients are applied: fastai v1 at scale 1", "[policy]") {
  const Run all = run("fastai1,loss_scale=4,max_noskip=4", 14, always_nan);
  CHECK(all.scale == std::vector<double>{4, 2, 1, 1, 1, 1, 2, 1, 1, 1, 1, 2, 1, 1});
  CHECK(all.skipped == std::vector{0, 1, 6, 11});
  CHECK(all.overflow.size() == 14);
}

TEST_CASE("Static scales: who looks at an overflow", "[policy]") {
  CHECK(run("static", 9, pattern("O..O.....")).skipped == std::vector{0, 3});
  CHECK(run("static", 9, always_zero).final == 128);
  for (const char* blind : {"static,skip=false", "apex,loss_scale=128", "fastai1,dynamic=false",
                            "fastai2,dynamic=false"}) {
    const Run all = run(blind, 3000, always_nan);
    INFO(blind);
    CHECK(all.skipped.empty());
    CHECK(all.final == (std::string(blind).substr(0, 6) == "fastai" ? 512 : 128));
  }
  CHECK(run("fastai1,dynamic=false,loss_scale=4", 1, always_zero).final == 4);
}

TEST_CASE("Hysteresis: who refills it, and when", "[policy]") {
  const std::string start = ",initial_scale=65536,growth_interval=";
  const std::vector<std::string> at_growth = {
      "megatron,hysteresis=", "colossalai,hysteresis=", "deepspeed,delayed_shift="};
  const std::vector<std::string> at_clean = {
      "apex-hysteresis,hysteresis=", "deepspeed,consecutive_hysteresis=true,delayed_shift="};
  for (const std::string& policy : at_growth) {
    INFO(policy);
    CHECK(used(policy + "2" + start + "99", "O.O.O.O.") ==
          std::vector{16, 16, 16, 15, 15, 14, 14, 13});
    CHECK(used(policy + "3" + start + "99", "O.O.O.") == std::vector{16, 16, 16, 16, 16, 15});
    CHECK(used(policy + "2" + start + "3", "OO...OO.") ==
          std::vector{16, 16, 15, 15, 15, 16, 16, 15});
  }
  for (const std::string& policy : at_clean) {
    INFO(policy);
    CHECK(used(policy + "2" + start + "99", "O.O.O.O.") == std::vector<int>(8, 16));
    CHECK(used(policy + "3" + start + "99", "OOOOO.OOO.") ==
          std::vector{16, 16, 16, 15, 14, 13, 13, 13, 13, 12});
    CHECK(used(policy + "2" + start + "3", "OO...OO.") ==
          std::vector{16, 16, 15, 15, 15, 16, 16, 15});
  }
  // A tolerated overflow restarts growth.
  for (const char* policy : {"megatron", "colossalai", "apex-hysteresis"}) {
    INFO(policy);
    CHECK(used(policy + start + "4", "..O.....") == std::vector{16, 16, 16, 16, 16, 16, 16, 17});
  }
}

TEST_CASE("fairseq: a tolerated overflow restarts growth", "[policy]") {
  const std::string start = "fairseq,init_scale=65536,scale_window=4,tolerance=";
  CHECK(used(start + "0.5", "....O.") == std::vector{16, 16, 16, 16, 17, 16});
  // One of three: tolerated, and growth comes at step 6 instead of 3; then one of one.
  CHECK(used(start + "0.5", "..O....O.") == std::vector{16, 16, 16, 16, 16, 16, 16, 17, 16});
  // Just the tolerance lowers.
  CHECK(used(start + "0.25", "...O.") == std::vector{16, 16, 16, 16, 15});
  CHECK(used(start + "0.26", "...O.") == std::vector{16, 16, 16, 16, 16});
  // Tolerated ones add up until the scale changes: 1/3, 2/4.
  CHECK(used(start + "0.5", "..OO.") == std::vector{16, 16, 16, 16, 15});
}

}  // namespace test_policies_torch_world
