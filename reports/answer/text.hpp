// SPDX-License-Identifier: Apache-2.0
// Numbers and names as text, in the terminal and on the page.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "halfscope/table/interval.hpp"

namespace halfscope::reports::answer {

/// Returns a share as a percentage with at least two significant digits. Exactly 0 is "0 %" and
/// exactly 1 is "100 %"; other shares are at least "< 0.01 %" and at most "> 99.99 %".
std::string share_text(double share);
/// Returns the share of `count` in `of`; "no values" if `of` is 0.
std::string share_text(std::uint64_t count, std::uint64_t of);
/// Returns a range "1.2 % to 3.4 %", or one share if both ends are equal as text.
std::string share_text(const Interval& count, std::uint64_t of);
std::string share_range_text(double low, double high);
/// Returns the same for narrow columns: "1.2 to 3.4 %".
std::string narrow_range_text(double low, double high);

/// Returns "1,234,567", or "1,200 to 1,300" if only bounds are known.
std::string count_text(std::uint64_t count);
std::string count_text(const Interval& count);

/// Returns 2^k: "1024 (2^10)", "1" for k = 0, "2^-3" for negative k, "2^70" for more than 40.
std::string power_text(int log2);
/// Returns any loss scale: power_text() of a power of two, else shortest digits ("1000.5").
std::string scale_text(double scale);

/// Returns a magnitude with three significant digits, and its log2: "0.0311 (2^-5.0)".
std::string magnitude_text(double magnitude);

/// Returns "0.626" or "NaN". `digits`: the number of significant digits.
std::string loss_text(double loss, int digits = 6);

/// Returns a signal-to-noise ratio, "11.3 dB", or "exact" if it is infinite.
std::string decibels_text(double decibels);

/// Returns "84 MB": decimal units, at most three digits.
std::string bytes_text(std::uint64_t bytes);

/// Returns "3 x 4"; empty for a single value.
std::string extents_text(const std::vector<std::uint64_t>& shape);

/// Returns "a, b and 3 more": at most `most` words.
std::string listed(const std::vector<std::string>& words, std::size_t most);

/// Returns "1 step" or "2 steps".
std::string plural(std::uint64_t count, std::string_view noun);

/// Breaks text at blanks into lines of at most `columns` characters. Lines after the first are
/// indented. The result ends with a line break.
std::string wrapped_text(std::string_view text, std::size_t columns, std::size_t indent);

/// Indents every line by `indent` blanks.
std::string indented_text(std::string_view lines, std::size_t indent);

/// Returns the Levenshtein distance: letters to insert, remove or replace to change `a` into `b`.
std::size_t edit_distance(std::string_view a, std::string_view b);
/// Returns the at most `count` names of the least edit distance to `typed`, nearest first. Names of
/// tensors may be typed without their role.
std::vector<std::string> nearest(std::vector<std::string> names, std::string_view typed,
                                 std::size_t count);

/// Escapes text for HTML, as content or in a quoted attribute.
std::string html_escape(std::string_view text);

/// Returns a name from a log for the page: printable (log/error.hpp), then escaped.
std::string html_name(std::string_view name);

/// Returns a name from a log, or code, made printable (log/error.hpp) and with marks around it.
std::string code(std::string_view name);
/// Returns "a, b and 3 more", each name as by code().
std::string listed_code(const std::vector<std::string>& names, std::size_t most);

/// A part of a sentence.
struct Piece {
  std::string_view text;
  bool code = false;
};
std::vector<Piece> pieces(std::string_view sentence);

/// Returns the sentence without marks, as a terminal and JSON show it.
std::string plain(std::string_view sentence);

}  // namespace halfscope::reports::answer
