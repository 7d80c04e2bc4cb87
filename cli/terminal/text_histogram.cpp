// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal/text_histogram.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "cli/terminal/text_table.hpp"
#include "reports/answer/captions.hpp"
#include "reports/answer/series.hpp"
#include "reports/answer/tensors.hpp"
#include "reports/answer/text.hpp"
#include "reports/charts/charts.hpp"

namespace halfscope::cli::terminal {

namespace answer = reports::answer;
using analyzers::underflow::Analysis;
using analyzers::underflow::BinadeCount;
using answer::Tensors;
using log::Role;

namespace {

constexpr int kMostRows = 32;
constexpr std::size_t kColumns = 80;

/// Counts of finite nonzero values whose unscaled magnitude is in [2^first, 2^end).
struct HistogramRow {
  int first = 0, end = 0;
  bool all_below = false, all_above = false;  ///< a tail: all below 2^end, or from 2^first up
  Interval count;
  bool overflow = false, subnormal = false, zero = false;  ///< classes of some of its values
};

struct Histogram {
  Tensors tensors;  ///< tensors that are counted
  answer::Series sum;
  int binades_a_row = 1;           ///< except in the tails
  std::vector<HistogramRow> rows;  ///< largest first
};

/// Returns the weight and activation gradients or, if there are none, all tensors.
Tensors tensors_of(const Analysis& analysis) {
  const Tensors all = answer::all_tensors(analysis);
  Tensors gradients;
  std::copy_if(all.begin(), all.end(), std::back_inserter(gradients),
               [](const auto* t) { return log::is_gradient(t->role); });
  return gradients.empty() ? all : gradients;
}

/// The rows between the two tails, with `per_row` binades each.
struct Layout {
  int first = 0, end = 0, per_row = 1;
  bool below = false, above = false;  ///< true if there is a tail on this side

  int rows() const {
    return (end - first + per_row - 1) / per_row + static_cast<int>(below) +
           static_cast<int>(above);
  }
};

/// Returns the layout with the fewest binades per row. For each number, it first tries no tails,
/// then a tail with the smallest thousandth of the values, then also one with the largest.
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
      Layout wider = layout;  // unused rows are taken from the tail
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
    // A value whose binade is unknown may be counted in several.
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

/// A class of values, and the text of its limit.
struct Mark {
  bool HistogramRow::*in;
  const char* name;
  std::string limit;
};

/// Returns a power of two as text: "2^-24", "2^-33.97".
std::string power_text(double log2) {
  return log2 == std::floor(log2) ? fmt::format("2^{:.0f}", log2) : fmt::format("2^{:.2f}", log2);
}

/// Returns a magnitude as text: "65520", "63.984", "2^38".
std::string magnitude_text(double log2) {
  const double magnitude = std::exp2(log2);
  return magnitude >= 1e-3 && magnitude < 99999.5 ? fmt::format("{:.5g}", magnitude)
                                                  : power_text(log2);
}

std::array<Mark, 3> marks_of(const Analysis& analysis) {
  const reports::charts::Limits limits =
      reports::charts::limits_of(analysis.target, analysis.loss_scale);
  const bool kept = analysis.target.subnormals == Subnormals::keep;
  return {
      {{&HistogramRow::overflow, "overflow", " >= " + magnitude_text(limits.overflow.position)},
       {&HistogramRow::subnormal, "subnormal", " < " + power_text(limits.subnormal.position)},
       {&HistogramRow::zero, "zero", (kept ? " <= " : " < ") + power_text(limits.zero.position)}}};
}

/// Returns each row's classes. A limit's text is in the row that contains it, or the nearest.
std::vector<std::string> mark_texts(const Histogram& histogram, const Analysis& analysis) {
  const std::array<Mark, 3> marks = marks_of(analysis);
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < histogram.rows.size(); ++i) {
    std::vector<std::string> words, limits;
    for (const Mark& mark : marks) {
      if (!(histogram.rows[i].*mark.in)) continue;
      // Overflow is everything above its limit; the other classes are below theirs.
      const bool last = i + 1 == histogram.rows.size(), first = i == 0;
      const bool at_limit = mark.in == &HistogramRow::overflow
                                ? last || !(histogram.rows[i + 1].*mark.in)
                                : first || !(histogram.rows[i - 1].*mark.in);
      words.emplace_back(mark.name);
      limits.push_back(at_limit ? mark.name + mark.limit : mark.name);
    }
    // A row of many binades can contain all limits: too long with the numbers.
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
  if (of.exact() && row.count.exact()) return answer::share_text(row.count.low, of.low);
  const auto part = [](std::uint64_t a, std::uint64_t b) {
    return b == 0 ? 0.0 : static_cast<double>(a) / static_cast<double>(b);
  };
  return answer::narrow_range_text(part(row.count.low, of.high),
                                   part(row.count.high, std::max(of.low, row.count.high)));
}

/// Lengths of bars: linear if every bar has at least one character, else logarithmic over three
/// decades; smaller counts get one character.
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
  /// Returns the count that one character stands for; 0 if bars are linear.
  std::uint64_t least() const { return linear_ ? 0 : least_; }

