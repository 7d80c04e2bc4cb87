// SPDX-License-Identifier: Apache-2.0
// Instructions and chains of them: every distribution, every hypothesis.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "cuda/device.hpp"
#include "cuda/tensor_core/cell.hpp"
#include "cuda/tensor_core/part.hpp"

namespace probe {
namespace {

using halfscope::tensor_core::Unit;
using nlohmann::json;

constexpr const char* kAccumulators[] = {"binary16", "binary32"};

std::string name_of(const Cell& cell) {
  return fmt::format("{}, k {}, {}", shape_of(cell.instruction).name, cell.k,
                     kAccumulators[static_cast<std::size_t>(cell.accumulator)]);
}

struct Device {
  Unit model;      ///< what the model says of it
  bool is_hopper;  ///< the only one with a model of FP8
};

Device this_device() {
  cudaDeviceProp of{};
  device::check(cudaGetDeviceProperties(&of, 0));
  fmt::print("device: {}, compute capability {}.{}\n", of.name, of.major, of.minor);
  if (of.major >= 9) return {halfscope::tensor_core::kHopper, of.major == 9};
  if (of.major == 8) return {halfscope::tensor_core::kAmpere, false};
  return {halfscope::tensor_core::kTuring, false};
}

/// Differences of one kind of instruction over all distributions.
struct Total {
  std::uint64_t outputs = 0;
  std::vector<std::uint64_t> wrong;

  void add(const CellResult& cell) {
    outputs += cell.outputs;
    wrong.resize(cell.wrong.size());
    for (std::size_t i = 0; i < wrong.size(); ++i) wrong[i] += cell.wrong[i];
  }
};

/// Those without a difference, but for the model; binary32 cannot show the disagreements.
std::vector<std::string> not_refuted(const std::vector<Hypothesis>& all, Accumulator d,
                                     const std::vector<std::uint64_t>& wrong) {
  std::vector<std::string> out;
  for (std::size_t i = 1; i < all.size(); ++i) {
    const bool shown = d == Accumulator::binary16 || !all[i].open;
    if (wrong[i] == 0 && shown) out.push_back(all[i].name);
  }
  return out;
}

std::string verdict(std::uint64_t outputs, const std::vector<std::uint64_t>& wrong) {
  const auto refuted = std::count_if(wrong.begin() + 1, wrong.end(), [](auto n) { return n != 0; });
  return fmt::format("{}the model: {} of {} differ; {} of {} others refuted",
                     wrong.front() == 0 ? "" : "NOT ", wrong.front(), outputs, refuted,
                     wrong.size() - 1);
}

void print_surprises(const std::vector<GoldenRow>& rows, const Rule& model) {
  int left = 3;
  for (const GoldenRow& row : rows) {
    if (row.choice != Choice::surprise || left-- == 0) continue;
    if (left < 0) return;
    std::string a, b;
    for (std::size_t i = 0; i < row.a.size() && i < 32; ++i) {
      a += fmt::format(" {:04X}", row.a[i]);
      b += fmt::format(" {:04X}", row.b[i]);
    }
    const std::uint32_t ours = result_of(model, row);
    fmt::print("    a{} b{} c {:08X}: hardware {:08X}, model {:08X}\n", a, b, row.c, row.d, ours);
  }
}

/// Cells of one file.
class CellRun {
 public:
  explicit CellRun(const Device& device) : device_(device) {}

  bool run(const Instruction instruction, const Accumulator accumulator, int k,
           const Effort& effort) {
    Cell cell{instruction, accumulator, Distribution::layout_a, k};
    if (shape_of(instruction).is_fp8() && !device_.is_hopper) return left_out(cell);
    hypotheses_ = hypotheses(device_.model, shape_of(instruction));
    if (k == shape_of(instruction).products && !layout_holds(cell)) return good_ = false;
    Total total;
    for (int i = 0; i < kRandomDistributions; ++i) {
      cell.distribution = static_cast<Distribution>(i);
      total.add(one(cell, effort));
    }
    const std::vector<std::string> left = not_refuted(hypotheses_, accumulator, total.wrong);
    fmt::print("fact: {} = {}; not: {}\n", name_of(cell), verdict(total.outputs, total.wrong),
               fmt::join(left, "; "));
    totals_.push_back({{"cell", name_of(cell)},
                       {"hypotheses", names()},
                       {"outputs", total.outputs},
                       {"wrong", total.wrong},
                       {"not refuted", left}});
    good_ = good_ && total.wrong.front() == 0;
    return true;
  }

  bool write(const std::filesystem::path& folder, const std::string& name) const {
    write_golden(folder / (name + ".golden"), rows_);
    std::ofstream out(folder / (name + ".json"));
    out << json{{"totals", totals_}, {"cells", cells_}}.dump(1) << '\n';
    if (!out.flush()) throw std::runtime_error(name + ".json cannot be written");
    return good_;
  }

 private:
  static bool left_out(const Cell& cell) {
    fmt::print("{}: left out, since the model of FP8 is Hopper's\n", name_of(cell));
    return true;
  }

  json names() const {
    json out = json::array();
    for (const Hypothesis& hypothesis : hypotheses_) out.push_back(hypothesis.name);
    return out;
  }

