// SPDX-License-Identifier: Apache-2.0
// What of the Tensor Core probe needs no GPU: its inputs refute every hypothesis but the model's
// own twins, golden rows come back as they were, plans add what they should.
#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "catch.hpp"
#include "temp_folder.hpp"
#include "tensor_core/gemm_golden.hpp"
#include "tensor_core/gemm_plan.hpp"
#include "tensor_core/golden.hpp"
#include "tensor_core/hypotheses.hpp"

namespace test_probe {

using namespace probe;
using halfscope::tensor_core::kAmpere;
using halfscope::tensor_core::kHopper;
using halfscope::tensor_core::Unit;

/// Differences from the model at the outputs of some instructions, by hypothesis.
std::vector<int> differences(const std::vector<Hypothesis>& all, Instruction instruction,
                             Accumulator d, Distribution distribution, int instructions) {
  std::vector<int> out(all.size());
  for (int i = 0; i < instructions; ++i) {
    const Place at = {distribution, static_cast<std::uint32_t>(i), shape_of(instruction).products};
    for (std::uint32_t output = 0; output < 128; ++output) {
      const GoldenRow row = row_at(at, instruction, d, output);
      std::vector<std::uint32_t> results;
      for (const Hypothesis& one : all) {
        results.push_back(result_of(one.rule, row));
      }
      for (std::size_t h = 0; h < all.size(); ++h) out[h] += results[h] != results[0];
    }
  }
  return out;
}

/// Hypotheses that no distribution refutes.
std::set<std::string> not_refuted(Instruction instruction, Accumulator d) {
  const std::vector<Hypothesis> all = hypotheses(kHopper, shape_of(instruction));
  std::vector<int> wrong(all.size());
  for (int i = 0; i < kRandomDistributions; ++i) {
    const std::vector<int> of_one =
        differences(all, instruction, d, static_cast<Distribution>(i), 24);
    for (std::size_t h = 0; h < all.size(); ++h) wrong[h] += of_one[h];
  }
  std::set<std::string> out;
  for (std::size_t h = 0; h < all.size(); ++h) {
    if (wrong[h] == 0) out.insert(all[h].name);
  }
  return out;
}

bool open_only(const std::set<std::string>& names) {
  const std::vector<Hypothesis> all = hypotheses(kHopper);
  return std::ranges::all_of(names, [&](const std::string& name) {
    return std::ranges::any_of(all, [&](const Hypothesis& h) {
      return h.name == name && (h.open || h.rule == Rule{kHopper} || name == "by way of binary32");
    });
  });
}

TEST_CASE("no more hypotheses than a word has bits", "[tensor_core]") {
  CHECK(hypotheses(kHopper).size() <= kMostHypotheses);
  CHECK(hypotheses(kHopper).front().rule == Rule{kHopper});
}

TEST_CASE("the probe's inputs refute every other hypothesis", "[tensor_core]") {
  // Steps of 16 are Hopper's own, and "hopper" is the model.
  CHECK(not_refuted(Instruction::mma_k16, Accumulator::binary16) ==
        std::set<std::string>{"model", "steps of 16", "hopper"});
  // The disagreements are about D of binary16.
  const std::set<std::string> wide = not_refuted(Instruction::mma_k16, Accumulator::binary32);
  CHECK(open_only(wide));
  CHECK(wide.size() == 16 + 3);
}

TEST_CASE("the probe's inputs of bfloat16 and FP8 refute every other hypothesis", "[tensor_core]") {
  using Names = std::set<std::string>;
  const Accumulator half = Accumulator::binary16, wide = Accumulator::binary32;
  CHECK(not_refuted(Instruction::mma_k32_e5m2, half) == Names{"model"});
  CHECK(not_refuted(Instruction::mma_k32_mixed, wide) == Names{"model"});
  const Names short_sums = {"model", "by way of binary32", "-0", "subnormal C normalised"};
  CHECK(not_refuted(Instruction::wgmma_k32_e4m3, wide) == short_sums);
  CHECK(not_refuted(Instruction::wgmma_k32_mixed, wide) == short_sums);
  CHECK(not_refuted(Instruction::wgmma_k32_e5m2, half) ==
        Names{"model", "by way of binary32", "0 zero bits", "9 zero bits", "11 zero bits"});
  // A floor off by one shows in one output of some 20,000: the GPU makes millions.
  for (const std::string& name : not_refuted(Instruction::wgmma_k16_bfloat16, wide)) {
    CAPTURE(name);
    CHECK((name.starts_with("floor one ") || name == "no floor, +0" ||
           Names{"model", "hopper", "steps of 16", "by way of binary32"}.contains(name)));
  }
}

TEST_CASE("results of the layout checks are the same under every hypothesis", "[tensor_core]") {
  for (const auto d : {Accumulator::binary16, Accumulator::binary32}) {
    for (const auto check :
         {Distribution::layout_a, Distribution::layout_b, Distribution::layout_c}) {
      for (const auto instruction :
           {Instruction::mma_k16, Instruction::mma_k8, Instruction::wgmma_k32_e4m3,
            Instruction::wgmma_k32_mixed, Instruction::mma_k32_e5m2}) {
        const std::vector<int> wrong =
            differences(hypotheses(kHopper, shape_of(instruction)), instruction, d, check, 16);
        CHECK(std::ranges::count(wrong, 0) == static_cast<std::ptrdiff_t>(wrong.size()));
      }
    }
  }
}

TEST_CASE("layout checks tell the places of a fragment apart", "[tensor_core]") {
  std::set<std::uint32_t> a, b, c;
  for (std::uint32_t i = 0; i < 16; ++i) {
    for (std::uint32_t output = 0; output < 512; ++output) {
      auto result = [&](Distribution check) {
        const GoldenRow row =
            row_at({check, i, 16}, Instruction::wgmma_k16, Accumulator::binary16, output);
        return halfscope::tensor_core::chain(kHopper, row.accumulator, row.a.data(), row.b.data(),
                                             16, row.c);
      };
      a.insert(result(Distribution::layout_a));
      b.insert(result(Distribution::layout_b));
      c.insert(result(Distribution::layout_c));
    }
  }
  CHECK(a.size() == 64 * 16);
  CHECK(b.size() == 8 * 16);
  CHECK(c.size() == 64 * 8);
}

TEST_CASE("golden rows are read as they were written", "[tensor_core]") {
  const halfscope::test::TempFolder folder;
  const auto file = folder / "rows.golden";
  std::vector<GoldenRow> rows;
  for (const int k : {8, 16, 256}) {
    rows.push_back(
        row_at({Distribution::specials, 7, k}, Instruction::wgmma_k16, Accumulator::binary32, 100));
    rows.back().choice = Choice::surprise;
    rows.back().d = 0x7FFFFFFF;
  }
  write_golden(file, rows);
  CHECK(read_golden(file) == rows);
  CHECK(std::filesystem::file_size(file) == 12 + 3 * 16 + 4 * (8 + 16 + 256));
  std::filesystem::resize_file(file, 100);
  CHECK_THROWS_AS(read_golden(file), std::runtime_error);
  CHECK_THROWS_AS(read_golden(folder / "none"), std::runtime_error);
}

TEST_CASE("outputs of products are read as they were written", "[tensor_core]") {
  const halfscope::test::TempFolder folder;
  const GemmRow row = {{50257, 8, 768, true},
                       Accumulator::binary16,
                       true,
                       GemmInputs::cancelling,
                       {.algorithm = 66, .slices = 132, .reduction = 2, .stages = 35},
                       {0x7C00, 0x8001}};
  write_gemm_golden(folder / "rows", {row, row});
  CHECK(std::filesystem::file_size(folder / "rows") == 12 + 2 * (16 + 2 * 2));
  const std::vector<GemmRow> back = read_gemm_golden(folder / "rows");
  REQUIRE(back.size() == 2);
  CHECK(back[1].shape == row.shape);
  CHECK(back[1].out == row.out);
  CHECK(back[1].predictable);
  CHECK(back[1].inputs == row.inputs);
  CHECK(back[1].config.algorithm == 66);
  CHECK(back[1].config.slices == 132);
  CHECK(back[1].config.reduction == 2);
  CHECK(back[1].config.stages == 35);
  CHECK(back[1].d == row.d);
  CHECK_THROWS_AS(read_golden(folder / "rows"), std::runtime_error);
}

TEST_CASE("rows on which hypotheses differ are kept first, rare ones before others",
          "[tensor_core]") {
  std::vector<std::uint32_t> masks(1000);
  for (std::size_t i = 0; i < 500; ++i) masks[i] = 2;
  masks[700] = 4;
  masks[800] = 1;
  const std::vector<Chosen> chosen = choose(masks, 16);
  REQUIRE(chosen.size() == 16);
  CHECK(std::ranges::any_of(chosen, [](const Chosen& c) { return c.output == 700; }));
  CHECK(std::ranges::any_of(
      chosen, [](const Chosen& c) { return c.output == 800 && c.choice == Choice::surprise; }));
  CHECK(std::ranges::count(chosen, Choice::even, &Chosen::choice) == 4);
  CHECK(choose(std::vector<std::uint32_t>(2), 16).size() == 2);
}

TEST_CASE("plans of cuBLAS's configurations", "[tensor_core]") {
  CHECK(plan_of({.algorithm = 66, .slices = 1}, 4096)->plan.slice == 0);
  CHECK(plan_of({.algorithm = 66, .slices = 6}, 4096)->plan.slice == 704);
  CHECK(plan_of({.algorithm = 66, .slices = 9}, 11528)->plan.dropped == 8);
  CHECK(plan_of({.algorithm = 66, .slices = 9}, 11528)->plan.slice == 1280);
  CHECK(plan_of({.algorithm = 66, .slices = 8}, 11528)->plan.dropped == 0);
  CHECK(plan_of({.algorithm = 21, .stages = 11}, 116)->plan.residue == 32);
  CHECK(plan_of({.algorithm = 21, .stages = 15}, 116)->plan.residue == 64);
  CHECK(plan_of({.algorithm = 12, .stages = 0}, 116)->plan.group == 8);
  CHECK_FALSE(plan_of({.algorithm = 13}, 116).has_value());
  const GemmPlan rounded =
      *plan_of({.algorithm = 24, .slices = 3, .reduction = 4, .stages = 15}, 1000);
  CHECK(rounded.plan.slice == 336);
  CHECK(rounded.plan.merge == Merge::rounded_partials);
}

TEST_CASE("a plan's sum", "[tensor_core]") {
  const std::vector<std::uint16_t> ones(100, 0x3C00);
  const auto out = Accumulator::binary32;
  std::vector<GemmPlan> plans = other_plans({.slices = 3}, 100);
  for (const GemmPlan& plan : plans) {
    CAPTURE(plan.name);
    CHECK(predict(plan, kHopper, out, ones, ones) == 0x42C80000);  // 100
  }
  CHECK(predict({.plan = {.group = 16, .slice = 40, .dropped = 36}}, kHopper, Accumulator::binary16,
                ones,
                ones) == 0x5400);  // 64
  // 2049 is no binary16: a partial sum is rounded to the format of D.
  const std::vector<std::uint16_t> many(4098, 0x3C00);
  const GemmPlan halves = {.plan = {.group = 16, .slice = 2049, .merge = Merge::rounded_partials}};
  CHECK(predict(halves, kHopper, Accumulator::binary16, many, many) == 0x6C00);  // 4096
  CHECK(predict(halves, kHopper, out, many, many) == 0x45801000);                // 4098
  // 2^15 * 2^15 swallows what is added to it in the steps between it and its opposite.
  std::vector<std::uint16_t> a(116, 0x3C00), b(116, 0x3C00);
  a[0] = b[0] = b[20] = 0x7800;
  a[20] = 0xF800;
  CHECK(predict({}, kHopper, out, a, b) == 0x42A80000);  // 84: 16 by 16
  CHECK(predict({.plan = {.group = 16, .residue = 32}}, kHopper, out, a, b) ==
        0x42A00000);  // 80: 16, 4, 16
}

}  // namespace test_probe
