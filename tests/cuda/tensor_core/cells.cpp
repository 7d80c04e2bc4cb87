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
  return fmt::format("{}, k {}, {}", kInstructions[static_cast<std::size_t>(cell.instruction)],
                     cell.k, kAccumulators[static_cast<std::size_t>(cell.accumulator)]);
}

/// What the model says of this device.
Unit model_of_device() {
  cudaDeviceProp of{};
  device::check(cudaGetDeviceProperties(&of, 0));
  fmt::print("device: {}, compute capability {}.{}\n", of.name, of.major, of.minor);
  if (of.major >= 9) return halfscope::tensor_core::kHopper;
  return of.major == 8 ? halfscope::tensor_core::kAmpere : halfscope::tensor_core::kTuring;
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

void print_surprises(const std::vector<GoldenRow>& rows, const Unit& model) {
  int left = 3;
  for (const GoldenRow& row : rows) {
    if (row.choice != Choice::surprise || left-- == 0) continue;
    if (left < 0) return;
    std::string a, b;
    for (std::size_t i = 0; i < row.a.size() && i < 16; ++i) {
      a += fmt::format(" {:04X}", row.a[i]);
      b += fmt::format(" {:04X}", row.b[i]);
    }
    const std::uint32_t ours = halfscope::tensor_core::chain(
        model, row.accumulator, row.a.data(), row.b.data(), static_cast<int>(row.a.size()), row.c);
    fmt::print("    a{} b{} c {:08X}: hardware {:08X}, model {:08X}\n", a, b, row.c, row.d, ours);
  }
}

/// Cells of one file.
class Run {
 public:
  explicit Run(const Unit& model) : model_(model), hypotheses_(hypotheses(model)) {}

  bool run(const Instruction instruction, const Accumulator accumulator, int k,
           const Effort& effort) {
    Cell cell{instruction, accumulator, Distribution::layout_a, k};
    if (k == products_of(instruction) && !layout_holds(cell)) return good_ = false;
    Total total;
    for (int i = 0; i < kRandomDistributions; ++i) {
      cell.distribution = static_cast<Distribution>(i);
      total.add(one(cell, effort));
    }
    const std::vector<std::string> left = not_refuted(hypotheses_, accumulator, total.wrong);
    fmt::print("fact: {} = {}; not: {}\n", name_of(cell), verdict(total.outputs, total.wrong),
               fmt::join(left, "; "));
    totals_.push_back({{"cell", name_of(cell)},
                       {"outputs", total.outputs},
                       {"wrong", total.wrong},
                       {"not refuted", left}});
    good_ = good_ && total.wrong.front() == 0;
    return true;
  }

  bool write(const std::filesystem::path& folder, const std::string& name) const {
    write_golden(folder / (name + ".golden"), rows_);
    json names = json::array();
    for (const Hypothesis& hypothesis : hypotheses_) names.push_back(hypothesis.name);
    std::ofstream out(folder / (name + ".json"));
    out << json{{"hypotheses", names}, {"totals", totals_}, {"cells", cells_}}.dump(1) << '\n';
    if (!out.flush()) throw std::runtime_error(name + ".json cannot be written");
    return good_;
  }

 private:
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
      print_surprises(result.rows, model_);
    }
    fmt::print("fact: {}, layout = {}\n", name_of(cell), good ? "as documented" : "WRONG");
    return good;
  }

  CellResult one(const Cell& cell, const Effort& effort) {
    CellResult result = run_cell(cell, hypotheses_, effort);
    fmt::print("{}, {}: {} ({:.2f} s)\n", name_of(cell),
               kDistributions[static_cast<std::size_t>(cell.distribution)],
               verdict(result.outputs, result.wrong), result.seconds);
    print_surprises(result.rows, model_);
    std::fflush(stdout);
    cells_.push_back({{"instruction", kInstructions[static_cast<std::size_t>(cell.instruction)]},
                      {"accumulator", kAccumulators[static_cast<std::size_t>(cell.accumulator)]},
                      {"k", cell.k},
                      {"distribution", kDistributions[static_cast<std::size_t>(cell.distribution)]},
                      {"outputs", result.outputs},
                      {"wrong", result.wrong},
                      {"seconds", result.seconds}});
    rows_.insert(rows_.end(), result.rows.begin(), result.rows.end());
    return result;
  }

  Unit model_;
  std::vector<Hypothesis> hypotheses_;
  std::vector<GoldenRow> rows_;
  json cells_ = json::array(), totals_ = json::array();
  bool good_ = true;
};

constexpr Accumulator kBoth[] = {Accumulator::binary32, Accumulator::binary16};

void run_single(Run& run, Instruction instruction) {
  for (const Accumulator d : kBoth) {
    const std::size_t rows = d == Accumulator::binary16 ? 200 : 100;
    run.run(instruction, d, products_of(instruction), {std::uint64_t{1} << 24, 0.6, rows});
  }
}

void run_chained(Run& run, Instruction instruction) {
  struct Length {
    int k;
    std::size_t rows;
  };
  for (const Accumulator d : kBoth) {
    for (const Length& length : {Length{32, 20}, Length{64, 12}, Length{256, 4}}) {
      run.run(instruction, d, length.k, {std::uint64_t{1} << 20, 0.3, length.rows});
    }
  }
}

/// What was found before a fault is kept.
bool run_into(const std::filesystem::path& folder, const std::string& name,
              const std::function<void(Run&)>& cells) {
  Run run(model_of_device());
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
  return run_into(folder, "mma", [](Run& run) {
    run_single(run, Instruction::mma_k16);
    run_single(run, Instruction::mma_k8);
  });
}

bool run_chains(const std::filesystem::path& folder) {
  return run_into(folder, "chains", [](Run& run) { run_chained(run, Instruction::mma_k16); });
}

bool run_wgmma(const std::filesystem::path& folder) {
  return run_into(folder, "wgmma", [](Run& run) {
    run_single(run, Instruction::wgmma_k16);
    run_chained(run, Instruction::wgmma_k16);
  });
}

}  // namespace probe
