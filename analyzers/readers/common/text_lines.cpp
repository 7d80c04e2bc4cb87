// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/common/text_lines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "analyzers/readers/common/log_files.hpp"
#include "analyzers/readers/input/text_encoding.hpp"
#include "halfscope/log/error.hpp"
#include "halfscope/log/read_file.hpp"

namespace halfscope::analyzers::readers::common {
namespace {

constexpr std::uint64_t kBytesATell = std::uint64_t{1} << 20;
constexpr std::size_t kBlock = std::size_t{1} << 18;

template <typename Number>
std::optional<Number> parse(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);  // from_chars refuses it
  Number value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

}  // namespace

TextLines::TextLines(const log::OpenPath& file, frames::Progress progress, std::uint64_t before,
                     std::uint64_t in_all)
    : path_(file),
      name_(log::printable(file.path.string())),
      file_(log::open_regular(file)),
      size_(file_->size()),
      block_(std::make_shared<const std::string>()),
      progress_(std::move(progress)),
      before_(before),
      in_all_(in_all) {}

/// Replaces the block by its unread rest, followed by the next bytes of the file.
void TextLines::read_on() {
  const std::string_view rest = std::string_view(*block_).substr(at_);
  auto longer = std::make_shared<std::string>(rest);
  auto piece = static_cast<std::size_t>(
      std::min<std::uint64_t>(std::max(kBlock, rest.size()), size_ - read_));
  longer->resize(rest.size() + piece);
  char* const to = longer->data() + rest.size();
  bool zeros_go_on = true;
  while (zeros_go_on && read_ < size_) {
    piece = static_cast<std::size_t>(std::min<std::uint64_t>(piece, size_ - read_));
    log::read_exactly(*file_, name_, read_, to, piece);
    read_ += piece;
    zeros_go_on = rest.ends_with('\0') && input::without_zeros({to, piece}).empty();
  }
  longer->resize(rest.size() + piece);
  block_ = std::move(longer);
  at_ = 0;
}

/// Skips the rest of the line that the block ends with.
void TextLines::skip_line() {
  std::string piece(kBlock, '\0');
  for (bool ends = false; !ends && read_ < size_;) {
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(piece.size(), size_ - read_));
    log::read_exactly(*file_, name_, read_, piece.data(), n);
    const std::size_t end = std::string_view(piece).substr(0, n).find('\n');
    ends = end != std::string_view::npos;
    read_ += ends ? end + 1 : n;
  }
}

/// Reads until the block holds the whole next line. Returns false if there is no next line.
bool TextLines::hold_line() {
  if (end_ > at_) return true;
  std::size_t looked = 0;  // bytes of the line
  while (true) {
    end_ = block_->find('\n', at_ + looked);
    if (end_ != std::string::npos) return true;
    looked = block_->size() - at_;
    if (read_ == size_) break;
    if (looked > kLongestLine) {
      skip_line();
      break;
    }
    read_on();
  }
  end_ = block_->size();
  return at_ < end_;
}

