// SPDX-License-Identifier: Apache-2.0
// Results of hardware, kept for tests on machines without it. The file, little endian: "HSTC", u32
// version 1, u32 rows; each row u8 instruction, u8 accumulator (0 binary16, 1 binary32), u8
// distribution, u8 choice, u16 k, u16 reserved, u16 a[k], u16 b[k], u32 c, u32 d, all encodings; c
// and d of binary16 in the low half.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "tensor_core/inputs.hpp"

namespace probe {

enum class Instruction : std::uint8_t { mma_k16, mma_k8, wgmma_k16 };

inline constexpr std::array<std::string_view, 3> kInstructions = {
    "mma.sync m16n8k16", "mma.sync m16n8k8", "wgmma m64n8k16"};

constexpr int products_of(Instruction i) { return i == Instruction::mma_k8 ? 8 : 16; }
constexpr int rows_of(Instruction i) { return i == Instruction::wgmma_k16 ? 64 : 16; }
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

/// Throw std::runtime_error that names the file.
void write_golden(const std::filesystem::path& file, const std::vector<GoldenRow>& rows);
std::vector<GoldenRow> read_golden(const std::filesystem::path& file);

/// One output of an instruction: d of (row, column), which is number row * kColumns + column.
GoldenRow row_at(const Place& at, Instruction instruction, Accumulator d, std::uint32_t output);

/// Which outputs to keep. `masks[i]` has a bit for each hypothesis that differs from the hardware
/// at output i; bit 0 is the model. Rows of every mask, rare ones first, then rows at equal
/// distances.
struct Chosen {
  std::size_t output;
  Choice choice;
};
std::vector<Chosen> choose(const std::vector<std::uint32_t>& masks, std::size_t most);

}  // namespace probe
