// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal/text_histogram.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "reports/answer/series.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::cli::terminal {
namespace {

using analyzers::underflow::Analysis;
using analyzers::underflow::BinadeCount;
using log::Role;
using reports::answer::Tensors;

constexpr int kMostRows = 32;
constexpr std::size_t kColumns = 80;

/// Weight and activation gradients; where there are none, all tensors.
Tensors tensors_of(const Analysis& analysis) {
  const Tensors all = reports::answer::all_tensors(analysis);
  Tensors gradients;
  std::copy_if(all.begin(), all.end(), std::back_inserter(gradients),
               [](const auto* t) { return log::is_gradient(t->role); });
  return gradients.empty() ? all : gradients;
}

/// The rows between two tails: `per_row` binades each.
struct Layout {
  int first = 0, end = 0, per_row = 1;
  bool below = false, above = false;  ///< whether there is a tail

  int rows() const {
    return (end - first + per_row - 1) / per_row + static_cast<int>(below) +
           static_cast<int>(above);
  }
};

/// As few binades a row as fit: first one, then with the smallest thousandth of the values in a
/// tail, then the largest, too.
Layout layout_of(const std::vector<BinadeCount>& binades) {
  std::uint64_t all = 0, up_to = 0;
  for (const BinadeCount& b : binades) all += b.count.high;
  int first_common = binades.front().exponent, end_common = binades.back().exponent + 1;
  for (const BinadeCount& b : binades) {
    if (up_to <= all / 1000) first_common = b.exponent;
    if (up_to < all - all / 1000) end_common = b.exponent + 1;
    up_to += b.count.high;
  }
  const int first = binades.front().exponent, end = binades.back().exponent + 1;
  for (int per_row = 1;; ++per_row) {
    for (const Layout& layout :
         {Layout{first, end, per_row}, Layout{first_common, end, per_row, first_common > first},
          Layout{first_common, end_common, per_row, first_common > first, end_common < end}}) {
      if (layout.rows() > kMostRows) continue;
      Layout wider = layout;  // rows that are left take from the tail
      wider.first = std::max(first, layout.first - (kMostRows - layout.rows()) * per_row);
      wider.below = wider.first > first;
      return wider;
    }
  }
}

Interval count_between(const std::vector<BinadeCount>& binades, int first, int end) {
  Interval sum;
  for (const BinadeCount& b : binades) {
    if (b.exponent >= first && b.exponent < end) sum += b.count;
  }
  return sum;
}

void classify_row(HistogramRow& row, const Boundaries& limits) {
  const Magnitude first = {row.first, 0}, end = {row.end, 0};
  row.zero = first < limits.nonzero;
  row.overflow = limits.overflow < end;
  row.subnormal = std::max(first, limits.nonzero) < std::min(end, limits.normal);
}

std::vector<HistogramRow> rows_of(const std::vector<BinadeCount>& binades, const Layout& layout,
                                  const Interval& of, const Boundaries& limits) {
  const int lowest = binades.front().exponent, highest = binades.back().exponent + 1;
  std::vector<HistogramRow> rows;
  const auto add = [&](int first, int end, bool below, bool above) {
    HistogramRow row = {first, end, below, above, count_between(binades, first, end)};
    // A value whose binade is not known may be in several.
    row.count.high = std::min(row.count.high, of.high);
    classify_row(row, limits);
    rows.push_back(row);
  };
  if (layout.above) add(layout.end, highest, false, true);
  for (int end = layout.end; end > layout.first; end -= layout.per_row) {
    add(std::max(end - layout.per_row, layout.first), end, false, false);
  }
  if (layout.below) add(lowest, layout.first, true, false);
  return rows;
}

/// 2^exponent divided by the scale: "2^-24", "2^-33.97".
std::string limit_text(int exponent, double scale) {
  if (const auto log2 = exact_log2(scale)) return fmt::format("2^{}", exponent - *log2);
  return fmt::format("2^{:.2f}", exponent - std::log2(scale));
}

/// "65520", "63.98", "2^38.00".
std::string limit_text(double magnitude) {
  if (magnitude < 1e9 && magnitude == std::floor(magnitude))
    return fmt::format("{:.0f}", magnitude);
  if (magnitude >= 1e-3 && magnitude < 9999.5) return fmt::format("{:.4g}", magnitude);
  return fmt::format("2^{:.2f}", std::log2(magnitude));
}

/// A class of values, and how its limit is written.
struct Mark {
  bool HistogramRow::*in;
  const char* name;
  std::string limit;
};

std::array<Mark, 3> marks_of(const Analysis& analysis) {
  const Format& format = analysis.target.format;
  const double scale = analysis.loss_scale;
  const double overflow = to_double(analysis.target.boundaries(scale, 1).overflow);
  const bool kept = analysis.target.subnormals == Subnormals::keep;
  return {{{&HistogramRow::overflow, "overflow", " >= " + limit_text(overflow)},
           {&HistogramRow::subnormal, "subnormal", " < " + limit_text(format.emin(), scale)},
           {&HistogramRow::zero, "zero",
            kept ? " <= " + limit_text(format.min_quantum_exponent() - 1, scale)
                 : " < " + limit_text(format.emin(), scale)}}};
}

/// What becomes of a row's values; the limit beside the row that it lies in, or the nearest.
std::vector<std::string> mark_texts(const Histogram& histogram, const Analysis& analysis) {
  const std::array<Mark, 3> marks = marks_of(analysis);
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < histogram.rows.size(); ++i) {
    std::vector<std::string> words, limits;
    for (const Mark& mark : marks) {
      if (!(histogram.rows[i].*mark.in)) continue;
      // Overflow reaches from its limit upward, the others downward.
      const bool last = i + 1 == histogram.rows.size(), first = i == 0;
      const bool at_limit = mark.in == &HistogramRow::overflow
                                ? last || !(histogram.rows[i + 1].*mark.in)
                                : first || !(histogram.rows[i - 1].*mark.in);
      words.emplace_back(mark.name);
      limits.push_back(at_limit ? mark.name + mark.limit : mark.name);
    }
    // A row of many binades may hold all limits: no room for the numbers.
    texts.push_back(fmt::format("{}", fmt::join(words.size() > 2 ? words : limits, ", ")));
  }
  return texts;
}

