// SPDX-License-Identifier: Apache-2.0
// Block formats on the device: codes, scales and second scales are those of the CPU's scalar code,
// which tests/block judges.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "catch.hpp"
#include "cuda/device.hpp"
#include "cuda/skip.hpp"
#include "cuda/stream.hpp"
#include "halfscope/block/quantise_cuda.hpp"

namespace test_quantise {

using namespace halfscope;
using block::Quantised;
using block::QuantiseOptions;
using block::Recipe;

using Floats = std::vector<float>;

/// Returns finite values of many binades, and by `kind`: 1 among them random bits, with NaN and
/// infinities; 2 a block of zeros and numbers whose scale is subnormal; 3 multiples of 1/8, where
/// roundings tie.
Floats samples(std::size_t count, int kind) {
  std::mt19937 random(static_cast<unsigned>(count) + static_cast<unsigned>(kind));
  Floats out(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto word = static_cast<std::uint32_t>(random());
    const float fraction = 1 + static_cast<float>(word & 0x7FFFFF) * 0x1p-23F;
    out[i] = std::ldexp(word >> 31 != 0 ? -fraction : fraction, static_cast<int>(word >> 24 & 31));
    if (kind == 1 && i % 97 == 5) std::memcpy(&out[i], &word, sizeof word);
    if (kind == 1 && i == count / 2) out[i] = std::numeric_limits<float>::quiet_NaN();
    if (kind == 2) out[i] *= i / 64 % 3 == 0 ? 0.0F : i / 64 % 3 == 1 ? 0x1p-148F : 0x1p96F;
    if (kind == 3) out[i] = static_cast<float>(static_cast<int>(word % 129) - 64) / 8;
  }
  if (kind == 4 && count != 0) out[count - 1] = -std::numeric_limits<float>::infinity();
  return out;
}

Quantised on_device(const Recipe& recipe, const block::Matrix& in, const QuantiseOptions& options,
                    cudaStream_t stream = nullptr) {
  const block::Grid grid = block::grid_of(recipe, in.rows, in.columns, false);
  Quantised out;
  out.scale_rows = grid.rows;
  out.scale_columns = grid.columns;
  const std::size_t seconds = recipe.second == block::SecondScale::tensor ? 1
                              : recipe.second == block::SecondScale::row  ? in.rows
                                                                          : 0;
  const auto values = device::copy_of(Floats(in.values.begin(), in.values.end()));
  const auto codes = device::copy_of(std::vector<std::uint8_t>(in.values.size(), 0xEE));
  const auto scales = device::allocate<std::uint32_t>(grid.rows * grid.columns);
  const auto second = device::allocate<float>(seconds);
  cuda::quantise(recipe, values.get(), in.rows, in.columns,
                 {codes.get(), scales.get(), second.get()}, options, stream);
  device::check(cudaStreamSynchronize(stream));
  out.codes = device::fetch(codes.get(), in.values.size());
  out.scales = device::fetch(scales.get(), grid.rows * grid.columns);
  out.second = device::fetch(second.get(), seconds);
  return out;
}

/// Returns an empty string, or the first place at which the device differs from the CPU.
std::string disagreement(const Recipe& recipe, std::size_t rows, std::size_t columns, int kind,
                         QuantiseOptions options = {}, cudaStream_t stream = nullptr) {
  if (recipe.second == block::SecondScale::history) options.history = 3.5F;
  const Floats values = samples(rows * columns, kind);
  const block::Matrix in = {values, rows, columns};
  const Quantised got = on_device(recipe, in, options, stream);
  const Quantised want = block::quantise_scalar(recipe, in, options);
  if (got.scales != want.scales) return "scales";
  if (got.second.size() != want.second.size()) return "number of second scales";
  for (std::size_t i = 0; i < want.second.size(); ++i) {
    if (std::memcmp(&got.second[i], &want.second[i], sizeof(float)) != 0) return "second scale";
  }
  for (std::size_t i = 0; i < want.codes.size(); ++i) {
    if (got.codes[i] == want.codes[i]) continue;
    return "code " + std::to_string(i) + ": " + std::to_string(got.codes[i]) + ", CPU " +
           std::to_string(want.codes[i]);
  }
  return {};
}

TEST_CASE("every recipe on the device has the CPU's bits", "[cuda][block][gpu]") {
  if (skipped()) return;
  for (const Recipe& recipe : block::recipes()) {
    CAPTURE(recipe.name);
    for (int kind = 0; kind <= 4; ++kind) {
      CAPTURE(kind);
      CHECK(disagreement(recipe, 32, 256, kind, {.seed = 2026}) == "");
    }
    CHECK(disagreement(recipe, 3, 144, 0, {.type = kBinary16}) == "");
  }
}

TEST_CASE("sizes that are no multiple of a block on the device", "[cuda][block][gpu]") {
  if (skipped()) return;
  for (const Recipe& recipe : block::recipes()) {
    CAPTURE(recipe.name);
    for (const std::size_t columns : {0U, 1U, 15U, 33U, 129U, 1040U}) {
      CAPTURE(columns);
      if (columns % recipe.multiple_of != 0) continue;
      CHECK(disagreement(recipe, columns == 0 ? 0 : 19, columns, 1) == "");
    }
  }
}

TEST_CASE("the quantiser's work is in the order of the caller's stream", "[cuda][block][gpu]") {
  if (skipped()) return;
  const Stream stream;
  for (const char* const name : {"nvfp4-hadamard-stochastic", "fp8-current", "mxfp8-e4m3-rceil"}) {
    CHECK(disagreement(block::recipe_named(name), 64, 512, 0, {.seed = 7}, stream.get()) == "");
  }
}

TEST_CASE("the quantiser refuses on the device what it refuses on the CPU", "[cuda][block]") {
  const auto call = [](const char* name, std::size_t columns, const QuantiseOptions& options) {
    cuda::quantise(block::recipe_named(name), nullptr, 1, columns, {}, options);
  };
  CHECK_THROWS_WITH(
      call("nvfp4-hadamard", 40, {}),
      "recipe nvfp4-hadamard: the last dimension is 40, and must be a multiple of 16");
  CHECK_THROWS_AS(call("fp8-delayed", 32, {}), std::invalid_argument);
  CHECK_THROWS_WITH(call("nvfp4", 32, {.by_columns = true}),
                    "halfscope::cuda::quantise: recipe nvfp4: blocks run along rows here; "
                    "transpose the tensor instead");
}

}  // namespace test_quantise
