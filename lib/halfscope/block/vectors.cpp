// SPDX-License-Identifier: Apache-2.0
#include "halfscope/block/vectors.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "halfscope/block/scale.hpp"
#include "halfscope/number/random.hpp"

namespace halfscope::block {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr std::uint32_t kLargestBits = 0x7F7FFFFF;

/// Builds the cases of one recipe. `width`: the columns of its blocks.
class Cases {
 public:
  explicit Cases(const Recipe& recipe)
      : recipe_(recipe), width_(recipe.block.columns == 0 ? 32 : recipe.block.columns) {}

  std::vector<VectorCase> all() {
    add_zeros();
    add_single();
    add_ties();
    add_thresholds();
    add_specials();
    add_ordinary();
    if (recipe_.multiple_of == 1) add_odd_sizes();
    return std::move(cases_);
  }

 private:
  /// Adds blocks: below each other, or in a single row if a block has several rows.
  void add_blocks(std::string name, std::vector<float> values) {
    const std::size_t columns = recipe_.block.rows > 1 ? values.size() : width_;
    add(std::move(name), std::move(values), columns);
  }

  void add(std::string name, std::vector<float> values, std::size_t columns) {
    const std::size_t rows = values.size() / columns;
    cases_.push_back({std::move(name), rows, columns, std::move(values)});
  }

  /// A largest magnitude of the tensor that makes NVFP4's second scale 1: every block scale is then
  /// its largest magnitude over 6.
  float range() const { return nvfp4_range(recipe_.formula); }

  std::vector<float> block_of(float value) const { return std::vector<float>(width_, value); }
  static void append(std::vector<float>& to, const std::vector<float>& block) {
    to.insert(to.end(), block.begin(), block.end());
  }

  void add_zeros() {
    std::vector<float> values = block_of(0);
    append(values, block_of(-0.0F));
    add("zeros", values, 2 * width_);
    append(values, block_of(1.0F));
    append(values, block_of(-1.0F));
    add("zeros-beside-ones", std::move(values), 4 * width_);
  }

  /// Blocks with one number, of each binade.
  void add_single() {
    std::vector<float> values;
    for (int exponent = -149; exponent <= 127; exponent += 4) {
      std::vector<float> block = block_of(0);
      block[static_cast<std::size_t>(exponent + 149) % width_] = std::ldexp(1.25F, exponent);
      append(values, block);
    }
    add_blocks("one-number", std::move(values));
  }

  /// The middle between each two elements and the numbers beside it, in blocks whose scale is 1 or
  /// another power of two.
  void add_ties() {
    const float largest = largest_of(recipe_.element);
    const SecondFactors second = second_factors(recipe_, range());
    const float factor = block_factor(recipe_, second, steps::bits_of(largest)).factor;
    const float unit = divides(recipe_.formula) ? factor : 1 / factor;
    std::vector<float> values;
    const int codes = 1 << (width_of(recipe_.element) - 1);
    for (int code = 0; code + 1 < codes; ++code) {
      const float low = decode(recipe_.element, static_cast<std::uint8_t>(code));
      const float high = decode(recipe_.element, static_cast<std::uint8_t>(code + 1));
      if (!std::isfinite(low) || !std::isfinite(high)) continue;
      const float middle = (low + high) / 2 * unit;
      for (const float x : {middle, std::nextafter(middle, 0.0F), std::nextafter(middle, kInf)}) {
        for (const float y : {x, -x}) {
          if (values.size() % width_ == 0) values.push_back(largest);
          values.push_back(y);
        }
      }
    }
    values.resize((values.size() + width_ - 1) / width_ * width_);
    if (recipe_.second != SecondScale::none) append(values, block_of(range()));
    add_blocks("ties", std::move(values));
  }

  /// The largest magnitudes at which the stored scale changes, and those beside them, each in a
  /// block with a third and a seventh of it.
  void add_thresholds() {
    if (recipe_.scale == ScaleFormat::none || recipe_.block.rows == 0) return;
    const SecondFactors second = second_factors(recipe_, range());
    const auto stored = [&](std::uint32_t magnitude) {
      return block_factor(recipe_, second, magnitude).stored;
    };
    std::vector<float> values;
    const bool continuous =
        recipe_.scale == ScaleFormat::f32 && stored(0x3F800000) != stored(0x3F800001);
    const std::uint32_t last =
        recipe_.second != SecondScale::none ? steps::bits_of(range()) : kLargestBits;
    for (std::uint32_t at = 1; at < last && !continuous;) {
      const std::uint32_t next = next_change(stored, at, last);
      for (const std::uint32_t magnitude : {next - 1, next, next + 1}) {
        const float b = steps::float_of(std::min(magnitude, kLargestBits));
        std::vector<float> block = block_of(0);
        block[0] = b;
        block[1] = -b / 3;
        block[width_ - 1] = b / 7;
        append(values, block);
      }
      at = next;
    }
    if (recipe_.second != SecondScale::none) append(values, block_of(range()));
    if (!values.empty()) add_blocks("thresholds", std::move(values));
  }

  /// Returns the smallest magnitude above `at` with another stored scale, or `last`.
  template <class Stored>
  static std::uint32_t next_change(const Stored& stored, std::uint32_t at, std::uint32_t last) {
    const std::uint32_t now = stored(at);
    std::uint32_t low = at, high = last;
    while (high - low > 1) {
      const std::uint32_t middle = low + (high - low) / 2;
      (stored(middle) == now ? low : high) = middle;
    }
    return high;
  }

  void add_specials() {
    constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
    const float specials[] = {
        kInf, -kInf, kNan, -kNan, 0x1p-149F, -0x1p-149F, steps::float_of(kLargestBits), 0x1p-126F};
    for (const float special : specials) {
      std::vector<float> values = block_of(0.75F);
      values[3] = special;
      append(values, block_of(-1.5F));
      cases_.push_back({"special-" + std::to_string(cases_.size()), 1, 2 * width_, values});
    }
  }

  /// Random numbers of about one size a row.
  std::vector<float> ordinary(std::size_t rows, std::size_t columns) const {
    std::vector<float> out;
    for (std::size_t i = 0; i < rows * columns; ++i) {
      const std::uint32_t word = random_word(51, i);
      const float uniform = static_cast<float>(static_cast<std::int32_t>(word)) * 0x1p-31F;
      out.push_back(std::ldexp(uniform * uniform * uniform, -static_cast<int>(i / columns)));
    }
    return out;
  }

  void add_ordinary() {
    const std::size_t rows = std::max<std::size_t>(16, recipe_.block.rows);
    add("ordinary", ordinary(rows, 2 * width_), 2 * width_);
  }

  void add_odd_sizes() {
    for (const std::size_t columns : {std::size_t{1}, width_ - 1, width_ + 1}) {
      add("odd-" + std::to_string(columns), ordinary(3, columns), columns);
    }
  }

  const Recipe& recipe_;
  std::size_t width_;
  std::vector<VectorCase> cases_;
};

}  // namespace

std::vector<VectorCase> vector_cases(const Recipe& recipe) { return Cases(recipe).all(); }

}  // namespace halfscope::block
