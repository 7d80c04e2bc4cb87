// SPDX-License-Identifier: Apache-2.0
#include "reports/answer/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "halfscope/log/error.hpp"
#include "halfscope/table/boundary.hpp"

namespace halfscope::reports::answer {

namespace {

constexpr std::string_view kPercent = " %";  // end of every share_text() of a number

/// Largest exponent for which power_text() writes digits.
constexpr int kLastLog2InDigits = 40;

double ratio(std::uint64_t count, std::uint64_t of) {
  return static_cast<double>(count) / static_cast<double>(of);
}

/// Returns "3.1 % to 4.7 %". If one end is "< 0.01 %" and the other 0 %, or "> 99.99 %" and 100 %,
/// returns only the first of these.
std::string range_text(const std::string& first, const std::string& last) {
  if (first == last || (first.starts_with('>') && last == "100 %")) return first;
  if (first == "0 %" && last.starts_with('<')) return last;
  return first + " to " + last;
}

// Control characters. Printable names do not contain them, so a name cannot end its own mark.
constexpr char kBegin = '\x0e', kEnd = '\x0f';

}  // namespace

std::string share_text(double share) {
  if (std::isnan(share)) return "no values";
  if (share <= 0) return "0 %";
  if (share >= 1) return "100 %";
  const double percent = 100 * share;
  if (percent < 0.01) return "< 0.01 %";
  if (percent > 99.99) return "> 99.99 %";
  if (percent >= 99.9) return fmt::format("{:.2f} %", percent);
  // Number of digits after the point for two or three significant digits.
  const int digits = percent >= 10 ? 1 : percent >= 0.1 ? 2 : 3;
  return fmt::format("{:.{}f} %", percent, digits);
}

std::string share_text(std::uint64_t count, std::uint64_t of) {
  if (of == 0) return "no values";
  // The quotient of two integers may round to 0 or 1, so these ends are decided by the integers.
  if (count == 0) return "0 %";
  if (count >= of) return "100 %";
  const double share = ratio(count, of);
  return share >= 1 ? "> 99.99 %" : share_text(share);
}

std::string share_range_text(double low, double high) {
  return range_text(share_text(low), share_text(high));
}

std::string narrow_range_text(double low, double high) {
  std::string text = share_range_text(low, high);
  const std::size_t unit = text.find(std::string(kPercent) + " to ");
  return unit == std::string::npos ? text : text.erase(unit, kPercent.size());
}

std::string share_text(const Interval& count, std::uint64_t of) {
  return range_text(share_text(count.low, of), share_text(count.high, of));
}

std::string count_text(std::uint64_t count) {
  std::string digits = std::to_string(count);
  for (std::size_t end = digits.size(); end > 3; end -= 3) digits.insert(end - 3, 1, ',');
  return digits;
}

std::string count_text(const Interval& count) {
  return count.exact() ? count_text(count.low)
                       : count_text(count.low) + " to " + count_text(count.high);
}

std::string power_text(int log2) {
  if (log2 == 0) return "1";
  if (log2 < 0 || log2 > kLastLog2InDigits) return fmt::format("2^{}", log2);
  return fmt::format("{} (2^{})", std::uint64_t{1} << log2, log2);
}

std::string scale_text(double scale) {
  const std::optional<int> log2 = exact_log2(scale);
  return log2 ? power_text(*log2) : fmt::format("{}", scale);
}

std::string magnitude_text(double magnitude) {
  if (!std::isfinite(magnitude) || magnitude <= 0) return fmt::format("{:.3g}", magnitude);
  double log2 = std::log2(magnitude);
  if (std::abs(log2) < 0.05) log2 = 0;                       // prevents "-0.0"
  const bool large = magnitude >= 999.5 && magnitude < 1e6;  // {:.3g} would write 1.42e+03
  return large ? fmt::format("{:.0f} (2^{:.1f})", magnitude, log2)
               : fmt::format("{:.3g} (2^{:.1f})", magnitude, log2);
}

std::string loss_text(double loss, int digits) {
  if (std::isnan(loss)) return "NaN";
  if (std::isinf(loss)) return loss > 0 ? "infinite" : "-infinite";
  return fmt::format("{:.{}g}", loss, digits);
}

std::string decibels_text(double decibels) {
  return std::isinf(decibels) ? "exact" : fmt::format("{:.1f} dB", decibels);
}

std::string bytes_text(std::uint64_t bytes) {
  static constexpr std::array<const char*, 5> kUnits = {"bytes", "kB", "MB", "GB", "TB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 999.5 && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  return value >= 99.95 || unit == 0 ? fmt::format("{:.0f} {}", value, kUnits[unit])
                                     : fmt::format("{:.3g} {}", value, kUnits[unit]);
}

std::string extents_text(const std::vector<std::uint64_t>& shape) {
  return fmt::format("{}", fmt::join(shape, " x "));
}

std::string listed(const std::vector<std::string>& words, std::size_t most) {
  const auto end = words.begin() + static_cast<std::ptrdiff_t>(std::min(most, words.size()));
  const std::string shown = fmt::format("{}", fmt::join(words.begin(), end, ", "));
  return words.size() > most ? fmt::format("{} and {} more", shown, words.size() - most) : shown;
}

std::string plural(std::uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count_text(count), noun, count == 1 ? "" : "s");
}

std::string wrapped_text(std::string_view text, std::size_t columns, std::size_t indent) {
  const std::string margin = "\n" + std::string(indent, ' ');
  std::string out;
  for (std::size_t width = columns; text.size() > width; width = columns - indent) {
    // The first line may begin with blanks.
    const std::size_t first_word = text.find_first_not_of(' ');
    std::size_t end = text.rfind(' ', width);
    // keeps "12 %" on one line
    if (text.substr(end + 1).starts_with('%')) end = text.rfind(' ', end - 1);
    if (end == std::string_view::npos || end < first_word) end = text.find(' ', width);
    if (end == std::string_view::npos) break;
    out += std::string(text.substr(0, end)) + margin;
    text.remove_prefix(end + 1);
  }
  return out + std::string(text) + "\n";
}

std::string indented_text(std::string_view lines, std::size_t indent) {
  const std::string margin(indent, ' ');
  std::string out = margin;
  for (const char c : lines) out += c == '\n' ? "\n" + margin : std::string(1, c);
  return out;
}

std::string html_escape(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default: out += c;
    }
  }
  return out;
}

