// SPDX-License-Identifier: Apache-2.0
// Results of hardware, kept for tests on machines without it. The file, little endian: "HSTC", u32
// version 1, u32 rows; each row u8 instruction, u8 accumulator (0 binary16, 1 binary32), u8
// distribution, u8 choice, u16 k, u16 reserved, u16 a[k], u16 b[k], u32 c, u32 d, all encodings; c
// and d of binary16 in the low half.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "tensor_core/rules.hpp"

namespace probe {

enum class Instruction : std::uint8_t {
  mma_k16,
  mma_k8,
  wgmma_k16,
  mma_k16_bfloat16,
  mma_k8_bfloat16,
  wgmma_k16_bfloat16,
  mma_k32_e4m3,
  mma_k32_e5m2,
  wgmma_k32_e4m3,
  wgmma_k32_e5m2,
  mma_k32_mixed,
  wgmma_k32_mixed
};

struct InstructionRow {
  std::string_view name;
  int rows, products;
  Operands operands = Operands::binary16;

  constexpr bool is_wgmma() const { return rows == 64; }
  constexpr bool is_fp8() const { return products == 32; }
};

/// In the order of Instruction.
inline constexpr std::array<InstructionRow, 12> kInstructions = {{
    {"mma.sync m16n8k16", 16, 16},
    {"mma.sync m16n8k8", 16, 8},
    {"wgmma m64n8k16", 64, 16},
    {"mma.sync m16n8k16 of bfloat16", 16, 16, Operands::bfloat16},
    {"mma.sync m16n8k8 of bfloat16", 16, 8, Operands::bfloat16},
    {"wgmma m64n8k16 of bfloat16", 64, 16, Operands::bfloat16},
    {"mma.sync m16n8k32 of e4m3", 16, 32, Operands::e4m3},
    {"mma.sync m16n8k32 of e5m2", 16, 32, Operands::e5m2},
    {"wgmma m64n8k32 of e4m3", 64, 32, Operands::e4m3},
    {"wgmma m64n8k32 of e5m2", 64, 32, Operands::e5m2},
    {"mma.sync m16n8k32 of e5m2 and e4m3", 16, 32, Operands::e5m2_e4m3},
    {"wgmma m64n8k32 of e5m2 and e4m3", 64, 32, Operands::e5m2_e4m3},
}};

constexpr const InstructionRow& shape_of(Instruction i) {
  return kInstructions[static_cast<std::size_t>(i)];
}
inline constexpr int kColumns = 8;

/// Why a row is in the file.
enum class Choice : std::uint8_t {
  even,      ///< one of a few at equal distances
  disagree,  ///< the hypotheses differ there: some are refuted by it
  surprise   ///< the model differs from the hardware
};

struct GoldenRow {
  Instruction instruction;
  Accumulator accumulator;
  Distribution distribution;
  Choice choice;
  std::vector<std::uint16_t> a, b;  ///< of the same length
  std::uint32_t c, d;

  friend bool operator==(const GoldenRow&, const GoldenRow&) = default;
};

inline std::uint32_t result_of(const Rule& rule, const GoldenRow& row) {
  return result_of(rule, shape_of(row.instruction).operands, row.accumulator, row.a.data(),
                   row.b.data(), static_cast<int>(row.a.size()), row.c);
}

/// Throw std::runtime_error that names the file.
void write_golden(const std::filesystem::path& file, const std::vector<GoldenRow>& rows);
std::vector<GoldenRow> read_golden(const std::filesystem::path& file);

/// One output of an instruction: d of (row, column), which is number row * kColumns + column.
GoldenRow row_at(Place at, Instruction instruction, Accumulator d, std::uint32_t output);

/// Which outputs to keep. `masks[i]` has a bit for each hypothesis that differs from the hardware
/// at output i; bit 0 is the model. Rows of every mask, rare ones first, then rows at equal
/// distances.
struct Chosen {
  std::size_t output;
  Choice choice;
};
std::vector<Chosen> choose(const std::vector<std::uint32_t>& masks, std::size_t most);

}  // namespace probe
