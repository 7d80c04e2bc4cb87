// SPDX-License-Identifier: Apache-2.0
// The model against published results of hardware, where they are found beside the checkout.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <vector>

#include "catch.hpp"
#include "halfscope/tensor_core/mma.hpp"
#include "tensor_core/gemm_judge.hpp"
#include "vector_target.hpp"

namespace test_published {

using namespace halfscope;
using namespace halfscope::tensor_core;

namespace fs = std::filesystem;
using test::Halves;
using test::to_half;
using test::whole_chain;

constexpr Accumulator kHalf = Accumulator::binary16, kWide = Accumulator::binary32;

// Published results, which are no part of the repository: header "TCG1", u32 k, u32 rows; row: u16
// a[k], u16 b[k], u32 c, u32 d, u16 d of binary16 from the rounded c.

struct Measured {
  Halves a, b;
  std::uint32_t c, wide, half;
};

fs::path vector_folder() {
  const char* const told = std::getenv("HALFSCOPE_TENSOR_CORE_VECTORS");
  if (told != nullptr) return told;
  return fs::path(HALFSCOPE_SOURCE_DIR) / ".." / "shared" / "vectors" / "tensor_core";
}

template <typename T>
T take(std::istream& in) {
  T value{};
  in.read(reinterpret_cast<char*>(&value), sizeof value);
  return value;
}

std::vector<Measured> read(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::vector<Measured> out;
  if (!in || take<std::uint32_t>(in) != 0x31474354) return out;
  const auto k = take<std::uint32_t>(in), rows = take<std::uint32_t>(in);
  for (std::uint32_t i = 0; i < rows && in; ++i) {
    Measured row{Halves(k), Halves(k), 0, 0, 0};
    for (auto* const side : {&row.a, &row.b}) {
      for (std::uint16_t& x : *side) x = take<std::uint16_t>(in);
    }
    row.c = take<std::uint32_t>(in);
    row.wide = take<std::uint32_t>(in);
    row.half = take<std::uint16_t>(in);
    out.push_back(row);
  }
  return out;
}

struct Mismatches {
  int wide = 0, half = 0;
};

Mismatches mismatches(const Unit& unit, const std::vector<Measured>& rows) {
  Mismatches out;
  for (const Measured& row : rows) {
    out.wide += whole_chain(unit, kWide, row.a, row.b, row.c) != row.wide;
    out.half += whole_chain(unit, kHalf, row.a, row.b, to_half(row.c)) != row.half;
  }
  return out;
}

/// By gemm(): some rows as A, their partners as B, of which the diagonal of D is compared.
int mismatches_of_gemm(const Unit& unit, Accumulator d, const std::vector<Measured>& rows) {
  constexpr std::size_t kBlock = 40;
  int out = 0;
  for (std::size_t first = 0; first + kBlock <= rows.size(); first += kBlock) {
    const auto k = static_cast<std::int64_t>(rows[first].a.size());
    test::GemmInput in{{kBlock, kBlock, k}, {}, {}, {}};
    for (std::size_t i = 0; i < kBlock; ++i) {
      const Measured& row = rows[first + i];
      in.a.insert(in.a.end(), row.a.begin(), row.a.end());
      in.b.insert(in.b.end(), row.b.begin(), row.b.end());
      in.c.insert(in.c.end(), kBlock, d == kHalf ? to_half(row.c) : row.c);
    }
    const auto found = test::computed({.unit = unit, .accumulator = d, .threads = 1}, in);
    for (std::size_t i = 0; i < kBlock; ++i) {
      const Measured& row = rows[first + i];
      const std::uint32_t one = found[i * kBlock + i];
      out += (d == kHalf ? to_half(one) != row.half : one != row.wide);
    }
  }
  return out;
}

struct Card {
  const char* file;
  Unit unit;
};
constexpr Card kCards[] = {{"V100.bin", kVolta}, {"A100.bin", kAmpere}, {"H100.bin", kHopper}};

std::vector<Measured> rows_of(const Card& card) {
  std::vector<Measured> rows = read(vector_folder() / card.file);
  if (rows.empty()) std::cout << "skipped: Tensor Core vectors not found: " << card.file << '\n';
  return rows;
}

TEST_CASE("the model gives what V100, A100 and H100 gave", "[tensor_core]") {
  for (const Card& card : kCards) {
    const std::vector<Measured> rows = rows_of(card);
    CAPTURE(card.file);
    CHECK(mismatches(card.unit, rows).wide == 0);
    CHECK(mismatches(card.unit, rows).half == 0);
    for (const std::string& target : targets()) {
      const OnTarget on(target);
      CAPTURE(target);
      CHECK(mismatches_of_gemm(card.unit, kHalf, rows) == 0);
      CHECK(mismatches_of_gemm(card.unit, kWide, rows) == 0);
    }
  }
}

TEST_CASE("published results refute other models", "[tensor_core]") {
  for (const Card& card : kCards) {
    const std::vector<Measured> rows = rows_of(card);
    if (rows.empty()) continue;
    CAPTURE(card.file);
    auto refuted = [&](auto change) {
      Unit unit = card.unit;
      change(unit);
      const Mismatches found = mismatches(unit, rows);
      return found.wide + found.half > 0;
    };
    CHECK(refuted([](Unit& u) { --u.fraction_bits; }));
    CHECK(refuted([](Unit& u) { ++u.fraction_bits; }));
    CHECK(refuted([](Unit& u) { u.length = u.length / 2; }));
    CHECK(refuted([](Unit& u) { u.round32 = Rounding::ties_to_even; }));
    CHECK(refuted([](Unit& u) { u.round16 = Rounding::toward_zero; }));
    CHECK(refuted([](Unit& u) { u.normalises_products = true; }));
  }
}

}  // namespace test_published
