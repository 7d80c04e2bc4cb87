// SPDX-License-Identifier: Apache-2.0
// CUDA's half functions on all encodings. half_tables.bin, little endian: "HSHF", u32 version 1,
// u32 functions; each: its name in 16 bytes, filled with zeros, and 65,536 results in the order of
// the inputs, u16 each. sat_relu.json: .sat and .relu on zeros and NaN.
#include <fmt/format.h>

#include <array>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "cuda/hardware.hpp"
#include "cuda/tensor_core/part.hpp"

namespace probe {
namespace {

using hardware::Operation;
using hardware::Unary;

struct Function {
  const char* name;
  Unary gpu;
};
constexpr Function kFunctions[] = {
    {"hexp", Unary::exp},
    {"hexp2", Unary::exp2},
    {"hexp10", Unary::exp10},
    {"hlog", Unary::log},
    {"hlog2", Unary::log2},
    {"hlog10", Unary::log10},
    {"hrcp", Unary::rcp},
    {"hsqrt", Unary::sqrt},
    {"hrsqrt", Unary::rsqrt},
    {"htanh", Unary::tanh},
    {"htanh_approx", Unary::tanh_approx},
    {"hsin", Unary::sin},
    {"hcos", Unary::cos},
};

void put32(std::string& out, std::uint32_t value) {
  for (int i = 0; i < 4; ++i) out += static_cast<char>(value >> (8 * i));
}

void write(const std::filesystem::path& file, const std::string& text) {
  std::ofstream out(file, std::ios::binary);
  out << text;
  if (!out.flush()) throw std::runtime_error(file.string() + " cannot be written");
}

std::string function_tables() {
  std::string out = "HSHF";
  put32(out, 1);
  put32(out, std::size(kFunctions));
  for (const Function& function : kFunctions) {
    std::string name = function.name;
    name.resize(16);
    out += name;
    for (const std::uint16_t bits : hardware::all(function.gpu)) {
      out += static_cast<char>(bits & 0xFF);
      out += static_cast<char>(bits >> 8);
    }
  }
  return out;
}

/// Every triple of zeros, ones, NaNs and infinities.
nlohmann::json sat_and_relu() {
  constexpr std::array<std::uint16_t, 10> kOperands = {0x0000, 0x8000, 0x0001, 0x8001, 0x3C00,
                                                       0xBC00, 0x7C00, 0xFC00, 0x7E00, 0xFE01};
  std::vector<hardware::Operands> in;
  for (const std::uint16_t a : kOperands) {
    for (const std::uint16_t b : kOperands) {
      for (const std::uint16_t c : kOperands) in.push_back({a, b, c});
    }
  }
  nlohmann::json out = {{"operands", kOperands}, {"order", "a, b, c; c changes fastest"}};
  out["hadd_sat"] = hardware::each(Operation::add_sat, in);
  out["hsub_sat"] = hardware::each(Operation::sub_sat, in);
  out["hmul_sat"] = hardware::each(Operation::mul_sat, in);
  out["hfma"] = hardware::each(Operation::fma, in);
  out["hfma_sat"] = hardware::each(Operation::fma_sat, in);
  out["hfma_relu"] = hardware::each(Operation::fma_relu, in);
  return out;
}

}  // namespace

bool run_tables(const std::filesystem::path& folder) {
  write(folder / "half_tables.bin", function_tables());
  const nlohmann::json special = sat_and_relu();
  write(folder / "sat_relu.json", special.dump() + '\n');
  // -0 * 1 + -0 is -0: a = -0 (1), b = 1 (4), c = -0 (1).
  constexpr std::size_t kMinusZero = 1 * 100 + 4 * 10 + 1;
  for (const char* const name : {"hfma", "hfma_sat", "hfma_relu"}) {
    fmt::print("fact: {} giving -0 = {:04X}\n", name,
               special[name][kMinusZero].get<std::uint16_t>());
  }
  fmt::print("fact: half functions = {} tables of 65,536 results\n", std::size(kFunctions));
  return true;
}

}  // namespace probe