std::string label_of(const HistogramRow& row, bool single) {
  if (row.all_below) return fmt::format("< 2^{}", row.end);
  if (row.all_above) return fmt::format(">= 2^{}", row.first);
  if (single) return fmt::format("2^{}", row.first);
  return fmt::format("2^{} to 2^{}", row.first, row.end);
}

std::string share_of(const HistogramRow& row, const Interval& of) {
  if (of.exact() && row.count.exact()) return reports::answer::share_text(row.count.low, of.low);
  const auto part = [](std::uint64_t a, std::uint64_t b) {
    return b == 0 ? 0.0 : static_cast<double>(a) / static_cast<double>(b);
  };
  return reports::answer::narrow_range_text(part(row.count.low, of.high),
                                            part(row.count.high, std::max(of.low, row.count.high)));
}

/// Lengths of bars: linear where every one is a character or more, else logarithmic over three
/// decades, with a character for less.
class Bars {
 public:
  Bars(const std::vector<HistogramRow>& rows, std::size_t width)
      : width_(static_cast<double>(width)) {
    std::uint64_t least = ~std::uint64_t{0}, most = 0;
    for (const HistogramRow& row : rows) {
      most = std::max(most, row.count.high);
      for (const std::uint64_t count : {row.count.low, row.count.high}) {
        if (count != 0) least = std::min(least, count);
      }
    }
    most_ = static_cast<double>(most);
    linear_ = static_cast<double>(least) * width_ >= most_;
    least_ = std::max(least, most / 1000);
  }

  std::string bar(const Interval& count) const {
    const std::size_t surely = length(count.low);
    return std::string(surely, '#') + std::string(length(count.high) - surely, '-');
  }
  std::string legend() const {
    return linear_ ? "Bars are linear."
                   : fmt::format("Bars are logarithmic: one # is {} or fewer.",
                                 reports::answer::plural(least_, "value"));
  }

