// SPDX-License-Identifier: Apache-2.0

#include <limits>
#include <random>

#include "analyzers/logs.hpp"
#include "analyzers/underflow/provenance.hpp"
#include "catch.hpp"

namespace test_in_bfloat16 {

using namespace halfscope;
using namespace halfscope::analyzers;
using namespace halfscope::analyzers::underflow;
using namespace halfscope::test;

/// Encodings of any kind; of binary32 every binade, so that some leave bfloat16 at both ends.
std::vector<std::uint16_t> any_bits(std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::uint16_t> bits = {0x0000, 0x0001, 0x807F, 0x7F7F};  // subnormal; the largest
  while (bits.size() < n) bits.push_back(static_cast<std::uint16_t>(random()));
  return bits;
}
Values any_values(std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  Values values = {0.0f, -0.0f, std::numeric_limits<float>::max(), 0x1p-134f, 0x1p-149f, 1e-39f};
  for (std::size_t i = 0; i < n; ++i) {
    values.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
  }
  return values;
}

/// Gradients in `gradients`, weights in binary32; a step of them is as usual.
void write_steps(const TempFolder& folder, Dtype gradients) {
  for (const int step : {0, 5, 10}) {
    std::vector<std::uint16_t> bits = any_bits(500, static_cast<unsigned>(step));
    if (step == 5) bits.assign(500, 0x3F80);  // ones
    const Values values = any_values(500, static_cast<unsigned>(step) + 1);
    log::write_safetensors(
        folder / ("step_" + std::to_string(step) + ".safetensors"),
        {{"weight_grad/w", {500}, {gradients, std::as_bytes(std::span(bits)).data(), 500}},
         {"weight/w", {values.size()}, test::view_of(values)}});
  }
}

void check_same(const Counts& found, const Counts& wanted) {
  CHECK(found.classes == wanted.classes);
  CHECK(found.finite_nonzero == wanted.finite_nonzero);
  CHECK(found.total == wanted.total);
}

void check_same(const Analysis& found, const Analysis& wanted) {
  CHECK(found.target.name == wanted.target.name);
  REQUIRE(found.tensors().size() == wanted.tensors().size());
  for (std::size_t i = 0; i < found.tensors().size(); ++i) {
    const TensorFindings &a = found.tensors()[i], &b = wanted.tensors()[i];
    CHECK(a.name == b.name);
    check_same(a.counts, b.counts);
    CHECK(a.zeros_may_be_flushed == b.zeros_may_be_flushed);
    CHECK(a.underflow_identifiable == b.underflow_identifiable);
    CHECK(a.hidden_by_buckets == b.hidden_by_buckets);
    REQUIRE(a.per_step.size() == b.per_step.size());
    for (std::size_t k = 0; k < a.per_step.size(); ++k) {
      CHECK(a.per_step[k].step == b.per_step[k].step);
      check_same(a.per_step[k].counts, b.per_step[k].counts);
      CHECK(a.per_step[k].overflow_at_1 == b.per_step[k].overflow_at_1);
    }
  }
}

/// Read in binary16, judged in bfloat16; empty where that cannot be.
std::optional<Analysis> judged(const std::vector<std::filesystem::path>& logs,
                               const frames::Selection& selection,
                               Subnormals rule = Subnormals::keep) {
  Analysis analysis = analyze(logs, {"binary16", kBinary16, rule, true}, selection);
  return judge_in_bfloat16(analysis) ? std::optional(std::move(analysis)) : std::nullopt;
}

TEST_CASE("a run that was read in binary16 is judged as if it were read in bfloat16", "[table]") {
  const TempFolder folder;
  write_steps(folder, Dtype::bf16);
  const std::vector<std::filesystem::path> logs = {folder / ".", folder / "."};
  for (const Subnormals rule : {Subnormals::keep, Subnormals::flush, Subnormals::flush_result}) {
    for (const double loss_scale : {1.0, 0x1p20, 0x1p-20}) {
      frames::Selection selection;
      selection.loss_scale = loss_scale;
      const auto found = judged(logs, selection, rule);
      REQUIRE(found);
      CHECK(runs_in_bfloat16(*found));
      const Analysis wanted = analyze(logs, {"bfloat16", kBfloat16, rule}, selection);
      for (const TensorFindings& t : wanted.tensors()) {
        CHECK(t.counts.classes.normal != t.counts.finite_nonzero);
      }
      check_same(*found, wanted);
    }
  }
}

TEST_CASE("what must be read again is not judged in bfloat16", "[table]") {
  const TempFolder folder, half;
  write_steps(folder, Dtype::bf16);
  write_steps(half, Dtype::f16);
  frames::Selection odd;
  odd.recorded_scale = 1000;
  CHECK_FALSE(judged({folder / "."}, odd));
  odd.recorded_scale = 1024;
  CHECK(judged({folder / "."}, odd));
  odd.loss_scale = 3;
  CHECK_FALSE(judged({folder / "."}, odd));
  CHECK_FALSE(judged({half / "."}, {}));
  CHECK_FALSE(judged({folder / ".", half / "."}, {}));
}

}  // namespace test_in_bfloat16