  /// Are elements where the fragments say they are? Any model gives these results.
  bool layout_holds(Cell cell) {
    bool good = true;
    for (const Distribution check :
         {Distribution::layout_a, Distribution::layout_b, Distribution::layout_c}) {
      cell.distribution = check;
      const CellResult result = run_cell(cell, {hypotheses_.front()}, {8192, 1, 4});
      if (result.wrong.front() == 0) continue;
      good = false;
      fmt::print(
          "{}, {}: {} of {} are elsewhere: the fragments are loaded wrongly, which says "
          "nothing of the model; left out\n",
          name_of(cell), kDistributions[static_cast<std::size_t>(check)], result.wrong.front(),
          result.outputs);
      print_surprises(result.rows, hypotheses_.front().rule);
    }
    fmt::print("fact: {}, layout = {}\n", name_of(cell), good ? "as documented" : "WRONG");
    return good;
  }

  CellResult one(const Cell& cell, const Effort& effort) {
    CellResult result = run_cell(cell, hypotheses_, effort);
    fmt::print("{}, {}: {} ({:.2f} s)\n", name_of(cell),
               kDistributions[static_cast<std::size_t>(cell.distribution)],
               verdict(result.outputs, result.wrong), result.seconds);
    print_surprises(result.rows, hypotheses_.front().rule);
    std::fflush(stdout);
    cells_.push_back({{"instruction", shape_of(cell.instruction).name},
                      {"accumulator", kAccumulators[static_cast<std::size_t>(cell.accumulator)]},
                      {"k", cell.k},
                      {"distribution", kDistributions[static_cast<std::size_t>(cell.distribution)]},
                      {"outputs", result.outputs},
                      {"wrong", result.wrong},
                      {"seconds", result.seconds}});
    rows_.insert(rows_.end(), result.rows.begin(), result.rows.end());
    return result;
  }

  Device device_;
  std::vector<Hypothesis> hypotheses_;
  std::vector<GoldenRow> rows_;
  json cells_ = json::array(), totals_ = json::array();
  bool good_ = true;
};

std::vector<Accumulator> accumulators(Instruction instruction) {
  if (shape_of(instruction).operands == Operands::bfloat16) return {Accumulator::binary32};
  return {Accumulator::binary32, Accumulator::binary16};
}

void run_single(CellRun& run, Instruction instruction) {
  for (const Accumulator d : accumulators(instruction)) {
    const std::size_t rows = d == Accumulator::binary16 ? 200 : 100;
    const std::size_t kept = shape_of(instruction).is_fp8() ? rows / 4 : rows;
    run.run(instruction, d, shape_of(instruction).products, {std::uint64_t{1} << 24, 0.6, kept});
  }
}

struct Length {
  int k;
  std::size_t rows;
};

void run_chained(CellRun& run, Instruction instruction, std::initializer_list<Length> lengths) {
  for (const Accumulator d : accumulators(instruction)) {
    for (const Length& length : lengths) {
      run.run(instruction, d, length.k, {std::uint64_t{1} << 20, 0.3, length.rows});
    }
  }
}

constexpr std::initializer_list<Length> kHalfLengths = {{32, 20}, {64, 12}, {256, 4}};

/// What was found before a fault is kept.
bool run_into(const std::filesystem::path& folder, const std::string& name,
              const std::function<void(CellRun&)>& cells) {
  CellRun run(this_device());
  bool whole = true;
  try {
    cells(run);
  } catch (const std::runtime_error& error) {
    fmt::print("{}: ended early: {}\n", name, error.what());
    whole = false;
  }
  return run.write(folder, name) && whole;
}

}  // namespace

bool run_mma(const std::filesystem::path& folder) {
  return run_into(folder, "mma", [](CellRun& run) {
    run_single(run, Instruction::mma_k16);
    run_single(run, Instruction::mma_k8);
  });
}

bool run_chains(const std::filesystem::path& folder) {
  return run_into(folder, "chains",
                  [](CellRun& run) { run_chained(run, Instruction::mma_k16, kHalfLengths); });
}

bool run_wgmma(const std::filesystem::path& folder) {
  return run_into(folder, "wgmma", [](CellRun& run) {
    run_single(run, Instruction::wgmma_k16);
    run_chained(run, Instruction::wgmma_k16, kHalfLengths);
  });
}

bool run_bfloat16(const std::filesystem::path& folder) {
  return run_into(folder, "bfloat16", [](CellRun& run) {
    run_single(run, Instruction::mma_k16_bfloat16);
    run_single(run, Instruction::mma_k8_bfloat16);
    run_single(run, Instruction::wgmma_k16_bfloat16);
    run_chained(run, Instruction::wgmma_k16_bfloat16, {{32, 20}, {256, 4}});
  });
}

bool run_fp8(const std::filesystem::path& folder) {
  return run_into(folder, "fp8", [](CellRun& run) {
    for (const Instruction i :
         {Instruction::wgmma_k32_e4m3, Instruction::wgmma_k32_e5m2, Instruction::wgmma_k32_mixed,
          Instruction::mma_k32_e4m3, Instruction::mma_k32_e5m2, Instruction::mma_k32_mixed}) {
      run_single(run, i);
    }
    run_chained(run, Instruction::wgmma_k32_e4m3, {{64, 8}, {256, 2}});
    run_chained(run, Instruction::mma_k32_e4m3, {{64, 8}});
  });
}

}  // namespace probe
