// SPDX-License-Identifier: Apache-2.0
// Zeros of two runs: which are new, and what they tell.
#include "analyzers/compared.hpp"
#include "catch.hpp"

namespace test_compare_zeros {

using namespace halfscope;
using namespace halfscope::analyzers;
using namespace halfscope::test;

TEST_CASE("compare: of runs that both hold zeros for what they flushed, zeros tell who lost more") {
  const TempFolder folder;
  const auto half = [&](const std::string& name, const Values& values) {
    log::RunLogWriter writer(folder / name, {});
    log::TensorRecord record = record_of("weight_grad/w", 0, values);
    record.computed_dtype = Dtype::f16;
    writer.write(record);
    return folder / name;
  };
  const auto a = half("a", {0, 0, 1, 2, 3, 4}), b = half("b", {0, 0, 1, 0, 3, 4});
  const compare::Comparison c = compared(a, b);
  CHECK(c.zeros_tell);
  CHECK(c.runs.b.lost == Interval(1, 3));
  CHECK(c.runs.a.lost == Interval(0, 2));
  CHECK(c.underflow == compare::Change::more);
  CHECK(compared(b, a).underflow == compare::Change::less);
  CHECK(compared(a, half("c", {1, 0, 0, 2, 3, 4})).underflow == compare::Change::same);
  CHECK(!compared(a, half("d", {1, 0, 0, 2, 3})).zeros_tell);                   // of another size
  const compare::Comparison none = compared(a, half("f", {5, 6, 1, 2, 3, 4}));  // B holds no zero
  CHECK(none.zeros_tell);
  CHECK(none.runs.b.underflow_identifiable);
  CHECK(none.runs.b.lost == Interval(0));
  CHECK(none.runs.a.lost == Interval(2));
  CHECK(none.underflow == compare::Change::less);
  Run exact(folder / "e");
  exact.step(0, {0, 0, 1, 2, 3, 4 + 0x1p-20f}, 1, 1);
  CHECK(!compared(a, exact.folder).zeros_tell);
}

TEST_CASE("compare: zeros that are new are bounded step by step") {
  const TempFolder folder;
  Run a(folder / "a"), b(folder / "b");
  // Step 0: one more zero in B; step 1: one fewer. Over both steps at least one zero is new.
  a.step(0, {1, 2, 0, 4}, 1, 1);
  b.step(0, {0, 2, 0, 4}, 1, 1);
  a.step(1, {0, 0, 3, 4}, 1, 1);
  b.step(1, {1, 0, 3, 4}, 1, 1);
  const compare::Comparison c = compared(a.folder, b.folder);
  CHECK(c.tensors[0].zero_difference == 0);
  CHECK(c.tensors[0].new_zeros == Interval(1, 2 + 1));
  CHECK(c.new_zeros == Interval(1, 3));
}

TEST_CASE("compare: tensors of another size have no new zeros and no elements") {
  const TempFolder folder;
  const auto a = write_file(folder, "a.safetensors", {{"weight_grad/w", {1, 0, 3}}});
  const auto b = write_file(folder, "b.safetensors", {{"weight_grad/w", {1, 0}}});
  const compare::Comparison c = compared(a, b);
  CHECK(!c.tensors[0].new_zeros);
  CHECK(!c.new_zeros);
  CHECK(!c.tensors[0].elements);
  CHECK(c.tensors[0].zero_difference == 0);
}

TEST_CASE("compare: true zeros are no loss, zeros that FP16 made are") {
  const TempFolder folder;
  // 0.1 in the other elements shows that the first run was not computed in FP16.
  const Values wide = {0.1f, 0.0f, 0.0f, 0x1p-30f, 0x1p-20f, 0.3f, 0.7f};
  const auto a = write_file(folder, "a.safetensors", {{"weight_grad/w", wide}});
  const auto b = write_file(folder, "b.safetensors", {{"weight_grad/w", through_fp16(wide, 1.0)}});
  for (const auto& [x, y] : {std::pair(a, b), {b, a}}) {
    const compare::Comparison c = compared(x, y);
    CHECK(c.runs.a.lost == Interval(1));
    CHECK(c.runs.b.lost == Interval(1));
    CHECK(c.underflow == compare::Change::same);
    CHECK(!c.tensors[0].harmed);
  }
  // Other true zeros in a run that could have held smaller values: none is lost.
  const auto other =
      write_file(folder, "c.safetensors", {{"weight_grad/w", {0, 0, 0, 0, 0, 0.3f, 0.7f}}});
  CHECK(compared(a, other).runs.b.lost == Interval(0));
}

}  // namespace test_compare_zeros
