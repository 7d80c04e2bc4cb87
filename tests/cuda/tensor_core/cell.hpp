// SPDX-License-Identifier: Apache-2.0
// Instructions of one kind on inputs of one distribution, judged on the device by every hypothesis.
#pragma once

#include <cstdint>
#include <vector>

#include "tensor_core/golden.hpp"
#include "tensor_core/hypotheses.hpp"

namespace probe {

struct Cell {
  Instruction instruction;
  Accumulator accumulator;
  Distribution distribution;
  int k;  ///< a power of two; more than an instruction's: several, one after the other
};

/// What a kernel is given. Outputs are numbered by instruction, row and column.
struct Batch {
  Cell cell;
  std::uint32_t first, count;  ///< instructions
  const Rule* rules;
  int rule_count;
  unsigned long long* wrong;  ///< one a rule: outputs that differ from the hardware's
  std::uint32_t* d;           ///< one an output; may be null
  std::uint32_t* masks;       ///< likewise: a bit for each rule that differs
};

/// Asynchronous; throw std::runtime_error where a launch fails.
void launch_mma(const Batch& batch);
void launch_wgmma(const Batch& batch);

struct CellResult {
  std::uint64_t outputs = 0;
  std::vector<std::uint64_t> wrong;  ///< by hypothesis
  std::vector<GoldenRow> rows;
  double seconds = 0;
};

struct Effort {
  std::uint64_t outputs;  ///< as many, in batches
  double seconds;         ///< no batch is begun later
  std::size_t golden_rows;
};

CellResult run_cell(const Cell& cell, const std::vector<Hypothesis>& hypotheses,
                    const Effort& effort);

}  // namespace probe
