// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <stdexcept>
#include <string>

#include "halfscope/block/four_over_six.hpp"
#include "halfscope/block/hadamard.hpp"
#include "halfscope/block/quantise_cuda.hpp"
#include "halfscope/device/launch.hpp"
#include "halfscope/number/random.hpp"

namespace halfscope::cuda {
namespace {

using block::Recipe;
using block::SecondScale;
using block::steps::magnitude_of;

constexpr unsigned kThreads = 256, kWarp = 32;
constexpr unsigned kPart = 1024;            // values of a tensor with one scale that a warp encodes
constexpr unsigned kMostBlocks = 1U << 20;  // loops process the rest

unsigned grid_size(std::size_t threads) {
  const std::size_t blocks = (threads + kThreads - 1) / kThreads;
  return static_cast<unsigned>(std::min(blocks, std::size_t{kMostBlocks}));
}

__device__ std::size_t first_thread() { return std::size_t{blockIdx.x} * kThreads + threadIdx.x; }
__device__ std::size_t all_threads() { return std::size_t{gridDim.x} * kThreads; }

/// Returns the largest over all threads of the warp.
__device__ unsigned warp_largest(unsigned mine) {
  for (int lanes = kWarp / 2; lanes > 0; lanes /= 2) {
    mine = max(mine, __shfl_xor_sync(0xFFFFFFFF, mine, lanes));
  }
  return mine;
}

__global__ void __launch_bounds__(kThreads)
    transform_rows(Format format, const float* in, float* out, std::size_t rows) {
  for (std::size_t i = first_thread(); i < rows; i += all_threads()) {
    block::hadamard_row(format, in + i * block::kHadamard, out + i * block::kHadamard);
  }
}

/// Sets largest[g], which must be 0 before, to the encoding of the largest magnitude of the values
/// [g * size, (g + 1) * size). A group is divided among `parts` blocks of threads.
__global__ void __launch_bounds__(kThreads)
    largest_of_groups(const float* values, std::size_t size, std::size_t groups, unsigned parts,
                      unsigned* largest) {
  for (std::size_t at = blockIdx.x; at < groups * parts; at += gridDim.x) {
    const std::size_t group = at / parts, step = std::size_t{parts} * kThreads;
    unsigned most = 0;
    for (std::size_t i = at % parts * kThreads + threadIdx.x; i < size; i += step) {
      most = max(most, magnitude_of(values[group * size + i]));
    }
    most = warp_largest(most);
    if (threadIdx.x % kWarp == 0 && most != 0) atomicMax(largest + group, most);
  }
}

/// A call of quantise(). A tensor with one scale, or none, is one row here; its blocks are parts.
struct Job {
  Recipe recipe;
  const float* values;
  QuantisedMemory out;
  std::uint64_t seed;
  float limit = 0;
  bool single = false;
  std::size_t rows = 0, columns = 0, block_rows = 0, block_columns = 0, across = 0, blocks = 0;
  unsigned given = 0;  ///< the encoding of the largest magnitude that the caller gives
  const unsigned* largest = nullptr;  ///< the same found in the tensor, or in each row

