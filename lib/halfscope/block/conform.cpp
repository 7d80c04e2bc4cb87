// SPDX-License-Identifier: Apache-2.0
#include "halfscope/block/conform.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "halfscope/array/array.hpp"

namespace halfscope::block {
namespace {

bool is_nan_code(Element element, std::uint8_t code) { return std::isnan(decode(element, code)); }

bool same_scale(ScaleFormat format, std::uint32_t a, std::uint32_t b) {
  return a == b || (std::isnan(scale_value(format, a)) && std::isnan(scale_value(format, b)));
}

bool same_float(float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); }

/// Tests elements of one format against the values that were rounded.
class RandomnessTest {
 public:
  explicit RandomnessTest(Element element) : element_(element) {
    const int n = 1 << (width_of(element) - 1);
    for (int code = 0; code < n; ++code) {
      const float value = decode(element, static_cast<std::uint8_t>(code));
      if (std::isfinite(value)) magnitudes_.push_back(value);
    }
  }

  /// Adds an element. y: the scaled value that was rounded to it. Returns false if the element is
  /// neither neighbour of the value. Recipes that round at random saturate.
  bool add(float y, std::uint8_t code) {
    if (std::isnan(y)) return code == encode(element_, y);
    if (code >> width_of(element_) != 0) return false;
    const float decoded = decode(element_, code);
    if (std::signbit(y) != std::signbit(decoded)) return false;
    const double size = std::abs(static_cast<double>(y));
    const double found = std::abs(static_cast<double>(decoded));
    if (size >= magnitudes_.back()) return found == magnitudes_.back();
    const auto above = std::ranges::upper_bound(magnitudes_, size);
    const double low = *(above - 1), high = *above;
    if (size == low || (found != low && found != high)) return found == low;
    const double p = (size - low) / (high - low);
    const auto range = static_cast<std::size_t>(p * 16);
    ++out_.values;
    const bool up = found == high;
    if (up) {
      ++out_.up;
      out_.lowest_up = std::min(out_.lowest_up, p);
    } else {
      out_.highest_down = std::max(out_.highest_down, p);
    }
    expected_[range] += p;
    variance_[range] += p * (1 - p);
    up_[range] += up ? 1 : 0;
    return true;
  }

  Randomness finish() {
    double variance = 0;
    for (std::size_t i = 0; i < 16; ++i) {
      out_.expected += expected_[i];
      variance += variance_[i];
      const double off = up_[i] - expected_[i];
      if (variance_[i] > 0) out_.chi_squared += off * off / variance_[i];
    }
    out_.sigma = std::sqrt(variance);
    return out_;
  }