std::optional<std::string_view> TextLines::peek() {
  if (!hold_line()) return std::nullopt;
  std::string_view line = std::string_view(*block_).substr(at_, end_ - at_);
  if (line.size() > kLongestLine) return line.substr(0, kLongestLine);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

std::optional<std::string_view> TextLines::next() {
  const auto line = peek();
  if (!line) return std::nullopt;
  line_block_ = block_;
  cut_ = end_ == block_->size();
  at_ = cut_ ? end_ : end_ + 1;
  ++number_;
  if (line->size() == kLongestLine && in_all_ > 0) {
    path_.files.note(path_.path,
                     fmt::format("{}: line {} has {} bytes or more, expected fewer; the rest of it "
                                 "is skipped",
                                 name_, number_, kLongestLine));
  }
  const std::uint64_t done = read_ - (block_->size() - at_);
  if (progress_ && done >= tell_at_) {
    progress_(before_ + done, std::max(in_all_, size_));
    tell_at_ = done + kBytesATell;
  }
  return line;
}

void BadLines::add(std::uint64_t line, std::string_view why) {
  if (count_++ > 0) return;
  first_ = line;
  why_ = why;
}

void BadLines::tell(const std::string& file, frames::Notes& notes) const {
  if (count_ == 0) return;
  notes.add(fmt::format("{}: {} skipped; the first is line {}: {}", file,
                        count_ == 1 ? "a line is" : fmt::format("{} lines are", count_), first_,
                        why_));
}

TextFiles::TextFiles(const log::OpenPath& log, const std::vector<std::filesystem::path>& files,
                     frames::Notes& notes, const frames::Progress& progress, int passes)
    : log_(log),
      notes_(notes),
      progress_(progress),
      in_all_(bytes_of(log, files) * static_cast<std::uint64_t>(passes)) {}

void TextFiles::read_lines(const std::filesystem::path& file, const TakeLine& take,
                           std::size_t longest) {
  TextLines lines(log_.at(file), progress_, done_, in_all_);
  BadLines bad;
  while (const auto line = lines.next()) {
    if (line->find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const std::string why = line->size() > longest
                                ? fmt::format("is longer than {} MiB", longest >> 20U)
                                : take(*line, lines.number());
    if (!why.empty()) bad.add(lines.number(), why);
  }
  bad.tell(lines.name(), notes_);
  done_ += lines.bytes();
}

void TextFiles::read_whole(const std::filesystem::path& file,
                           const std::function<std::string(std::string_view text)>& take) {
  const std::string text = log::read_text(log_.at(file));
  const std::string why = take(text);
  if (!why.empty()) {
    notes_.add(log::printable(file.string()) + ": " + why + "; the rest is not read");
  }
  done_ += text.size();
  if (progress_) progress_(done_, std::max(done_, in_all_));
}

void split_cells(std::string_view line, std::vector<std::string_view>& cells) {
  cells.clear();
  for (;;) {
    const bool quoted = line.starts_with('"');
    const std::size_t quote = quoted ? line.find('"', 1) : 0;  // the second one
    const std::size_t end = quote < line.size() ? line.find(',', quote) : std::string_view::npos;
    cells.push_back(quoted ? line.substr(1, quote - 1) : line.substr(0, end));
    if (end == std::string_view::npos) return;
    line.remove_prefix(end + 1);
  }
}

std::optional<double> number_in(std::string_view text) { return parse<double>(text); }

std::optional<std::int64_t> integer_in(std::string_view text) { return parse<std::int64_t>(text); }

std::optional<int> last_digit_of(std::string_view text) {
  const std::size_t mark = std::min(text.find_first_of("eE"), text.size());
  const std::string_view digits = text.substr(0, mark);
  if (digits.find_first_of("0123456789") == std::string_view::npos) return std::nullopt;
  int exponent = 0;
  if (mark < text.size()) {
    const std::optional<std::int64_t> written = integer_in(text.substr(mark + 1));
    if (!written || std::abs(*written) > 400) return std::nullopt;
    exponent = static_cast<int>(*written);
  }
  const std::size_t point = digits.find('.');
  const std::size_t decimals = point == std::string_view::npos ? 0 : digits.size() - point - 1;
  return exponent - static_cast<int>(std::min<std::size_t>(decimals, 400));
}

Bounds printed_bounds(double printed, int last_digit) {
  if (!std::isfinite(printed)) return {printed, printed};
  // Reading the decimal, 10^n and the sum are each rounded by less than 2^-52 of an operand.
  const double half = 0.5 * std::pow(10.0, last_digit) + std::numeric_limits<double>::denorm_min();
  const double more = half + std::ldexp(half + std::abs(printed), -49);
  return {printed - more, printed + more};
}

Bounds magnitude_bounds(const Bounds& value) {
  if (std::isnan(value.low) || std::isnan(value.high)) return value;
  const double low = std::abs(value.low), high = std::abs(value.high);
  const bool holds_zero = value.low <= 0 && value.high >= 0;
  return {holds_zero ? 0 : std::min(low, high), std::max(low, high)};
}

}  // namespace halfscope::analyzers::readers::common
