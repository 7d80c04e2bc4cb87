// SPDX-License-Identifier: Apache-2.0
#include "analyzers/formats/recipe_noise.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <numbers>

#include "analyzers/frames/elements.hpp"
#include "halfscope/block/hadamard.hpp"
#include "halfscope/block/quantise.hpp"
#include "halfscope/number/random.hpp"

namespace halfscope::analyzers::formats {

using frames::ProgressCallback;
using frames::WholeTensor;
using log::Role;
using underflow::RecipeFit;

namespace {

constexpr std::size_t kPart = std::size_t{1} << 20;  // values; a multiple of every block's length

/// Values of an element's codes, and the gaps to the next smaller and the next larger magnitude;
/// for zero and the largest both are the one that exists.
struct ElementTable {
  std::array<double, 256> value{}, below{}, above{};
  double largest = 0;
  double overflow = 40960;  ///< HiFloat8's: from here on no element is nearest

  explicit ElementTable(block::Element element) {
    std::vector<double> all;
    for (unsigned code = 0; code < 256 && code < 1U << block::width_of(element); ++code) {
      value[code] = block::decode(element, static_cast<std::uint8_t>(code));
      if (std::isfinite(value[code])) all.push_back(std::abs(value[code]));
    }
    std::ranges::sort(all);
    all.erase(std::unique(all.begin(), all.end()), all.end());
    largest = all.back();
    const Format format = block::format_of(element);
    if (format.precision != 0) overflow = to_double(boundaries(format).overflow);
    for (std::size_t code = 0; code < value.size(); ++code) {
      const auto at = std::ranges::lower_bound(all, std::abs(value[code]));
      if (!std::isfinite(value[code])) continue;
      below[code] = at == all.begin() ? at[1] - *at : *at - at[-1];
      above[code] = at + 1 == all.end() ? *at - at[-1] : at[1] - *at;
    }
  }
};

/// Sums over a part of a tensor.
struct Part {
  std::uint64_t values = 0, flushed = 0, saturated = 0, at_largest = 0, in_nan = 0, rounded = 0;
  CompensatedSum signal, noise, bias, bias_squares;

  /// Adds values of one block, in one row. scale: all its scales together.
  void add(const ElementTable& element, std::span<const float> x, const std::uint8_t* codes,
           double scale) {
    for (std::size_t first = 0; first < x.size(); first += kPartElements) {
      const std::size_t n = std::min(kPartElements, x.size() - first);
      add_some(element, x.subspan(first, n), codes + first, scale);
    }
  }

 private:
  void add_some(const ElementTable& element, std::span<const float> x, const std::uint8_t* codes,
                double scale) {
    double squares = 0, errors = 0, gaps = 0, gap_squares = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double value = std::abs(static_cast<double>(x[i]));
      const double unit = std::abs(element.value[codes[i]]);
      if (!std::isfinite(unit)) {
        in_nan += value != 0;
        continue;
      }
      const double error = unit * scale - value;
      values += value != 0;
      flushed += value != 0 && unit * scale == 0;
      squares += value * value;
      errors += error * error;
      if (scale == 0) continue;
      at_largest += unit == element.largest;
      saturated += value >= element.overflow * scale;
      if (value == 0) continue;
      const double gap = error > 0 ? element.below[codes[i]] : element.above[codes[i]];
      ++rounded;
      gaps += error / (gap * scale);
      gap_squares += error / (gap * scale) * (error / (gap * scale));
    }
    signal.add(squares);
    noise.add(errors);
    bias.add(gaps);
    bias_squares.add(gap_squares);
  }
};

/// A tensor as a matrix, in pieces that are quantised one at a time.
struct Pieces {
  std::size_t rows = 0, columns = 0;  ///< extent of the tensor
  std::size_t piece_rows, piece_columns;
  std::size_t across = 1, count = 0;  ///< pieces beside each other; of all