 private:
  Element element_;
  std::vector<double> magnitudes_;
  std::array<double, 16> expected_{}, variance_{}, up_{};
  Randomness out_;
};

/// Returns the differences of an output from a recipe. For a recipe that rounds at random, codes
/// that are neither neighbour of their value differ.
Conformity measure(const Recipe& recipe, const Matrix& in, const Quantised& found,
                   QuantiseOptions options) {
  Conformity out;
  std::vector<float> scaled;
  if (recipe.rounding == ElementRounding::random) options.scaled = &scaled;
  out.wanted = quantise(recipe, in, options);
  if (recipe.rounding != ElementRounding::random) {
    out.difference = difference(recipe, out.wanted, found);
    return out;
  }
  Quantised wanted = out.wanted;
  RandomnessTest test(recipe.element);
  for (std::size_t i = 0; i < scaled.size(); ++i) {
    const bool possible = test.add(scaled[i], found.codes[i]);
    // Another code than the one that was found stands for a difference.
    wanted.codes[i] = found.codes[i] ^ (possible ? 0 : 1);
  }
  out.difference = difference(recipe, wanted, found);
  out.randomness = test.finish();
  return out;
}

/// A recipe with one word changed, or a dialect, and the direction of its blocks.
struct Candidate {
  Cause cause;
  std::string changed;
  Recipe recipe;
  bool by_columns;
};
using Change = std::function<void(Recipe&)>;
using AddCandidate = std::function<void(Cause, std::string_view changed, const Change&)>;

void add_words(const Recipe& recipe, const AddCandidate& add) {
  constexpr std::pair<float, std::string_view> kLeast[] = {
      {1e-4F, "1e-4"}, {1e-12F, "1e-12"}, {1e-10F, "1e-10"}, {1e-30F, "1e-30"}};
  for (const auto& [least, text] : kLeast) {
    add(Cause::least, text, [least = least](Recipe& r) { r.least = least; });
  }
  if (recipe.rounding == ElementRounding::ties_to_even) {
    add(Cause::ties, "away from zero",
        [](Recipe& r) { r.rounding = ElementRounding::ties_to_away; });
    add(Cause::ties, "toward zero", [](Recipe& r) { r.rounding = ElementRounding::ties_to_zero; });
  }
  if (recipe.second == SecondScale::tensor || recipe.second == SecondScale::row) {
    add(Cause::no_second_scale, "", [](Recipe& r) { r.second = SecondScale::none; });
  }
  add(Cause::no_saturation, "", [](Recipe& r) { r.saturate = false; });
  add(Cause::hadamard, recipe.hadamard ? "without" : "with",
      [](Recipe& r) { r.hadamard = !r.hadamard; });
  const std::uint32_t width = recipe.block.columns;
  const std::uint32_t height = recipe.block.rows == width ? 1 : width;
  if (width == 0) return;
  add(Cause::block, std::to_string(height) + " x " + std::to_string(width),
      [height](Recipe& r) { r.block.rows = height; });
}

/// Returns all candidates; of those that explain as much the first is named.
std::vector<Candidate> candidates(const Recipe& recipe, bool by_columns) {
  std::vector<Candidate> out;
  const auto add = [&](Cause cause, std::string_view changed, const Change& change) {
    out.push_back({cause, std::string(changed), recipe, by_columns});
    change(out.back().recipe);
    out.back().recipe.multiple_of = 1;
  };
  add_words(recipe, add);
  if (recipe.block.rows != recipe.block.columns) {
    add(Cause::columns, "", [](Recipe&) {});
    out.back().by_columns = !by_columns;
  }
  for (const Recipe& other : recipes()) {
    if (other.element != recipe.element || other.block != recipe.block ||
        other.scale != recipe.scale) {
      continue;
    }
    if (!other.dialect_of.empty()) {
      add(Cause::dialect, other.name, [&](Recipe& r) { r = other; });
    } else if (other.formula != recipe.formula && other.second == recipe.second) {
      add(Cause::formula, other.name, [&](Recipe& r) { r.formula = other.formula; });
    }
  }
  // A library's own eps or ties are part of its dialect.
  std::stable_partition(out.begin(), out.end(), [](const Candidate& candidate) {
    return candidate.cause != Cause::least && candidate.cause != Cause::ties;
  });
  return out;
}

/// Keeps the explanation that leaves the fewest differences.
struct Best {
  Conformity& out;

