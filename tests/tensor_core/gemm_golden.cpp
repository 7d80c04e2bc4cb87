// SPDX-License-Identifier: Apache-2.0
#include "tensor_core/gemm_golden.hpp"

#include <string>
#include <string_view>

#include "tensor_core/golden_bytes.hpp"

namespace probe {
namespace {

constexpr std::string_view kGemmMagic = "HSTG";

int bytes_of(Accumulator out) { return out == Accumulator::binary16 ? 2 : 4; }

void put_gemm_row(std::string& to, const GemmRow& row) {
  for (const int size : {row.shape.m, row.shape.n, row.shape.k}) {
    put(to, static_cast<std::uint64_t>(size), 2);
  }
  put(to, row.shape.transposed ? 1 : 0, 1);
  put(to, static_cast<std::uint64_t>(row.out), 1);
  put(to, row.predictable ? 1 : 0, 1);
  put(to, static_cast<std::uint64_t>(row.inputs), 1);
  put(to, static_cast<std::uint64_t>(row.config.algorithm), 1);
  put(to, row.config.stages, 1);
  put(to, static_cast<std::uint64_t>(row.config.slices), 2);
  put(to, row.config.reduction, 1);
  put(to, row.d.size(), 1);
  for (const std::uint32_t d : row.d) put(to, d, bytes_of(row.out));
}

GemmRow take_gemm_row(Bytes& in) {
  GemmRow row{};
  for (int* const size : {&row.shape.m, &row.shape.n, &row.shape.k}) {
    *size = static_cast<int>(in.take(2));
  }
  row.shape.transposed = in.take_below<bool>(2);
  row.out = in.take_below<Accumulator>(2);
  row.predictable = in.take_below<bool>(2);
  row.inputs = in.take_below<GemmInputs>(static_cast<std::uint32_t>(GemmInputs::count));
  row.config.algorithm = static_cast<int>(in.take(1));
  row.config.stages = in.take(1);
  row.config.slices = static_cast<int>(in.take(2));
  row.config.reduction = in.take(1);
  for (std::uint32_t left = in.take(1); left > 0; --left) {
    row.d.push_back(in.take(bytes_of(row.out)));
  }
  return row;
}

}  // namespace

void write_gemm_golden(const std::filesystem::path& file, const std::vector<GemmRow>& rows) {
  write_rows(file, kGemmMagic, rows, put_gemm_row);
}

std::vector<GemmRow> read_gemm_golden(const std::filesystem::path& file) {
  return read_rows(file, kGemmMagic, take_gemm_row);
}

}  // namespace probe