  __device__ block::SecondFactors second_of(std::size_t row) const {
    if (recipe.second != SecondScale::tensor && recipe.second != SecondScale::row) return {};
    const std::size_t group = recipe.second == SecondScale::row ? row : 0;
    return block::second_factors(recipe, block::steps::float_of(largest[group]));
  }
};

__global__ void __launch_bounds__(kThreads) store_second(Job job, std::size_t count) {
  for (std::size_t i = first_thread(); i < count; i += all_threads()) {
    job.out.second[i] = job.second_of(i).decode;
  }
}

/// A warp quantises a block at a time.
__global__ void __launch_bounds__(kThreads) quantise_blocks(Job job) {
  const Recipe& recipe = job.recipe;
  const unsigned lane = threadIdx.x % kWarp;
  const bool divide = block::divides(recipe.formula);
  block::Encoding how = {.rounding = recipe.rounding, .saturate = recipe.saturate};
  for (std::size_t b = first_thread() / kWarp; b < job.blocks; b += all_threads() / kWarp) {
    const std::size_t row = b / job.across * job.block_rows;
    const std::size_t column = b % job.across * job.block_columns;
    const auto rows = static_cast<unsigned>(min(job.block_rows, job.rows - row));
    const auto columns = static_cast<unsigned>(min(job.block_columns, job.columns - column));
    const auto index = [&](unsigned i) {
      return (row + i / columns) * job.columns + column + i % columns;
    };
    unsigned most = job.single && job.largest != nullptr ? *job.largest : job.given;
    for (unsigned i = lane; !job.single && i < rows * columns; i += kWarp) {
      most = max(most, magnitude_of(job.values[index(i)]));
    }
    most = warp_largest(most);
    const block::SecondFactors second = job.second_of(row);
    const block::BlockFactor found = block::best_factor(
        recipe, second, most, job.limit, job.values + index(0), job.columns, rows, columns);
    if (lane == 0 && job.out.scales != nullptr && (!job.single || b == 0)) {
      job.out.scales[b] = found.stored;
    }
    for (unsigned i = lane; i < rows * columns; i += kWarp) {
      const std::size_t at = index(i);
      if (how.rounding == block::ElementRounding::random) how.random = random_word(job.seed, at);
      const float x = job.values[at];
      const float scaled = divide ? x / found.factor : x * found.factor;
      job.out.codes[at] = block::encode(recipe.element, scaled, how);
    }
  }
}

Job job_of(const Recipe& recipe, const float* values, std::size_t rows, std::size_t columns,
           const QuantisedMemory& out, const block::QuantiseOptions& options) {
  Job job = {.recipe = recipe, .values = values, .out = out, .seed = options.seed};
  job.limit = options.limit();
  job.single = recipe.block.rows == 0;
  job.rows = job.single ? 1 : rows;
  job.columns = job.single ? rows * columns : columns;
  job.block_rows = job.single ? 1 : recipe.block.rows;
  job.block_columns = job.single ? kPart : recipe.block.columns;
  job.across = (job.columns + job.block_columns - 1) / job.block_columns;
  if (job.single) job.across = std::max(job.across, std::size_t{1});  // an empty tensor has a scale
  job.blocks = job.across * ((job.rows + job.block_rows - 1) / job.block_rows);
  if (job.single && options.history) job.given = magnitude_of(static_cast<float>(*options.history));
  return job;
}

}  // namespace

void quantise(const Recipe& recipe, const float* values, std::size_t rows, std::size_t columns,
              const QuantisedMemory& out, const block::QuantiseOptions& options,
              cudaStream_t stream) {
  if (options.by_columns) {
    throw std::invalid_argument("halfscope::cuda::quantise: recipe " + std::string(recipe.name) +
                                ": blocks run along rows here; transpose the tensor instead");
  }
  block::check_quantise(recipe, rows, columns, options);
  Job job = job_of(recipe, values, rows, columns, out, options);
  const std::size_t count = rows * columns;
  const DeviceMemory transformed(recipe.hadamard ? count * sizeof(float) : 0, stream);
  if (recipe.hadamard) {
    job.values = transformed.as<float>();
    launch("transform_rows", transform_rows, {grid_size(count / block::kHadamard), kThreads},
           stream, options.type, values, transformed.as<float>(), count / block::kHadamard);
  }
  const bool by_row = recipe.second == SecondScale::row;
  const bool of_tensor =
      recipe.second == SecondScale::tensor ||
      (job.single && recipe.scale != block::ScaleFormat::none && !options.history);
  const std::size_t groups = by_row ? rows : of_tensor ? 1 : 0;
  const DeviceMemory largest(groups * sizeof(unsigned), stream);
  if (groups != 0) {
    job.largest = largest.as<unsigned>();
    check(cudaMemsetAsync(largest.data(), 0, groups * sizeof(unsigned), stream), "cudaMemsetAsync");
    const unsigned parts = by_row ? 1 : std::max(1U, std::min(grid_size(count), 2048U));
    launch("largest_of_groups", largest_of_groups, {grid_size(groups * parts * kThreads), kThreads},
           stream, job.values, by_row ? columns : count, groups, parts, largest.as<unsigned>());
    if (recipe.second != SecondScale::none) {
      launch("store_second", store_second, {grid_size(groups), kThreads}, stream, job, groups);
    }
  }
  launch("quantise_blocks", quantise_blocks, {grid_size(job.blocks * kWarp), kThreads}, stream,
         job);
}

}  // namespace halfscope::cuda
