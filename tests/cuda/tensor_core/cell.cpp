// SPDX-License-Identifier: Apache-2.0
#include "cuda/tensor_core/cell.hpp"

#include <algorithm>
#include <chrono>

#include "cuda/device.hpp"

namespace probe {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void launch(const Batch& batch) {
  if (shape_of(batch.cell.instruction).is_wgmma()) {
    launch_wgmma(batch);
  } else {
    launch_mma(batch);
  }
  device::check(cudaDeviceSynchronize());
}

/// The rows that are kept, from the first batch.
std::vector<GoldenRow> golden_rows(const Cell& cell, const std::vector<std::uint32_t>& d,
                                   const std::vector<std::uint32_t>& masks, std::size_t most) {
  const auto of_instruction =
      static_cast<std::uint32_t>(shape_of(cell.instruction).rows * kColumns);
  std::vector<GoldenRow> out;
  for (const Chosen& chosen : choose(masks, most)) {
    const auto output = static_cast<std::uint32_t>(chosen.output);
    const Place at = {cell.distribution, output / of_instruction, cell.k};
    out.push_back(row_at(at, cell.instruction, cell.accumulator, output % of_instruction));
    out.back().choice = chosen.choice;
    out.back().d = d[chosen.output];
  }
  return out;
}

}  // namespace

CellResult run_cell(const Cell& cell, const std::vector<Hypothesis>& hypotheses,
                    const Effort& effort) {
  const Clock::time_point start = Clock::now();
  std::vector<Rule> rules;
  for (const Hypothesis& hypothesis : hypotheses) rules.push_back(hypothesis.rule);
  const auto on_device = device::copy_of(rules);
  const auto wrong = device::copy_of(std::vector<unsigned long long>(rules.size()));
  const auto of_instruction =
      static_cast<std::uint32_t>(shape_of(cell.instruction).rows * kColumns);
  const std::uint32_t whole = (std::uint32_t{1} << 24) / static_cast<std::uint32_t>(cell.k);
  const std::uint32_t outputs = static_cast<std::uint32_t>(
      std::max<std::uint64_t>(of_instruction, std::min<std::uint64_t>(whole, effort.outputs)));
  const auto d = device::allocate<std::uint32_t>(outputs);
  const auto masks = device::allocate<std::uint32_t>(outputs);
  Batch batch = {cell,
                 0,
                 outputs / of_instruction,
                 on_device.get(),
                 static_cast<int>(rules.size()),
                 wrong.get(),
                 d.get(),
                 masks.get()};
  CellResult result;
  do {
    launch(batch);
    if (batch.first == 0 && effort.golden_rows != 0) {
      result.rows = golden_rows(cell, device::fetch(d.get(), outputs),
                                device::fetch(masks.get(), outputs), effort.golden_rows);
    }
    result.outputs += outputs;
    batch.first += batch.count;
    batch.d = batch.masks = nullptr;
  } while (result.outputs < effort.outputs && seconds_since(start) < effort.seconds);
  for (const unsigned long long n : device::fetch(wrong.get(), rules.size())) {
    result.wrong.push_back(n);
  }
  result.seconds = seconds_since(start);
  return result;
}

}  // namespace probe