 private:
  std::size_t length(std::uint64_t count) const {
    if (count == 0) return 0;
    const double n = static_cast<double>(count), least = static_cast<double>(least_);
    const double part = linear_ ? width_ * n / most_
                                : 1 + (width_ - 1) * std::log(n / least) / std::log(most_ / least);
    return static_cast<std::size_t>(std::lround(std::clamp(part, 1.0, width_)));
  }

  double width_, most_ = 0;
  std::uint64_t least_ = 0;  ///< count of one character
  bool linear_ = false;
};

std::string heading(const Histogram& histogram, const Analysis& analysis, const Bars& bars) {
  const bool bounded = std::any_of(histogram.rows.begin(), histogram.rows.end(),
                                   [](const auto& row) { return !row.count.exact(); });
  const std::string hidden = answer::hidden_zeros_text(histogram.tensors, histogram.sum);
  return answer::wrapped_text(fmt::format("{} {}{}{}",
                                          answer::histogram_text(histogram.tensors, histogram.sum,
                                                                 histogram.binades_a_row == 1),
                                          answer::text_bars_text(analysis, {bars.least(), bounded}),
                                          hidden.empty() ? "" : " ", hidden),
                              kColumns, 0);
}

Histogram histogram_of(const Analysis& analysis) {
  Histogram out;
  out.tensors = tensors_of(analysis);
  out.sum = answer::sum(out.tensors);
  if (!out.sum.binades.empty()) {
    const Layout layout = layout_of(out.sum.binades);
    out.binades_a_row = layout.per_row;
    out.rows = rows_of(out.sum.binades, layout, out.sum.counts.finite_nonzero,
                       analysis.target.boundaries(analysis.loss_scale, 1));
  }
  return out;
}

/// Returns the histogram of all gradients or, if there are none, of all tensors: ASCII, at most 80
/// columns. Returns an empty string if no value is finite and nonzero. The limits belong to the
/// analysis's format at its loss scale.
std::string histogram_text(const Analysis& analysis) {
  const Histogram histogram = histogram_of(analysis);
  if (histogram.rows.empty()) return "";
  const std::vector<std::string> marks = mark_texts(histogram, analysis);
  std::vector<std::string> labels, shares;
  std::size_t label = 0, share = 0, mark = 0;
  for (std::size_t i = 0; i < marks.size(); ++i) {
    labels.push_back(label_of(histogram.rows[i], histogram.binades_a_row == 1));
    shares.push_back(share_of(histogram.rows[i], histogram.sum.counts.finite_nonzero));
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

}  // namespace

std::string tensors_text(const analyzers::Findings& found) {
  std::string out;
  for (const std::string& sentence : answer::tensors_sentences(found)) {
    out += answer::wrapped_text(answer::plain(sentence), kTextColumns, 0);
  }
  const std::string histogram = histogram_text(found.analysis);
  return out + "\n" + histogram + (histogram.empty() ? "" : "\n") +
         table_text(answer::tensors_table(found.analysis));
}

}  // namespace halfscope::cli::terminal
