// SPDX-License-Identifier: Apache-2.0
// Text logs, line by line, and the numbers that are printed in them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyzers/frames/source.hpp"
#include "halfscope/log/open_file.hpp"

namespace halfscope::analyzers::readers::common {

/// The longest line that is returned, in bytes. The rest of a longer line is skipped.
constexpr std::size_t kLongestLine = std::size_t{1} << 24;

/// The lines of a file of any size, which is read block by block. A returned line is a part of a
/// block: it stays valid as long as the block() of that moment, and at least until the next call of
/// next(). Zero bytes in a line that fill more than one block are shortened to one block.
class TextLines {
 public:
  using Block = std::shared_ptr<const std::string>;

  /// `progress` receives the number of bytes read, `before` plus those of this file, and `in_all`;
  /// an empty function reports nothing. If in_all is 0, lines that are too long are not noted. The
  /// constructor, next() and peek() throw log::BadInput if the file cannot be read or shrank.
  explicit TextLines(const log::OpenPath& file, frames::Progress progress = {},
                     std::uint64_t before = 0, std::uint64_t in_all = 0);

  /// Returns the next line without its end (LF or CRLF); nullopt after the last line.
  std::optional<std::string_view> next();
  /// The line that next() would return. It stays valid until the second call of next() from now.
  std::optional<std::string_view> peek();
  /// The block that holds the line that next() returned last; null before the first call.
  const Block& block() const { return line_block_; }
  /// The number of the line that next() returned last, from 1.
  std::uint64_t number() const { return number_; }
  /// Returns true if that line has no end: it is too long, or it is the last line of a file, which
  /// may be cut off.
  bool cut() const { return cut_; }
  const std::string& name() const { return name_; }
  std::uint64_t bytes() const { return size_; }

 private:
  bool hold_line();
  void read_on();
  void skip_line();

  log::OpenPath path_;
  std::string name_;
  std::shared_ptr<const log::OpenFile> file_;
  std::uint64_t size_, read_ = 0;  ///< bytes of the file when it was opened; bytes in blocks so far
  Block block_, line_block_;
  std::size_t at_ = 0, end_ = 0;  ///< next line in block_; end_ <= at_ if its end is unknown
  std::uint64_t number_ = 0;
  bool cut_ = false;
  frames::Progress progress_;
  std::uint64_t before_, in_all_, tell_at_ = 0;
};

/// Counts the lines of one file that could not be read, for one note.
class BadLines {
 public:
  void add(std::uint64_t line, std::string_view why);
  /// Adds the note, if there is a bad line.
  void tell(const std::string& file, frames::Notes& notes) const;

 private:
  std::uint64_t count_ = 0, first_ = 0;
  std::string why_;  ///< why the first line could not be read
};

/// Reads text files of one log, one after the other. Reports progress over all of them, and adds
/// one note for each file with errors.
class TextFiles {
 public:
  /// `files` are all files that will be read, each `passes` times.
  TextFiles(const log::OpenPath& log, const std::vector<std::filesystem::path>& files,
            frames::Notes& notes, const frames::Progress& progress, int passes = 1);

  /// Receives a line and its number, from 1. Returns the error in the line, or an empty text.
  using TakeLine = std::function<std::string(std::string_view line, std::uint64_t number)>;
  /// Calls `take` for each line that is not blank. A line of more than `longest` bytes is an error.
  /// Throws log::BadInput if the file cannot be read.
  void read_lines(const std::filesystem::path& file, const TakeLine& take,
                  std::size_t longest = std::size_t{1} << 20);
  /// Calls `take` for the text of the file. It returns the error in the text, or an empty text.
  void read_whole(const std::filesystem::path& file,
                  const std::function<std::string(std::string_view text)>& take);

 private:
  const log::OpenPath& log_;
  frames::Notes& notes_;
  const frames::Progress& progress_;
  std::uint64_t done_ = 0, in_all_;  ///< bytes
};

/// Splits a line of comma-separated values into its cells, without the quotes around a cell.
void split_cells(std::string_view line, std::vector<std::string_view>& cells);

/// Returns the number that a whole text is: decimal, inf or nan, of either sign. Empty for other
/// texts and for numbers beyond binary64.
std::optional<double> number_in(std::string_view text);
std::optional<std::int64_t> integer_in(std::string_view text);

/// The exponent of ten of a printed decimal's last digit: -4 for "0.1234", -7 for "1.5e-06", 0 for
/// "12". Empty if there are no digits ("inf").
std::optional<int> last_digit_of(std::string_view text);

/// The range of a number that was rounded when it was printed.
struct Bounds {
  double low = 0, high = 0;
};
/// Returns the range of numbers that print as `printed`: plus and minus half of 10^last_digit,
/// rounded outward. For infinity and NaN both bounds are `printed`.
Bounds printed_bounds(double printed, int last_digit);
/// Returns the range of the number's magnitude.
Bounds magnitude_bounds(const Bounds& value);

}  // namespace halfscope::analyzers::readers::common
