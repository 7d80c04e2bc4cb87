// SPDX-License-Identifier: Apache-2.0
#include "halfscope/block/quantise.hpp"

#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>
#include <utility>

#include "halfscope/array/environment.hpp"
#include "halfscope/block/four_over_six.hpp"
#include "halfscope/block/hadamard.hpp"
#include "halfscope/block/tile.hpp"
#include "halfscope/device/arena.hpp"
#include "halfscope/number/random.hpp"

namespace halfscope::block {
namespace {

constexpr std::size_t kTileValues = 8192;  // read twice, the second time from a cache
constexpr std::size_t kTileColumns = 512;  // at least: shorter parts of rows are read slowly

[[noreturn]] void refuse(const Recipe& recipe, const std::string& why) {
  throw std::invalid_argument("recipe " + std::string(recipe.name) + ": " + why);
}

std::string extent(std::size_t rows, std::size_t columns) {
  return std::to_string(rows) + " x " + std::to_string(columns);
}

int log2_of(std::size_t width) {
  int log2 = 0;
  while ((std::size_t{1} << log2) < width) ++log2;
  return log2;
}

/// A call of quantise(): where its blocks lie, and what they share.
struct Job {
  const Recipe& recipe;
  const QuantiseOptions& options;
  const float* values;
  std::size_t rows, columns;
  std::size_t block_rows, block_columns;  ///< extent of a block; the tensor's if it is one block
  bool vectors;
  std::vector<SecondFactors> second;  ///< one, or one a row
  Quantised& out;
  float limit;  ///< QuantiseOptions::limit()

