// SPDX-License-Identifier: Apache-2.0
// The rule worked out by hand: 4 sums of n = 1024 terms of magnitude 1 each. In FP32 noise ends at
// 32 (1024 + 1) 2^-24 = 0.001955, just above 2^-9; of FP16 terms at 32 (2^-14 + 2^-11) = 0.0176.
#include "analyzers/underflow/rounding_noise.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "analyzers/logs.hpp"
#include "analyzers/small_run.hpp"
#include "analyzers/underflow/lowest_scale.hpp"
#include "catch.hpp"

namespace test_rounding_noise {

using namespace halfscope;
using namespace halfscope::analyzers;
using test::Values;

struct Case {
  Dtype dtype = Dtype::f32;
  double scale = 1;
  std::string bias = "weight_grad/l.bias", terms = "activation_grad/l";
};

underflow::Analysis analysis_of(Values bias, const Case& of = {}) {
  for (float& value : bias) value *= static_cast<float>(of.scale);
  log::TensorRecord sums = test::record_of(of.bias, 0, bias, of.scale);
  sums.moments.sum_squares = std::inner_product(bias.begin(), bias.end(), bias.begin(), 0.0);
  log::TensorRecord terms = test::record_of(
      of.terms, 0, Values(1024 * bias.size(), static_cast<float>(of.scale)), of.scale);
  terms.moments = {of.scale, of.scale * of.scale * 1024 * static_cast<double>(bias.size())};
  const test::TempFolder folder;
  log::RunLogWriter writer(folder / "run", test::SmallRun().manifest());
  for (log::TensorRecord* record : {&sums, &terms}) {
    record->source_dtype = of.dtype;
    writer.write(*record);
  }
  underflow::Analysis analysis = underflow::analyze({folder / "run"}, {}, {});
  underflow::mark_rounding_noise(analysis);
  return analysis;
}

std::uint64_t noise_of(const Values& bias, const Case& of = {}) {
  const underflow::Analysis analysis = analysis_of(bias, of);
  std::uint64_t noise = 0;
  for (const underflow::TensorFindings& t : analysis.tensors()) noise += t.rounding_noise;
  return noise;
}

TEST_CASE("values below the rounding error of their sum are noise", "[noise]") {
  const Values bias = {1, 0x1p-9F, 0x1.8p-10F, 0};
  CHECK(noise_of(bias) == 1);  // its binade ends at 2^-9
  CHECK(noise_of(bias, {.scale = 1024}) == 1);
  CHECK(noise_of({1, 0x1p-9F, 0x1p-14F, 0}, {.scale = 3}) == 1);  // between two binades
  CHECK(noise_of({1, 0x1p-7F, 0x1p-6F, 0x1p-24F}, {.dtype = Dtype::f16}) == 2);
  CHECK(noise_of({1, 1, 1, 1}) == 0);
}

TEST_CASE("noise needs the terms of the sum, and is of biases alone", "[noise]") {
  const Values bias = {1, 1, 1, 0x1p-20F};
  CHECK(noise_of(bias) == 1);
  CHECK(noise_of(bias, {.terms = "activation_grad/other"}) == 0);
  CHECK(noise_of(bias, {.bias = "weight_grad/l.weight"}) == 0);
  CHECK(noise_of(bias, {.bias = "weight/l.bias"}) == 0);
}

// The module's output has 4 * 3072 terms, so noise of the 12 sums ends at 0.82 (3072 + 1) 2^-24.
TEST_CASE("the keys' third of an attention's bias is noise by the size of the others", "[noise]") {
  const Case attention = {.bias = "weight_grad/a.in_proj_bias", .terms = "activation_grad/a.0"};
  Values bias(12, 1);
  std::fill(bias.begin() + 4, bias.begin() + 8, 0x1p-20F);
  CHECK(noise_of(bias, attention) == 4);
  CHECK(noise_of(bias, {.bias = attention.bias, .terms = "activation_grad/a.out_proj"}) == 4);
  CHECK(noise_of(bias, {.bias = attention.bias, .terms = "activation_grad/b.0"}) == 0);
  bias[0] = bias[8] = 0x1p-20F;  // queries or values: no more than a third is taken
  CHECK(noise_of(bias, attention) == 4);
  std::fill(bias.begin(), bias.end(), 0x1p-20F);  // all alike: there is nothing to be noise of
  CHECK(noise_of(bias, attention) == 0);
}

TEST_CASE("a few small values are those of any gradient", "[noise]") {
  Values bias(100, 1);
  bias[0] = 0x1p-20F;
  CHECK(noise_of(bias) == 0);
  bias[1] = 0x1p-20F;
  CHECK(noise_of(bias) == 2);
}

TEST_CASE("noise counts in no target", "[noise]") {
  const underflow::Analysis analysis = analysis_of({1, 1, 1, 0x1p-60F});
  std::vector<const underflow::TensorFindings*> bias;
  for (const auto& t : analysis.tensors()) {
    if (t.role == log::Role::weight_grad) bias.push_back(&t);
  }
  REQUIRE(bias.size() == 1);
  CHECK(bias[0]->without_noise(bias[0]->counts.finite_nonzero) == Interval(3));
  CHECK(underflow::lowest_log2(bias, {}, 0.001) == -24);
  CHECK(underflow::names_above_target(bias, {}, 0, 0.001).empty());
  underflow::TensorFindings counted = *bias[0];
  counted.rounding_noise = 0;
  CHECK(underflow::names_above_target({&counted}, {}, 0, 0.001).size() == 1);
}

}  // namespace test_rounding_noise