std::string html_name(std::string_view name) { return html_escape(log::printable(name)); }

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = std::exchange(row[j + 1], std::min({row[j] + 1, row[j + 1] + 1, changed}));
    }
  }
  return row.back();
}

std::vector<std::string> nearest(std::vector<std::string> names, std::string_view typed,
                                 std::size_t count) {
  typed = typed.substr(0, 200);                 // the time grows with the length
  std::multimap<std::size_t, std::string> far;  // names of one distance stay in order
  for (std::string& name : names) {
    const std::string_view after_role = std::string_view(name).substr(name.find('/') + 1);
    far.emplace(std::min(edit_distance(typed, name), edit_distance(typed, after_role)),
                std::move(name));
  }
  names.clear();
  for (auto at = far.begin(); at != far.end() && names.size() < count; ++at) {
    names.push_back(std::move(at->second));
  }
  return names;
}

std::string code(std::string_view name) { return kBegin + log::printable(name) + kEnd; }

std::string listed_code(const std::vector<std::string>& names, std::size_t most) {
  std::vector<std::string> words;
  words.reserve(names.size());
  for (const std::string& name : names) words.push_back(code(name));
  return listed(words, most);
}

std::vector<Piece> pieces(std::string_view sentence) {
  std::vector<Piece> out;
  bool inside = false;
  while (!sentence.empty()) {
    const std::size_t end = sentence.find(inside ? kEnd : kBegin);
    if (end != 0) out.push_back({sentence.substr(0, end), inside});
    if (end == sentence.npos) break;
    sentence.remove_prefix(end + 1);
    inside = !inside;
  }
  return out;
}

std::string plain(std::string_view sentence) {
  std::string out;
  for (const Piece& piece : pieces(sentence)) out += piece.text;
  return out;
}

}  // namespace halfscope::reports::answer