  const SecondFactors& second_of(std::size_t row) const {
    return second[second.size() == 1 ? 0 : row];
  }
  /// Place of a value in the caller's tensor, whose random number it draws.
  std::size_t place(std::size_t row, std::size_t column) const {
    return options.by_columns ? column * rows + row : row * columns + column;
  }
};

/// Updates `largest` by the values of a row's blocks.
void update_largest(const Job& job, const float* values, Span span, std::uint32_t* largest) {
  if (job.vectors) return update_largest(values, span, largest);
  for (std::size_t i = 0; i < span.count; ++i) {
    std::uint32_t& most = largest[i >> span.log2_width];
    most = std::max(most, steps::magnitude_of(values[i]));
  }
}

std::uint32_t largest_of_all(const Job& job) {
  std::uint32_t most = 0;
  for (std::size_t r = 0; r < job.rows; ++r) {
    update_largest(job, job.values + r * job.columns, {job.columns, 63}, &most);
  }
  return most;
}

/// Encodes part of a row with the factors of its blocks.
void encode_row(const Job& job, std::size_t row, std::size_t column, Span span,
                const float* factors) {
  const float* const x = job.values + row * job.columns + column;
  std::uint8_t* const codes = job.out.codes.data() + row * job.columns + column;
  const bool divide = divides(job.recipe.formula);
  float* const scaled = job.options.scaled == nullptr
                            ? nullptr
                            : job.options.scaled->data() + row * job.columns + column;
  if (job.vectors && scaled == nullptr && has_vector_code(job.recipe)) {
    return encode_span(job.recipe.element, divide, x, span, factors, codes);
  }
  Encoding how = {.rounding = job.recipe.rounding, .saturate = job.recipe.saturate};
  for (std::size_t i = 0; i < span.count; ++i) {
    const float factor = factors[i >> span.log2_width];
    if (how.rounding == ElementRounding::random) {
      how.random = random_word(job.options.seed, job.place(row, column + i));
    }
    const float y = divide ? x[i] / factor : x[i] * factor;
    if (scaled != nullptr) scaled[i] = y;
    codes[i] = encode(job.recipe.element, y, how);
  }
}

/// Transformer Engine's scales of n blocks: b * unit, rounded to E4M3.
void nvfp4_factors(const SecondFactors& second, const std::uint32_t* largest, std::size_t n,
                   std::uint32_t* stored, float* factors) {
  static const std::array<float, 256> values = [] {
    std::array<float, 256> all{};
    for (std::size_t i = 0; i < all.size(); ++i) {
      all[i] = decode(Element::e4m3, static_cast<std::uint8_t>(i));
    }
    return all;
  }();
  std::array<std::uint8_t, kTileValues / 16> codes;
  for (std::size_t i = 0; i < n; ++i) factors[i] = steps::float_of(largest[i]);
  encode_span(Element::e4m3, false, factors, {n, 63}, &second.unit, codes.data());
  for (std::size_t i = 0; i < n; ++i) factors[i] = values[codes[i]];
  for (std::size_t i = 0; i < n; ++i) {
    stored[i] = codes[i];
    factors[i] = steps::at_most(1 / (factors[i] * second.decode), kFloatMax);
  }
}

void mx_factors(const Recipe& recipe, const std::uint32_t* largest, std::size_t n,
                std::uint32_t* stored, float* factors) {
  const steps::MxRule rule = steps::mx_rule(recipe.formula, recipe.element);
  for (std::size_t i = 0; i < n; ++i) {
    const float b = steps::at_least(steps::float_of(largest[i]), recipe.least);
    const BlockFactor found = steps::mx(rule, steps::bits_of(b));
    stored[i] = found.stored;
    factors[i] = found.factor;
  }
}

/// Quantises the blocks [first, first + n) of a row of blocks.
void quantise_tile(const Job& job, std::size_t block_row, std::size_t first, std::size_t n) {
  std::array<std::uint32_t, kTileValues / 16> largest{};
  std::array<float, kTileValues / 16> factors;
  const std::size_t row = block_row * job.block_rows;
  const std::size_t rows = std::min(job.block_rows, job.rows - row);
  const std::size_t column = first * job.block_columns;
  const Span span = {std::min(n * job.block_columns, job.columns - column),
                     log2_of(job.block_columns)};
  const float* const x = job.values + row * job.columns + column;
  for (std::size_t r = 0; r < rows; ++r) {
    update_largest(job, x + r * job.columns, span, largest.data());
  }
  const SecondFactors& second = job.second_of(row);
  std::uint32_t* const stored = job.out.scales.data() + block_row * job.out.scale_columns + first;
  if (job.vectors && job.recipe.formula == Formula::nvfp4) {
    nvfp4_factors(second, largest.data(), n, stored, factors.data());
  } else if (job.vectors && has_mx_rule(job.recipe.formula)) {
    mx_factors(job.recipe, largest.data(), n, stored, factors.data());
  } else {
    for (std::size_t k = 0; k < n; ++k) {
      const std::size_t at = k * job.block_columns;
      const std::size_t width = std::min(job.block_columns, span.count - at);
      const BlockFactor found =
          best_factor(job.recipe, second, largest[k], job.limit, x + at, job.columns, rows, width);
      stored[k] = found.stored;
      factors[k] = found.factor;
    }
  }
  for (std::size_t r = 0; r < rows; ++r) encode_row(job, row + r, column, span, factors.data());
}

/// Quantises a tensor with one scale, or none.
void quantise_whole(const Job& job) {
  const std::uint32_t largest = job.recipe.scale == ScaleFormat::none ? 0
                                : job.options.history
                                    ? steps::magnitude_of(static_cast<float>(*job.options.history))
                                    : largest_of_all(job);
  const BlockFactor found = block_factor(job.recipe, {}, largest, job.limit);
  if (!job.out.scales.empty()) job.out.scales.front() = found.stored;
  for (std::size_t r = 0; r < job.rows; ++r) {
    encode_row(job, r, 0, {job.columns, 63}, &found.factor);
  }
}

void quantise_blocks(const Job& job) {
  const std::size_t band = job.block_rows * job.block_columns;
  const std::size_t width =
      std::min(kTileValues / 16, std::max(kTileColumns / job.block_columns, kTileValues / band));
  const std::size_t tiles = (job.out.scale_columns + width - 1) / width;
  const auto some = [&](const tbb::blocked_range<std::size_t>& range) {
    const FloatEnvironment environment(RoundingControl::nearest);  // a setting of this thread
    for (std::size_t i = range.begin(); i < range.end(); ++i) {
      const std::size_t first = i % tiles * width;
      quantise_tile(job, i / tiles, first, std::min(width, job.out.scale_columns - first));
    }
  };
  const tbb::blocked_range<std::size_t> all(0, tiles * job.out.scale_rows, 8);
  if (job.options.threads == 1 || !job.vectors) return some(all);
  in_arena(job.options.threads, [&] { tbb::parallel_for(all, some); });
}

void set_second(Job& job) {
  const auto factors = [&](std::uint32_t largest) {
    return second_factors(job.recipe, steps::float_of(largest));
  };
  if (job.recipe.second == SecondScale::row) {
    for (std::size_t r = 0; r < job.rows; ++r) {
      std::uint32_t largest = 0;
      update_largest(job, job.values + r * job.columns, {job.columns, 63}, &largest);
      job.second.push_back(factors(largest));
    }
  } else if (job.recipe.second == SecondScale::tensor) {
    job.second.push_back(factors(largest_of_all(job)));
  } else {
    job.second.push_back({});
    return;
  }
  for (const SecondFactors& second : job.second) job.out.second.push_back(second.decode);
}

/// Quantises a tensor whose blocks run along the rows, without a transform.
void quantise_rows(const Recipe& recipe, const Matrix& in, const QuantiseOptions& options,
                   bool vectors, Quantised& out) {
  const bool single = recipe.block == Shape{0, 0};
  const Grid grid = grid_of(recipe, in.rows, in.columns, false);
  out.second.clear();
  out.codes.resize(in.rows * in.columns);
  if (options.scaled != nullptr) options.scaled->resize(out.codes.size());
  out.scale_rows = grid.rows;
  out.scale_columns = grid.columns;
  out.scales.resize(grid.rows * grid.columns);
  Job job = {recipe,
             options,
             in.values.data(),
             in.rows,
             in.columns,
             single ? in.rows : recipe.block.rows,
             single ? in.columns : recipe.block.columns,
             vectors,
             {},
             out,
             options.limit()};
  set_second(job);
  if (single) {
    quantise_whole(job);
  } else {
    quantise_blocks(job);
  }
}

void run(const Recipe& recipe, const Matrix& in, const QuantiseOptions& options, bool vectors,
         Quantised& out) {
  if (in.columns != 0 &&
      (in.values.size() / in.columns != in.rows || in.values.size() % in.columns != 0)) {
    refuse(recipe, std::to_string(in.values.size()) + " values are no tensor of " +
                       extent(in.rows, in.columns));
  }
  check_quantise(recipe, in.rows, in.columns, options);
  const FloatEnvironment environment(RoundingControl::nearest);
  if (!options.by_columns && !recipe.hadamard) {
    return quantise_rows(recipe, in, options, vectors, out);
  }
  Matrix changed = in;
  if (options.by_columns) std::swap(changed.rows, changed.columns);
  std::vector<float> own = options.by_columns
                               ? transposed(in.values, in.rows, in.columns)
                               : std::vector<float>(in.values.begin(), in.values.end());
  if (recipe.hadamard) hadamard(own, options.type);
  changed.values = own;
  quantise_rows(recipe, changed, options, vectors, out);
  if (!options.by_columns) return;
  const auto turn = [](auto& values, std::size_t rows, std::size_t columns) {
    values = transposed(std::span(std::as_const(values)), rows, columns);
  };
  turn(out.codes, changed.rows, changed.columns);
  if (options.scaled != nullptr) turn(*options.scaled, changed.rows, changed.columns);
  turn(out.scales, out.scale_rows, out.scale_columns);
  std::swap(out.scale_rows, out.scale_columns);
}

}  // namespace

void check_quantise(const Recipe& recipe, std::size_t rows, std::size_t columns,
                    const QuantiseOptions& options) {
  const std::size_t last = options.by_columns ? rows : columns;
  if (last % recipe.multiple_of != 0) {
    refuse(recipe, std::string(options.by_columns ? "the number of rows" : "the last dimension") +
                       " is " + std::to_string(last) + ", and must be a multiple of " +
                       std::to_string(recipe.multiple_of));
  }
  const bool has_history = recipe.second == SecondScale::history;
  if (has_history && !options.history) {
    refuse(recipe, "the largest magnitude of earlier steps is missing");
  }
  if (!options.history) return;
  if (!has_history) {
    refuse(recipe,
           "the largest magnitude of earlier steps is given, but only recipes with delayed scaling "
           "use it; leave it out");
  }
  if (!(*options.history >= 0 && *options.history <= double{kFloatMax})) {
    refuse(recipe, "the largest magnitude of earlier steps must be finite and not negative");
  }
}

Grid grid_of(const Recipe& recipe, std::size_t rows, std::size_t columns, bool by_columns) {
  if (recipe.scale == ScaleFormat::none) return {};
  Shape block = recipe.block;
  if (block == Shape{0, 0}) return {1, 1};
  if (by_columns) std::swap(block.rows, block.columns);
  return {(rows + block.rows - 1) / block.rows, (columns + block.columns - 1) / block.columns};
}

std::size_t second_count(const Recipe& recipe, std::size_t rows, std::size_t columns,
                         bool by_columns) {
  if (recipe.second == SecondScale::tensor) return 1;
  if (recipe.second != SecondScale::row) return 0;
  return by_columns ? columns : rows;
}

Quantised quantise(const Recipe& recipe, const Matrix& in, const QuantiseOptions& options) {
  Quantised out;
  run(recipe, in, options, true, out);
  return out;
}

void quantise(const Recipe& recipe, const Matrix& in, const QuantiseOptions& options,
              Quantised& out) {
  run(recipe, in, options, true, out);
}

Quantised quantise_scalar(const Recipe& recipe, const Matrix& in, const QuantiseOptions& options) {
  Quantised out;
  run(recipe, in, options, false, out);
  return out;
}

}  // namespace halfscope::block