  void offer(Cause cause, const std::string& changed, const Difference& left) {
    const std::uint64_t now = out.cause == Cause::none ? out.difference.total() : out.left.total();
    if (left.total() >= now) return;
    out.cause = cause;
    out.changed = changed;
    out.left = left;
  }
};

Quantised with_nibbles_exchanged(const Quantised& in, std::size_t columns) {
  Quantised out = in;
  for (std::size_t i = 0; i + 1 < out.codes.size(); ++i) {
    if (i % columns % 2 == 0 && i % columns + 1 < columns) {
      std::swap(out.codes[i], out.codes[i + 1]);
    }
  }
  return out;
}

Quantised with_reciprocals(const Quantised& in) {
  Quantised out = in;
  for (std::uint32_t& scale : out.scales) scale = steps::bits_of(1 / steps::float_of(scale));
  return out;
}

/// Returns true if the second scales are the reciprocals of those wanted, but for a last place.
bool has_reciprocal_second(const Quantised& wanted, const Quantised& found) {
  return std::ranges::equal(wanted.second, found.second, [](float a, float b) {
    return std::abs(static_cast<double>(a) * static_cast<double>(b) - 1) < 0x1p-22;
  });
}

std::vector<float> through_bfloat16(std::span<const float> values) {
  std::vector<float> out(values.begin(), values.end());
  quantise(kBfloat16, out, {.threads = 1});
  return out;
}

/// Finds what explains most of the differences.
void find_cause(const Recipe& recipe, const Matrix& in, const Quantised& found,
                const QuantiseOptions& options, Conformity& out) {
  Best best = {out};
  if (out.difference.zero_signs == out.difference.codes && out.difference.codes != 0) {
    Difference left = out.difference;
    left.codes = 0;
    best.offer(Cause::zero_sign, "", left);
  }
  const auto offer = [&](Cause cause, const std::string& changed, const Quantised& output) {
    best.offer(cause, changed, measure(recipe, in, output, options).difference);
  };
  if (recipe.element == Element::e2m1) {
    offer(Cause::nibbles, "", with_nibbles_exchanged(found, in.columns));
  }
  if (recipe.scale == ScaleFormat::f32) {
    offer(Cause::reciprocal, "each scale", with_reciprocals(found));
  }
  if (out.difference.second != 0 && has_reciprocal_second(out.wanted, found)) {
    Difference left = out.difference;
    left.second = 0;
    best.offer(Cause::reciprocal, "the tensor's scale", left);
  }
  const std::vector<float> rounded = through_bfloat16(in.values);
  best.offer(Cause::input, "",
             measure(recipe, {rounded, in.rows, in.columns}, found, options).difference);
  for (const Candidate& candidate : candidates(recipe, options.by_columns)) {
    QuantiseOptions how = options;
    how.by_columns = candidate.by_columns;
    const Grid grid = grid_of(candidate.recipe, in.rows, in.columns, how.by_columns);
    if (grid.rows != found.scale_rows || grid.columns != found.scale_columns) continue;
    if (candidate.recipe.hadamard && (how.by_columns ? in.rows : in.columns) % 16 != 0) continue;
    best.offer(candidate.cause, candidate.changed,
               measure(candidate.recipe, in, found, how).difference);
  }
  if (2 * out.left.total() > out.difference.total()) {  // a coincidence
    out.cause = Cause::none;
    out.changed.clear();
  }
}

/// Sets the cause for elements that were not rounded at random, or not evenly.
void judge_randomness(const Recipe& recipe, const Matrix& in, const Quantised& found,
                      const QuantiseOptions& options, Conformity& out) {
  if (out.randomness->fits() || out.randomness->values == 0) return;
  Recipe nearest = recipe;
  nearest.rounding = ElementRounding::ties_to_even;
  if (measure(nearest, in, found, options).difference.codes == 0) {
    out.cause = Cause::nearest;
  } else {
    out.cause = out.randomness->has_threshold() ? Cause::not_random : Cause::biased;
  }
}

}  // namespace

Difference difference(const Recipe& recipe, const Quantised& wanted, const Quantised& found) {
  Difference out;
  for (std::size_t i = 0; i < wanted.scales.size(); ++i) {
    if (same_scale(recipe.scale, wanted.scales[i], found.scales[i])) continue;
    if (out.scales++ == 0) out.first_scale = i;
  }
  for (std::size_t i = 0; i < wanted.codes.size(); ++i) {
    const std::uint8_t a = wanted.codes[i], b = found.codes[i];
    if (a == b || (is_nan_code(recipe.element, a) && is_nan_code(recipe.element, b))) continue;
    if (out.codes++ == 0) out.first_code = i;
    if (decode(recipe.element, a) == 0 && decode(recipe.element, b) == 0) ++out.zero_signs;
  }
  for (std::size_t i = 0; i < found.second.size(); ++i) {
    if (i < wanted.second.size() && same_float(wanted.second[i], found.second[i])) continue;
    if (out.second++ == 0) out.first_second = i;
  }
  return out;
}

Conformity conform(const Recipe& recipe, const Matrix& in, const Quantised& found,
                   const QuantiseOptions& options) {
  const Grid grid = grid_of(recipe, in.rows, in.columns, options.by_columns);
  if (found.codes.size() != in.values.size() || found.scales.size() != grid.rows * grid.columns) {
    throw std::invalid_argument("recipe " + std::string(recipe.name) + ": the output has " +
                                std::to_string(found.codes.size()) + " codes and " +
                                std::to_string(found.scales.size()) + " scales, and must have " +
                                std::to_string(in.values.size()) + " and " +
                                std::to_string(grid.rows * grid.columns));
  }
  Conformity out = measure(recipe, in, found, options);
  if (!out.difference.equal()) {
    find_cause(recipe, in, found, options, out);
  } else if (out.randomness) {
    judge_randomness(recipe, in, found, options, out);
  }
  return out;
}

}  // namespace halfscope::block
