// SPDX-License-Identifier: Apache-2.0
// The model and the plans against what an H100 gave: h100/*.golden, written by probe_tensor_core.
#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "tensor_core/gemm_golden.hpp"
#include "tensor_core/gemm_judge.hpp"
#include "tensor_core/golden.hpp"
#include "tensor_core/hypotheses.hpp"

namespace test_hardware {

using namespace probe;
using halfscope::tensor_core::kHopper;
using halfscope::tensor_core::Plan;

using Names = std::set<std::string>;
using Kind = std::pair<Instruction, Accumulator>;

std::filesystem::path file(const char* name) {
  return std::filesystem::path(HALFSCOPE_SOURCE_DIR) / "tests" / "tensor_core" / "h100" / name;
}

const std::vector<GoldenRow>& rows() {
  static const std::vector<GoldenRow> all = [] {
    std::vector<GoldenRow> out;
    for (const char* const name :
         {"mma.golden", "chains.golden", "wgmma.golden", "bfloat16.golden", "fp8.golden"}) {
      const std::vector<GoldenRow> one = read_golden(file(name));
      out.insert(out.end(), one.begin(), one.end());
    }
    return out;
  }();
  return all;
}

const std::vector<GemmRow>& gemm_rows() {
  static const std::vector<GemmRow> all = read_gemm_golden(file("gemm.golden"));
  return all;
}

/// Hypotheses that differ from the hardware nowhere, by instruction and accumulator.
std::map<Kind, Names> not_refuted() {
  std::map<Kind, std::map<std::string, int>> wrong;
  for (const GoldenRow& row : rows()) {
    for (const Hypothesis& one : hypotheses(kHopper, shape_of(row.instruction))) {
      wrong[{row.instruction, row.accumulator}][one.name] += result_of(one.rule, row) != row.d;
    }
  }
  std::map<Kind, Names> out;
  for (const auto& [kind, counts] : wrong) {
    for (const auto& [name, differences] : counts) {
      if (differences == 0) out[kind].insert(name);
    }
  }
  return out;
}

/// Sums of FP8 on a grid of 13 bits: what they are too short, or too large, to show.
Names without_difference_fp8(const InstructionRow& instruction, Accumulator d) {
  if (!instruction.is_wgmma()) return {"model"};
  Names out = {"model", "by way of binary32"};
  if (d == Accumulator::binary16) out.insert({"0 zero bits", "9 zero bits", "11 zero bits"});
  const bool small = d == Accumulator::binary16 && instruction.operands != Operands::e4m3;
  if (!small) out.insert("-0");
  if (!small || instruction.operands != Operands::e5m2) out.insert("subnormal C normalised");
  return out;
}

/// Those that cannot differ from the model: the disagreements are about D of binary16, or products
/// of bfloat16, and steps of 16 are the model's own.
Names without_difference(const Kind& kind) {
  const InstructionRow& instruction = shape_of(kind.first);
  if (instruction.is_fp8()) return without_difference_fp8(instruction, kind.second);
  Names out = {"model", "steps of 16", "hopper"};
  if (instruction.products == 8) out.insert("steps of 8");
  if (kind.second == Accumulator::binary16) return out;
  out.insert("by way of binary32");
  for (const Hypothesis& one : hypotheses(kHopper, instruction)) {
    if (one.open) out.insert(one.name);
  }
  return out;
}

/// The four settings of a product have the same operands.
const std::vector<std::uint16_t>& line(const GemmRow& row, int side, int number) {
  static std::map<std::array<int, 4>, std::vector<std::uint16_t>> made;
  std::vector<std::uint16_t>& out = made[{static_cast<int>(row.inputs), row.shape.k, side, number}];
  if (out.empty()) out = gemm_line(row.inputs, side, number, row.shape.k);
  return out;
}

/// Outputs of a row that a plan gives otherwise.
int differences(const GemmRow& row, const GemmPlan& plan) {
  int out = 0;
  for (std::uint32_t i = 0; i < row.d.size(); ++i) {
    const GemmOutput at = gemm_output(row.shape, i);
    out +=
        predict(plan, kHopper, row.out, line(row, 0, at.row), line(row, 1, at.column)) != row.d[i];
  }
  return out;
}

std::uint32_t in_binary32(Accumulator format, std::uint32_t code) {
  if (format == Accumulator::binary32) return code;
  return static_cast<std::uint32_t>(halfscope::convert(halfscope::kBinary32, halfscope::kBinary16,
                                                       code, {.nan = halfscope::NanPolicy::cuda})
                                        .bits);
}

struct OtherPlan {
  const char* name;
  bool (*change)(const GemmRow&, Plan&);  ///< false where the row can show nothing
};

constexpr OtherPlan kOtherPlans[] = {
    {"k in one piece",
     [](const GemmRow&, Plan& plan) {
       const bool sliced = plan.slice != 0;
       plan.slice = 0;
       return sliced;
     }},
    {"the rest of k last",
     [](const GemmRow&, Plan& plan) {
       const bool first = plan.residue != 0;
       plan.residue = 0;
       return first;
     }},
    {"nothing is lost",
     [](const GemmRow&, Plan& plan) {
       const bool lost = plan.dropped != 0;
       plan.dropped = 0;
       return lost;
     }},
    {"slices as if nothing were lost",
     [](const GemmRow&, Plan& plan) {
       plan.slice += 64;
       return plan.dropped != 0;
     }},
    {"partial sums in binary32",
     [](const GemmRow&, Plan& plan) {
       const bool rounded = plan.merge == Merge::rounded_partials;
       plan.merge = Merge::binary32;
       return rounded;
     }},
    {"by 8",
     [](const GemmRow& row, Plan& plan) {
       plan.group = 8;
       return row.out == Accumulator::binary32;
     }},
};

TEST_CASE("the rows of an H100 are those that were measured", "[tensor_core]") {
  CHECK(read_golden(file("mma.golden")).size() == 5400);
  CHECK(read_golden(file("chains.golden")).size() == 648);
  CHECK(read_golden(file("wgmma.golden")).size() == 3348);
  CHECK(read_golden(file("bfloat16.golden")).size() == 2916);
  CHECK(read_golden(file("fp8.golden")).size() == 4374);
  std::map<std::pair<Kind, std::size_t>, Names> cells;
  for (const GoldenRow& row : rows()) {
    cells[{{row.instruction, row.accumulator}, row.a.size()}].insert(
        std::string(kDistributions[static_cast<std::size_t>(row.distribution)]));
  }
  // binary16: three instructions, and chains of three lengths of two of them; two accumulators.
  // bfloat16: three, and chains of two lengths; one accumulator. FP8: six, and three chains.
  CHECK(cells.size() == (3 + 3 * 2) * 2 + (3 + 2) + (6 + 3) * 2);
  for (const auto& [cell, distributions] : cells) {
    CHECK(distributions.size() == kRandomDistributions);
  }
}

TEST_CASE("the model gives what an H100 gave, and every other hypothesis does not",
          "[tensor_core]") {
  const std::map<Kind, Names> left = not_refuted();
  REQUIRE(left.size() == 2 * kInstructions.size() - 3);  // bfloat16 has no D of binary16
  for (const auto& [kind, names] : left) {
    CAPTURE(shape_of(kind.first).name, static_cast<int>(kind.second));
    CHECK(names == without_difference(kind));
  }
}

TEST_CASE("plans predict an H100's products by cublasLt", "[tensor_core]") {
  CHECK(gemm_rows().size() == 624);
  std::size_t outputs = 0;
  for (const GemmRow& row : gemm_rows()) {
    CAPTURE(row.shape.m, row.shape.n, row.shape.k, row.shape.transposed, row.predictable,
            row.config.algorithm, static_cast<int>(row.out), static_cast<int>(row.inputs));
    CHECK(differences(row, plan_of(row.config, row.shape.k).value()) == 0);
    outputs += row.d.size();
  }
  CHECK(outputs == 17292);
}

TEST_CASE("gemm gives an H100's products by cublasLt", "[tensor_core]") {
  std::size_t wrong = 0;
  for (const GemmRow& row : gemm_rows()) {
    const halfscope::tensor_core::Gemm how = {.unit = kHopper,
                                              .plan = plan_of(row.config, row.shape.k)->plan,
                                              .d = row.out,
                                              .threads = 1};
    for (std::uint32_t i = 0; i < row.d.size(); ++i) {
      const GemmOutput at = gemm_output(row.shape, i);
      const halfscope::test::GemmInput in = {
          {1, 1, row.shape.k}, line(row, 0, at.row), line(row, 1, at.column), {0}};
      const std::uint32_t found = halfscope::test::computed(how, in)[0];
      wrong += found != in_binary32(row.out, row.d[i]);
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("gemm gives what an H100 gave", "[tensor_core]") {
  std::size_t wrong = 0, compared = 0;
  for (const GoldenRow& row : rows()) {
    const InstructionRow& instruction = shape_of(row.instruction);
    if (instruction.is_fp8() && !instruction.is_wgmma()) continue;  // other steps: rules.hpp
    const halfscope::tensor_core::Gemm how = {
        .unit = instruction.is_fp8() ? halfscope::tensor_core::kHopperFp8 : kHopper,
        .accumulator = row.accumulator,
        .plan = {.group = instruction.products},
        .a = format_of_a(instruction.operands),
        .b = format_of_b(instruction.operands),
        .threads = 1};
    const halfscope::test::GemmInput in = {
        {1, 1, static_cast<std::int64_t>(row.a.size())}, row.a, row.b, {row.c}};
    wrong += halfscope::test::computed(how, in)[0] != in_binary32(row.accumulator, row.d);
    ++compared;
  }
  CHECK(wrong == 0);
  CHECK(compared > 10000);
}

TEST_CASE("an H100's products refute other plans", "[tensor_core]") {
  for (const OtherPlan& other : kOtherPlans) {
    int found = 0;
    for (const GemmRow& row : gemm_rows()) {
      GemmPlan plan = plan_of(row.config, row.shape.k).value();
      if (other.change(row, plan.plan)) found += differences(row, plan);
    }
    CAPTURE(other.name);
    CHECK(found > 0);
  }
}

}  // namespace test_hardware
