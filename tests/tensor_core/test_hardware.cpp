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
#include "tensor_core/golden.hpp"
#include "tensor_core/hypotheses.hpp"

using namespace probe;
using halfscope::tensor_core::kHopper;

namespace {

using Names = std::set<std::string>;
using Kind = std::pair<Instruction, Accumulator>;

std::filesystem::path file(const char* name) {
  return std::filesystem::path(HALFSCOPE_SOURCE_DIR) / "tests" / "tensor_core" / "h100" / name;
}

const std::vector<GoldenRow>& rows() {
  static const std::vector<GoldenRow> all = [] {
    std::vector<GoldenRow> out;
    for (const char* const name : {"mma.golden", "chains.golden", "wgmma.golden"}) {
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

std::uint32_t result(const halfscope::tensor_core::Unit& unit, const GoldenRow& row) {
  return halfscope::tensor_core::chain(unit, row.accumulator, row.a.data(), row.b.data(),
                                       static_cast<int>(row.a.size()), row.c);
}

/// Hypotheses that differ from the hardware nowhere, by instruction and accumulator.
std::map<Kind, Names> not_refuted(const std::vector<Hypothesis>& all) {
  std::map<Kind, std::vector<int>> wrong;
  for (const GoldenRow& row : rows()) {
    std::vector<int>& counts = wrong[{row.instruction, row.accumulator}];
    counts.resize(all.size());
    for (std::size_t h = 0; h < all.size(); ++h) counts[h] += result(all[h].unit, row) != row.d;
  }
  std::map<Kind, Names> out;
  for (const auto& [kind, counts] : wrong) {
    for (std::size_t h = 0; h < all.size(); ++h) {
      if (counts[h] == 0) out[kind].insert(all[h].name);
    }
  }
  return out;
}

/// Those that cannot differ from the model: the disagreements are about D of binary16, and steps
/// of 16 are the model's own.
Names without_difference(const std::vector<Hypothesis>& all, Instruction instruction,
                         Accumulator d) {
  Names out = {"model", "steps of 16", "hopper"};
  if (instruction == Instruction::mma_k8) out.insert("steps of 8");
  if (d == Accumulator::binary16) return out;
  out.insert("by way of binary32");
  for (const Hypothesis& one : all) {
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

struct OtherPlan {
  const char* name;
  bool (*change)(const GemmRow&, GemmPlan&);  ///< false where the row can show nothing
};

constexpr OtherPlan kOtherPlans[] = {
    {"k in one piece",
     [](const GemmRow&, GemmPlan& plan) {
       plan.slice = 0;
       return plan.slices > 1;
     }},
    {"the rest of k last",
     [](const GemmRow&, GemmPlan& plan) {
       const bool first = plan.block != 0;
       plan.block = 0;
       return first;
     }},
    {"nothing is lost",
     [](const GemmRow&, GemmPlan& plan) {
       const bool lost = plan.dropped != 0;
       plan.dropped = 0;
       return lost;
     }},
    {"slices as if nothing were lost",
     [](const GemmRow&, GemmPlan& plan) {
       plan.slice += 64;
       return plan.dropped != 0;
     }},
    {"partial sums in binary32",
     [](const GemmRow&, GemmPlan& plan) {
       const bool rounded = plan.merge == Merge::rounded_partials;
       plan.merge = Merge::binary32;
       return rounded;
     }},
    {"by 8",
     [](const GemmRow& row, GemmPlan& plan) {
       plan.group = 8;
       return row.out == Accumulator::binary32;
     }},
};

}  // namespace

TEST_CASE("the rows of an H100 are those that were measured", "[tensor_core]") {
  CHECK(read_golden(file("mma.golden")).size() == 5400);
  CHECK(read_golden(file("chains.golden")).size() == 648);
  CHECK(read_golden(file("wgmma.golden")).size() == 3348);
  std::map<std::pair<Kind, std::size_t>, Names> cells;
  for (const GoldenRow& row : rows()) {
    cells[{{row.instruction, row.accumulator}, row.a.size()}].insert(
        std::string(kDistributions[static_cast<std::size_t>(row.distribution)]));
  }
  // Three instructions, and chains of three lengths of two of them; two accumulators.
  CHECK(cells.size() == (3 + 3 * 2) * 2);
  for (const auto& [cell, distributions] : cells) {
    CHECK(distributions.size() == kRandomDistributions);
  }
}

TEST_CASE("the model gives what an H100 gave, and every other hypothesis does not",
          "[tensor_core]") {
  const std::vector<Hypothesis> all = hypotheses(kHopper);
  const auto difference = std::ranges::find_if(
      rows(), [](const GoldenRow& row) { return result(kHopper, row) != row.d; });
  CHECK(difference == rows().end());
  const std::map<Kind, Names> left = not_refuted(all);
  REQUIRE(left.size() == 6);
  for (const auto& [kind, names] : left) {
    CAPTURE(kInstructions[static_cast<std::size_t>(kind.first)], static_cast<int>(kind.second));
    CHECK(names == without_difference(all, kind.first, kind.second));
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

TEST_CASE("an H100's products refute other plans", "[tensor_core]") {
  for (const OtherPlan& other : kOtherPlans) {
    int found = 0;
    for (const GemmRow& row : gemm_rows()) {
      GemmPlan plan = plan_of(row.config, row.shape.k).value();
      if (other.change(row, plan)) found += differences(row, plan);
    }
    CAPTURE(other.name);
    CHECK(found > 0);
  }
}
