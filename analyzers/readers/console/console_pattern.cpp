// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/console/console_pattern.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "analyzers/frames/message.hpp"
#include "analyzers/readers/common/log_files.hpp"
#include "analyzers/readers/common/text_lines.hpp"
#include "analyzers/readers/console/console_reading.hpp"
#include "analyzers/readers/console/console_words.hpp"
#include "analyzers/readers/input/content.hpp"
#include "analyzers/readers/input/text_encoding.hpp"

namespace halfscope::analyzers::readers::console {
namespace {

/// Returns the total length of the words of a pattern that a line has in the same order.
std::size_t likeness(std::string_view pattern, std::string_view line) {
  std::size_t sum = 0, from = 0;
  while (!pattern.empty()) {
    const std::size_t end = std::min(pattern.find_first_of(" \t{"), pattern.size());
    const std::string_view word = pattern.substr(0, end);
    const std::size_t found = line.find(word, from);
    if (found != std::string_view::npos) {
      sum += word.size();
      from = found + word.size();
    }
    const bool name = end < pattern.size() && pattern[end] == '{';
    const std::size_t next = name ? std::min(pattern.find('}', end), pattern.size()) : end;
    pattern.remove_prefix(std::min(pattern.size(), next + 1));
  }
  return sum;
}

/// Looks for lines that match, and remembers the line that is most similar to the pattern.
class PatternSearch {
 public:
  explicit PatternSearch(const lines::Pattern& pattern) : pattern_(pattern) {}

  bool finds_in(const log::OpenPath& file) {
    constexpr std::size_t kLookedAt = std::size_t{1} << 18;  // a file may begin with zeros
    const std::string begin = common::beginning_of(file, kLookedAt);
    if (!input::is_text(begin) || input::is_of_other_kind(begin)) return false;
    bool found = false;
    common::TextLines lines(file);
    while (const auto line = found ? std::nullopt : lines.next()) {
      ++lines_;
      for_each_part(*line, [&](std::string_view part) { found = found || takes(part); });
    }
    return found;
  }
  /// Throws frames::BadOption: no line matches.
  [[noreturn]] void refuse(const log::OpenPath& log) const {
    const std::string shown = log::printable(log.path.string());
    if (lines_ == 0) {
      throw frames::BadOption(shown + ": holds no text, and " + frames::Option::lines +
                              " names values in lines of text; leave it out");
    }
    throw frames::BadOption(shown + ": none of its " + std::to_string(lines_) +
                            (lines_ == 1 ? " line" : " lines") + " matches " + pattern_.option() +
                            "; the most similar one is '" + shown_line(shown_) +
                            "'; outside braces each character must be the same");
  }

 private:
  bool takes(std::string_view part) {
    const std::string_view line = without_colours(part, buffer_);
    if (!pattern_.match(line).empty()) return true;
    const std::size_t like = likeness(pattern_.text(), line);
    if (like > most_ || shown_.empty()) shown_ = line.substr(0, 1000);
    most_ = std::max(most_, like);
    return false;
  }

  const lines::Pattern& pattern_;
  std::uint64_t lines_ = 0;
  std::size_t most_ = 0;
  std::string shown_, buffer_;
};

}  // namespace

std::string shown_line(std::string_view line) {
  constexpr std::size_t kShown = 60;
  const std::string shown = log::printable(line.substr(0, kShown));
  return line.size() > kShown ? shown + ".." : shown;
}

std::vector<std::filesystem::path> files_with(const lines::Pattern& pattern,
                                              const log::OpenPath& log) {
  PatternSearch search(pattern);
  std::vector<std::filesystem::path> files = common::files_of(log.path);
  std::erase_if(files, [&](const auto& file) { return !search.finds_in(log.at(file)); });
  if (files.empty()) search.refuse(log);
  return files;
}

}  // namespace halfscope::analyzers::readers::console
