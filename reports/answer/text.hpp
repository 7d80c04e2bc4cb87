// SPDX-License-Identifier: Apache-2.0
// Numbers and names as people read them, in the terminal and on the page.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "halfscope/table/interval.hpp"

namespace halfscope::reports::answer {

/// A share as a percentage with two significant digits or more. Exactly 0 is "0 %" and exactly 1 is
/// "100 %"; a share too small to print is "< 0.01 %", one too close to all is "> 99.99 %".
std::string share_text(double share);
/// The share of a count in a number of values; "no values" when there are none.
std::string share_text(std::uint64_t count, std::uint64_t of);
/// An interval as "1.2 % to 3.4 %"; one text when both ends print the same.
std::string share_text(const Interval& count, std::uint64_t of);
std::string share_range_text(double low, double high);
/// The same for narrow columns: "1.2 to 3.4 %".
std::string narrow_range_text(double low, double high);

/// "1,234,567", and "1,200 to 1,300" where only bounds are known.
std::string count_text(std::uint64_t count);
std::string count_text(const Interval& count);

/// 2^k: "1024 (2^10)", "1" for k = 0, "2^-3" below, "2^70" where digits would not be read.
std::string power_text(int log2);
/// Any loss scale: as power_text when it is a power of two, else shortest digits ("1000.5").
std::string scale_text(double scale);

/// A magnitude with three significant digits and its binade: "0.0311 (2^-5.0)".
std::string magnitude_text(double magnitude);

/// "0.626", "NaN"; digits: significant ones.
std::string loss_text(double loss, int digits = 6);

/// "84 MB": decimal units, three digits.
std::string bytes_text(std::uint64_t bytes);

/// "3 x 4"; empty of one value.
std::string extents_text(const std::vector<std::uint64_t>& shape);

/// "a, b and 3 more"; the words as they are.
std::string listed(const std::vector<std::string>& words, std::size_t most);

/// "1 step", "2 steps".
std::string plural(std::uint64_t count, std::string_view noun);

/// Broken at blanks into lines of at most `columns`, those after the first indented; ends in a line
/// break.
std::string wrapped_text(std::string_view text, std::size_t columns, std::size_t indent);

/// Lines, each so many blanks in.
std::string indented_text(std::string_view lines, std::size_t indent);

/// Returns how many letters must be inserted, removed or replaced to make `a` into `b`
/// (Levenshtein's distance).
std::size_t edit_distance(std::string_view a, std::string_view b);

/// Text for HTML, as content or in a quoted attribute.
std::string html_escape(std::string_view text);

/// A name from a log as it is shown on the page: printable (log/error.hpp), then escaped.
std::string html_name(std::string_view name);

}  // namespace halfscope::reports::answer