  Pieces(const block::Recipe& recipe, const WholeTensor& tensor, bool by_columns) {
    columns = tensor.shape.empty() ? 1 : static_cast<std::size_t>(tensor.shape.back());
    rows = columns == 0 ? 0 : tensor.view.count / columns;
    piece_rows = rows;
    piece_columns = columns;
    if (rows == 0) return;
    // Only blocks of one row below no other scale do not depend on the rest of the tensor.
    if (!by_columns && recipe.block.rows == 1 && recipe.second == block::SecondScale::none) {
      piece_columns = std::min(columns, kPart);
      piece_rows = std::min(rows, std::max<std::size_t>(1, kPart / columns));
    }
    across = (columns + piece_columns - 1) / piece_columns;
    count = across * ((rows + piece_rows - 1) / piece_rows);
  }
  std::size_t first_row(std::size_t i) const { return i / across * piece_rows; }
  std::size_t first_column(std::size_t i) const { return i % across * piece_columns; }
  std::size_t rows_of(std::size_t i) const { return std::min(piece_rows, rows - first_row(i)); }
  std::size_t columns_of(std::size_t i) const {
    return std::min(piece_columns, columns - first_column(i));
  }
  std::size_t start(std::size_t i) const { return first_row(i) * columns + first_column(i); }
  std::size_t size(std::size_t i) const { return rows_of(i) * columns_of(i); }
};

/// Returns the type of the values for block::QuantiseOptions::type.
Format type_of(Dtype type) {
  return type == Dtype::f16 || type == Dtype::bf16 ? format_of(type) : kBinary32;
}

/// Quantises a matrix and compares it with itself.
Part compare(const block::Recipe& asked, const ElementTable& element, std::vector<float> x,
             std::size_t rows, std::size_t columns, const block::QuantiseOptions& options) {
  block::Recipe recipe = asked;
  if (recipe.hadamard) block::hadamard(x, options.type);
  recipe.hadamard = false;  // errors are those of the transformed values
  const block::Quantised q = block::quantise(recipe, {x, rows, columns}, options);
  const std::size_t height = recipe.block.rows == 0 ? rows : recipe.block.rows;
  const std::size_t width = recipe.block.columns == 0 ? columns : recipe.block.columns;
  const std::size_t across = (columns + width - 1) / width;
  const auto block_at = [&](std::size_t r, std::size_t c) {
    return r / height * across + c / width;
  };
  const auto row_part = [&](std::size_t r, std::size_t c) {
    return std::span(x).subspan(r * columns + c, std::min(width, columns - c));
  };
  std::vector<bool> finite((rows + height - 1) / height * across, true);
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < columns; c += width) {
      if (!std::ranges::all_of(row_part(r, c), [](float v) { return std::isfinite(v); })) {
        finite[block_at(r, c)] = false;
      }
    }
  }
  Part sums;
  for (std::size_t r = 0; r < rows; ++r) {
    const double second = q.second.empty() ? 1 : q.second[q.second.size() == 1 ? 0 : r];
    for (std::size_t c = 0; c < columns; c += width) {
      const std::size_t block = block_at(r, c);
      const double scale =
          q.scales.empty() ? 1 : second * block::scale_value(recipe.scale, q.scales[block]);
      const std::span<const float> values = row_part(r, c);
      if (finite[block] && std::isfinite(scale)) {
        sums.add(element, values, q.codes.data() + r * columns + c, scale);
      } else {
        sums.in_nan += static_cast<std::uint64_t>(
            std::ranges::count_if(values, [](float v) { return std::isfinite(v) && v != 0; }));
      }
    }
  }
  return sums;
}

/// unscale: squares of unscaled values over those of recorded ones.
void join(RecipeSums& sums, const Part& part, double unscale) {
  sums.fit.values += part.values;
  sums.fit.flushed_to_zero += part.flushed;
  sums.fit.saturated += part.saturated;
  sums.fit.at_largest += part.at_largest;
  sums.fit.in_nan_blocks += part.in_nan;
  sums.rounded += part.rounded;
  sums.signal.add(part.signal.value() * unscale);
  sums.noise.add(part.noise.value() * unscale);
  sums.bias.add(part.bias.value());
  sums.bias_squares.add(part.bias_squares.value());
}

RecipeSums sums_for(std::string_view asked, const block::Recipe& recipe, bool columns) {
  RecipeSums sums;
  sums.fit.recipe = &recipe;
  sums.fit.asked = asked;
  sums.fit.columns = columns;
  return sums;
}

/// Returns true if an orientation of a recipe's blocks makes a difference.
bool has_orientation(const block::Recipe& recipe) {
  return recipe.block.rows != recipe.block.columns || recipe.hadamard;
}

/// Returns 2^18 normal numbers, by Box and Muller's transform of counted random words.
std::vector<float> normal_numbers() {
  std::vector<float> out(std::size_t{1} << 18);
  const auto uniform = [](std::uint64_t i) { return (random_word(1, i) + 0.5) * 0x1p-32; };
  for (std::size_t i = 0; i < out.size(); ++i) {
    const double radius = std::sqrt(-2 * std::log(uniform(2 * i)));
    out[i] = static_cast<float>(radius * std::cos(2 * std::numbers::pi * uniform(2 * i + 1)));
  }
  return out;
}

}  // namespace