 private:
  std::size_t length(std::uint64_t count) const {
    if (count == 0) return 0;
    const double n = static_cast<double>(count), least = static_cast<double>(least_);
    const double part = linear_ ? width_ * n / most_
                                : 1 + (width_ - 1) * std::log(n / least) / std::log(most_ / least);
    return static_cast<std::size_t>(std::lround(std::clamp(part, 1.0, width_)));
  }

  double width_, most_ = 0;
  std::uint64_t least_ = 0;  ///< what a character is
  bool linear_ = false;
};

std::string heading(const Histogram& histogram, const Analysis& analysis, const Bars& bars) {
  std::vector<std::string_view> roles;
  for (const Role role : histogram.roles) roles.push_back(log::name_of(role));
  std::string text = fmt::format(
      "Unscaled magnitudes of {} finite nonzero {}: {} ({}, {}). At the right: limits of {} at "
      "loss "
      "scale {}.{} {}",
      reports::answer::count_text(histogram.of), histogram.of == 1 ? "value" : "values",
      fmt::join(roles, ", "), reports::answer::plural(histogram.tensors, "tensor"),
      reports::answer::plural(histogram.steps, "step"), analysis.target.name,
      reports::answer::scale_text(analysis.loss_scale),
      histogram.binades_a_row == 1 ? " Row 2^e holds 2^e up to 2^(e+1)." : "", bars.legend());
  const bool bounded = std::any_of(histogram.rows.begin(), histogram.rows.end(),
                                   [](const auto& row) { return !row.count.exact(); });
  if (bounded) text += " The log gives bounds: # at least, - at most.";
  return reports::answer::wrapped_text(text, kColumns, 0);
}

}  // namespace

Histogram histogram_of(const Analysis& analysis) {
  const Tensors tensors = tensors_of(analysis);
  const reports::answer::Series sum = reports::answer::sum(tensors);
  Histogram out;
  out.tensors = sum.tensors;
  out.steps = sum.recorded_steps;
  out.of = sum.counts.finite_nonzero;
  std::set<Role> roles;
  for (const auto* tensor : tensors) roles.insert(tensor->role);
  out.roles.assign(roles.begin(), roles.end());
  if (!sum.binades.empty()) {
    const Layout layout = layout_of(sum.binades);
    out.binades_a_row = layout.per_row;
    out.rows =
        rows_of(sum.binades, layout, out.of, analysis.target.boundaries(analysis.loss_scale, 1));
  }
  return out;
}

std::string histogram_text(const Analysis& analysis) {
  const Histogram histogram = histogram_of(analysis);
  if (histogram.rows.empty()) return "";
  const std::vector<std::string> marks = mark_texts(histogram, analysis);
  std::vector<std::string> labels, shares;
  std::size_t label = 0, share = 0, mark = 0;
  for (std::size_t i = 0; i < marks.size(); ++i) {
    labels.push_back(label_of(histogram.rows[i], histogram.binades_a_row == 1));
    shares.push_back(share_of(histogram.rows[i], histogram.of));
    label = std::max(label, labels[i].size());
    share = std::max(share, shares[i].size());
    mark = std::max(mark, marks[i].size());
  }
  constexpr std::size_t kLeast = 8, kMost = 40, kBlanks = 7;
  const std::size_t rest = label + share + mark + kBlanks;
  const std::size_t width = rest + kLeast > kColumns ? kLeast : std::min(kMost, kColumns - rest);
  const Bars bars(histogram.rows, width);
  std::string text = heading(histogram, analysis, bars);
  for (std::size_t i = 0; i < marks.size(); ++i) {
    std::string line =
        fmt::format("  {:>{}} |{:<{}} {:>{}}  {}", labels[i], label,
                    bars.bar(histogram.rows[i].count), width, shares[i], share, marks[i]);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace halfscope::cli::terminal
