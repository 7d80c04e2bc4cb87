// SPDX-License-Identifier: Apache-2.0
#include "halfscope/block/conform.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <stdexcept>
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
  /// neither neighbour of the value.
  bool add(float y, std::uint8_t code) {
    const double size = std::abs(static_cast<double>(y));
    const double found = std::abs(static_cast<double>(decode(element_, code)));
    if (!(size < magnitudes_.back())) return true;  // saturated, or NaN
    if (found != 0 && std::signbit(y) != std::signbit(decode(element_, code))) return false;
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

/// How an output differs from a recipe. For a recipe that rounds at random, codes that are neither
/// neighbour of their value differ.
struct Measured {
  Difference difference;
  std::optional<Randomness> randomness;
};

Measured measure(const Recipe& recipe, const Matrix& in, const Quantised& found,
                 QuantiseOptions options) {
  if (recipe.rounding != ElementRounding::random) {
    return {difference(recipe, quantise(recipe, in, options), found), std::nullopt};
  }
  std::vector<float> scaled;
  options.scaled = &scaled;
  Quantised wanted = quantise(recipe, in, options);
  RandomnessTest test(recipe.element);
  for (std::size_t i = 0; i < scaled.size(); ++i) {
    const bool possible = test.add(scaled[i], found.codes[i]);
    // The code of another sign differs in any case: code 0 stands for a difference.
    wanted.codes[i] = found.codes[i] ^ (possible ? 0 : 1);
  }
  return {difference(recipe, wanted, found), test.finish()};
}

/// Returns true if a recipe's scales of this tensor have the shape of `found`.
bool same_grid(const Recipe& recipe, const Matrix& in, bool by_columns, const Quantised& found) {
  const Grid grid = grid_of(recipe, in.rows, in.columns, by_columns);
  return grid.rows == found.scale_rows && grid.columns == found.scale_columns;
}

/// A recipe with one word changed, and the call of it.
struct Candidate {
  Cause cause;
  std::string changed;
  Recipe recipe;
  bool by_columns;
};

/// Collects the candidates that lead to an output of the same shape.
class Candidates {
 public:
  Candidates(const Recipe& recipe, bool by_columns) : recipe_(recipe), by_columns_(by_columns) {
    add_words();
    add_formulas();
    add_dialects();
  }
  const std::vector<Candidate>& all() const { return all_; }

 private:
  void add(Cause cause, std::string changed, const std::function<void(Recipe&)>& change) {
    Candidate out = {cause, std::move(changed), recipe_, by_columns_};
    out.recipe.multiple_of = 1;
    change(out.recipe);
    all_.push_back(std::move(out));
  }

  void add_dialects() {
    for (const Recipe& other : recipes()) {
      if (other.dialect_of.empty() || other.element != recipe_.element ||
          other.block != recipe_.block || other.scale != recipe_.scale) {
        continue;
      }
      add(Cause::dialect, std::string(other.name), [&](Recipe& r) { r = other; });
    }
  }

  /// The recipes that differ in their formula alone.
  void add_formulas() {
    for (const Recipe& other : recipes()) {
      Recipe same = recipe_;
      same.formula = other.formula;
      if (other.dialect_of.empty() && other.element == same.element && other.block == same.block &&
          other.scale == same.scale && other.formula != recipe_.formula &&
          other.second == same.second) {
        add(Cause::formula, std::string(other.name), [&](Recipe& r) { r.formula = other.formula; });
      }
    }
  }

  void add_words() {
    for (const float least : {1e-4F, 1e-12F, 1e-10F, 1e-30F}) {
      add(Cause::least, least_text(least), [&](Recipe& r) { r.least = least; });
    }
    if (recipe_.rounding == ElementRounding::ties_to_even) {
      add(Cause::ties, "away from zero",
          [](Recipe& r) { r.rounding = ElementRounding::ties_to_away; });
      add(Cause::ties, "toward zero",
          [](Recipe& r) { r.rounding = ElementRounding::ties_to_zero; });
    }
    if (recipe_.second == SecondScale::tensor || recipe_.second == SecondScale::row) {
      add(Cause::no_second_scale, "", [](Recipe& r) { r.second = SecondScale::none; });
    }
    add(Cause::no_saturation, "", [](Recipe& r) { r.saturate = false; });
    add(Cause::hadamard, recipe_.hadamard ? "without" : "with",
        [](Recipe& r) { r.hadamard = !r.hadamard; });
    add_shapes();
  }

  /// Other block shapes and directions, whose scales may have the same number.
  void add_shapes() {
    const Shape& shape = recipe_.block;
    if (shape.rows == 0) return;
    if (shape.rows == shape.columns) {
      add(Cause::block, "1 x " + std::to_string(shape.columns),
          [](Recipe& r) { r.block.rows = 1; });
    } else {
      add(Cause::block, std::to_string(shape.columns) + " x " + std::to_string(shape.columns),
          [](Recipe& r) { r.block.rows = r.block.columns; });
      add(Cause::columns, "", [](Recipe&) {});
      all_.back().by_columns = !by_columns_;
    }
  }

  static std::string least_text(float least) {
    return least == 1e-4F    ? "1e-4"
           : least == 1e-12F ? "1e-12"
           : least == 1e-10F ? "1e-10"
                             : "1e-30";
  }

  const Recipe& recipe_;
  bool by_columns_;
  std::vector<Candidate> all_;
};

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
  if (out.difference.second && has_reciprocal_second(quantise(recipe, in, options), found)) {
    Difference left = out.difference;
    left.second = false;
    best.offer(Cause::reciprocal, "the tensor's scale", left);
  }
  const std::vector<float> rounded = through_bfloat16(in.values);
  best.offer(Cause::input, "",
             measure(recipe, {rounded, in.rows, in.columns}, found, options).difference);
  const Candidates candidates(recipe, options.by_columns);
  for (const Candidate& candidate : candidates.all()) {
    QuantiseOptions how = options;
    how.by_columns = candidate.by_columns;
    if (candidate.recipe.hadamard && (how.by_columns ? in.rows : in.columns) % 16 != 0) continue;
    if (!same_grid(candidate.recipe, in, how.by_columns, found)) continue;
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
    const bool threshold = out.randomness->has_threshold();
    out.cause = !threshold && out.randomness->biased() ? Cause::biased : Cause::not_random;
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
  out.second =
      !found.second.empty() && !std::ranges::equal(wanted.second, found.second, same_float);
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
  const Measured measured = measure(recipe, in, found, options);
  Conformity out;
  out.difference = measured.difference;
  out.randomness = measured.randomness;
  if (!out.difference.equal()) {
    find_cause(recipe, in, found, options, out);
  } else if (out.randomness) {
    judge_randomness(recipe, in, found, options, out);
  }
  return out;
}

}  // namespace halfscope::block