RecipeFit RecipeSums::finished() const {
  RecipeFit out = fit;
  out.noise = exact_ratio(signal.value(), noise.value());
  if (rounded == 0) return out;
  const auto n = static_cast<double>(rounded);
  out.bias = bias.value() / n;
  const double variance = std::max(0.0, bias_squares.value() / n - out.bias * out.bias);
  out.bias_error = std::sqrt(variance / n);
  return out;
}

void add_recipe(RecipeSums& sums, const WholeTensor& tensor, int threads,
                const ProgressCallback& tell) {
  const block::Recipe& recipe = *sums.fit.recipe;
  const bool columns = sums.fit.columns;
  const Pieces pieces(recipe, tensor, columns);
  if ((columns ? pieces.rows : pieces.columns) % recipe.multiple_of != 0) {
    sums.fit.not_allowed = true;
    return;
  }
  const ElementTable element(recipe.element);
  const block::QuantiseOptions options = {.seed = static_cast<std::uint64_t>(tensor.step),
                                          .type = type_of(tensor.view.dtype),
                                          .threads = pieces.count > 1 ? 1 : threads};
  const auto work = [&](std::size_t i) {
    const std::size_t rows = pieces.rows_of(i), width = pieces.columns_of(i);
    const std::vector<double> recorded =
        frames::elements(tensor.view, pieces.start(i), pieces.size(i));
    std::vector<float> x(recorded.size());
    std::ranges::transform(recorded, x.begin(), [](double v) { return static_cast<float>(v); });
    std::uint64_t vanished = 0;  // binary64 values that are zero in binary32
    for (std::size_t k = 0; k < x.size(); ++k) vanished += x[k] == 0 && recorded[k] != 0;
    Part part = columns ? compare(recipe, element, block::transposed<float>(x, rows, width), width,
                                  rows, options)
                        : compare(recipe, element, std::move(x), rows, width, options);
    part.values += vanished;
    part.flushed += vanished;
    return part;
  };
  std::size_t done = 0;
  const auto next = [&](const Part& part) {
    join(sums, part, 1 / (tensor.scale * tensor.scale));
    if (tell) tell(static_cast<double>(++done) / static_cast<double>(pieces.count));
  };
  const auto same = [&](std::size_t i) {
    return pieces.size(i) == pieces.size(i - 1) &&
           pieces.columns_of(i) == pieces.columns_of(i - 1) &&
           frames::same_bytes(tensor.view, pieces.start(i), pieces.start(i - 1), pieces.size(i));
  };
  frames::in_order<Part>(pieces.count, threads, work, next, same);
}

std::vector<RecipeSums> mx_sums() {
  std::vector<RecipeSums> out;
  for (const std::string_view name : kMxRecipes) {
    out.push_back(sums_for(name, block::recipe_named(name), false));
  }
  return out;
}

namespace {

/// Returns what the recipe does to normal numbers. Computed at the first call.
RecipeFit normal_fit(const block::Recipe& recipe) {
  static std::mutex mutex;
  static std::map<const block::Recipe*, RecipeFit> known;
  const std::lock_guard lock(mutex);
  const auto [found, is_new] = known.try_emplace(&recipe);
  if (!is_new) return found->second;
  static const std::vector<float> numbers = normal_numbers();
  WholeTensor tensor;
  tensor.shape = {numbers.size() / 1024, 1024};
  tensor.view = view_of(std::span(numbers));
  RecipeSums sums = sums_for(recipe.name, recipe, false);
  add_recipe(sums, tensor, 1);  // one thread: the lock is held
  return found->second = sums.finished();
}

}  // namespace

std::vector<RecipeSums> recipe_sums(std::span<const RecipeChoice> choices, Role role) {
  std::vector<RecipeSums> out;
  for (const RecipeChoice& choice : choices) {
    for (const bool columns : {false, true}) {
      const block::Recipe* const recipe = choice.of(role, columns);
      if (recipe == nullptr) continue;
      if (columns && !has_orientation(*recipe) && recipe == choice.of(role, false)) continue;
      out.push_back(sums_for(choice.name, *recipe, columns));
      out.back().fit.product = product_of(role, columns);
      const RecipeFit normal = normal_fit(*recipe);
      out.back().fit.normal_db = normal.noise->db;
      out.back().fit.normal_zero = normal.zero_share();
    }
  }
  return out;
}

}  // namespace halfscope::analyzers::formats
