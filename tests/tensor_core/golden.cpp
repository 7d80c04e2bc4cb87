// SPDX-License-Identifier: Apache-2.0
#include "tensor_core/golden.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>

#include "tensor_core/golden_bytes.hpp"

namespace probe {
namespace {

constexpr std::string_view kMagic = "HSTC";

void put_row(std::string& out, const GoldenRow& row) {
  put(out, static_cast<std::uint64_t>(row.instruction), 1);
  put(out, static_cast<std::uint64_t>(row.accumulator), 1);
  put(out, static_cast<std::uint64_t>(row.distribution), 1);
  put(out, static_cast<std::uint64_t>(row.choice), 1);
  put(out, row.a.size(), 2);
  put(out, 0, 2);
  for (const std::uint16_t a : row.a) put(out, a, 2);
  for (const std::uint16_t b : row.b) put(out, b, 2);
  put(out, row.c, 4);
  put(out, row.d, 4);
}

GoldenRow take_row(Bytes& in) {
  GoldenRow row{};
  row.instruction = in.take_below<Instruction>(kInstructions.size());
  row.accumulator = in.take_below<Accumulator>(2);
  row.distribution = in.take_below<Distribution>(static_cast<std::uint32_t>(Distribution::count));
  row.choice = in.take_below<Choice>(3);
  const std::uint32_t k = in.take(2);
  in.take(2);
  for (auto* const side : {&row.a, &row.b}) {
    for (std::uint32_t i = 0; i < k; ++i) {
      side->push_back(static_cast<std::uint16_t>(in.take(2)));
    }
  }
  row.c = in.take(4);
  row.d = in.take(4);
  return row;
}

}  // namespace

void write_golden(const std::filesystem::path& file, const std::vector<GoldenRow>& rows) {
  write_rows(file, kMagic, rows, put_row);
}

std::vector<GoldenRow> read_golden(const std::filesystem::path& file) {
  return read_rows(file, kMagic, take_row);
}

GoldenRow row_at(Place at, Instruction instruction, Accumulator d, std::uint32_t output) {
  at.operands = shape_of(instruction).operands;
  const auto row = static_cast<int>(output / kColumns),
             column = static_cast<int>(output % kColumns);
  GoldenRow out{instruction, d, at.distribution, Choice::even, {}, {}, 0, 0};
  for (int k = 0; k < at.k; ++k) {
    out.a.push_back(a_element(at, row, k));
    out.b.push_back(b_element(at, column, k));
  }
  out.c = c_element(at, d, row, column);
  return out;
}

std::vector<Chosen> choose(const std::vector<std::uint32_t>& masks, std::size_t most) {
  std::map<std::uint32_t, std::vector<std::size_t>> by_mask;
  for (std::size_t i = 0; i < masks.size(); ++i) {
    if (masks[i] != 0) by_mask[masks[i]].push_back(i);
  }
  std::vector<const std::vector<std::size_t>*> groups;
  for (const auto& [mask, outputs] : by_mask) groups.push_back(&outputs);
  std::ranges::stable_sort(groups, {}, [](const auto* group) { return group->size(); });
  std::vector<Chosen> out;
  const std::size_t differing = most - most / 4;
  for (std::size_t turn = 0; turn < differing && out.size() < differing; ++turn) {
    for (const auto* const group : groups) {
      if (turn >= group->size() || out.size() == differing) continue;
      const std::size_t output = (*group)[turn];
      out.push_back({output, (masks[output] & 1) != 0 ? Choice::surprise : Choice::disagree});
    }
  }
  const std::size_t left = std::min(most - out.size(), masks.size());
  for (std::size_t i = 0; i < left; ++i) {
    out.push_back({i * masks.size() / left, Choice::even});
  }
  return out;
}

}  // namespace probe
