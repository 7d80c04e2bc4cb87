// SPDX-License-Identifier: Apache-2.0
// Text logs, line by line, and the numbers that are printed in them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyzers/frames/source.hpp"
#include "halfscope/log/open_file.hpp"

namespace halfscope::analyzers::readers::common {

/// The regular files of a folder and of the folders in it, so many levels down, that `is_one`
/// takes: by path. The file itself where it is one. Hidden ones and links to folders are skipped.
std::vector<std::filesystem::path> files_below(const log::OpenPath& log, int levels,
                                               bool (*is_one)(const log::OpenPath& file));
/// Whether there is such a file among the first ones. Never throws.
bool any_file_below(const log::OpenPath& log, int levels,
                    bool (*is_one)(const log::OpenPath& file));

/// The folders in a folder that are neither hidden nor links, by name. Never throws.
std::vector<std::filesystem::path> folders_of(const std::filesystem::path& folder);

/// The bytes of some of a log's files together, as they are read: unpacked.
std::uint64_t bytes_of(const log::OpenPath& log, const std::vector<std::filesystem::path>& files);

/// In bytes; of a longer line the rest is skipped.
constexpr std::size_t kLongestLine = std::size_t{1} << 24;

/// The lines of a file of any size, which is read block by block. A line that is given is a part of
/// a block: it stays as long as block() of that moment, and at least until next() is called again.
/// Within a line, more than a block of zeros counts as one block of them.
class TextLines {
 public:
  using Block = std::shared_ptr<const std::string>;

  /// `progress` is told bytes of this file, after `before` of `in_all`. in_all: 0 is a look at what
  /// the file is, in which lines that are too long are not noted. This, next() and peek() throw
  /// log::BadInput where the file cannot be read or was cut short.
  explicit TextLines(const log::OpenPath& file, frames::Progress progress = {},
                     std::uint64_t before = 0, std::uint64_t in_all = 0);

  /// The next line without its end (LF or CRLF); empty after the last one.
  std::optional<std::string_view> next();
  /// The line that next() would give; it stays until the call of next() after that one.
  std::optional<std::string_view> peek();
  /// What holds the line that next() gave last; null before.
  const Block& block() const { return line_block_; }
  /// Of the line that next() gave last; from 1.
  std::uint64_t number() const { return number_; }
  /// Whether that line has no end: the last one of a file that was cut off, perhaps, or one that
  /// is too long.
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
  std::uint64_t size_, read_ = 0;  ///< of the file, when it was opened; into blocks
  Block block_, line_block_;
  std::size_t at_ = 0, end_ = 0;  ///< of the next line in block_; its end is known if above at_
  std::uint64_t number_ = 0;
  bool cut_ = false;
  frames::Progress progress_;
  std::uint64_t before_, in_all_, tell_at_ = 0;
};

/// Lines of one file that could not be read, told in one note.
class BadLines {
 public:
  void add(std::uint64_t line, std::string_view why);
  /// Nothing where there are none.
  void tell(const std::string& file, frames::Notes& notes) const;

 private:
  std::uint64_t count_ = 0, first_ = 0;
  std::string why_;  // of the first
};

/// The number that is all of a text: decimal, inf, nan, either sign; empty for anything else, and
/// for what binary64 cannot hold.
std::optional<double> number_in(std::string_view text);
std::optional<std::int64_t> integer_in(std::string_view text);

/// The exponent of ten of a printed decimal's last digit: -4 of "0.1234", -7 of "1.5e-06", 0 of
/// "12"; empty where there are no digits ("inf").
std::optional<int> last_digit_of(std::string_view text);

/// Where a number lies that was printed rounded.
struct Bounds {
  double low = 0, high = 0;
};
/// Half a unit of 10^last_digit to both sides, outward where binary64 must round. Infinities and
/// NaN stand for themselves.
Bounds printed_bounds(double printed, int last_digit);
/// Where the magnitude of such a number lies.
Bounds magnitude_bounds(const Bounds& value);

}  // namespace halfscope::analyzers::readers::common
