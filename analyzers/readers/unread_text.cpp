// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/unread_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "analyzers/frames/message.hpp"
#include "analyzers/readers/common/kind_names.hpp"
#include "analyzers/readers/common/text_lines.hpp"
#include "analyzers/readers/console/console_pattern.hpp"
#include "analyzers/readers/console/console_reading.hpp"
#include "analyzers/readers/console/console_words.hpp"
#include "analyzers/readers/lines/pattern.hpp"

namespace halfscope::analyzers::readers {
namespace {

using lines::Meaning;

bool is_step(Meaning meaning) {
  return meaning == Meaning::step || meaning == Meaning::global_step || meaning == Meaning::updates;
}

bool is_measure(Meaning meaning) {
  return meaning == Meaning::loss || meaning == Meaning::gradient_norm ||
         meaning == Meaning::loss_scale || meaning == Meaning::log2_loss_scale;
}

/// Appends the text between two values to a pattern. Braces are doubled, blanks merged.
void add_text(std::string_view text, std::string& pattern) {
  for (const char c : text) {
    const bool blank = c == ' ' || c == '\t';
    if (!blank) pattern.append(c == '{' || c == '}' ? 2 : 1, c);
    if (blank && !pattern.ends_with(' ')) pattern += ' ';
  }
}

/// Returns the option --lines with a pattern, quoted for a shell and for Python.
frames::Message quoted(const std::string& pattern) {
  const bool single = pattern.find('\'') == std::string::npos;
  std::string shell = "'", python(1, single ? '\'' : '"');
  for (const char c : pattern) {
    shell += c == '\'' ? std::string("'\\''") : std::string(1, c);
    if (c == '\\' || c == python.front()) python += '\\';
    python += c;
  }
  const bool plain = pattern.find_first_of("\"$`\\!") == std::string::npos;
  return {frames::Option::lines, single || !plain ? shell + "'" : "\"" + pattern + "\"",
          python + python.front()};
}

/// Counts what the lines of a text contain, to word the error message.
class TextSurvey {
 public:
  static constexpr std::uint64_t kMostLines = 100'000;

  void take(std::string_view line) {
    constexpr std::size_t kLooked = 4096, kMostForms = 10'000;
    line = line.substr(std::min(line.size(), line.find_first_not_of(" \t")), kLooked);
    if (line.empty()) return;
    ++lines_;
    SuggestedPattern pattern = pattern_for(line);
    with_pair_ += pattern.text.empty() ? 0 : 1;
    measures_ += pattern.measure ? 1 : 0;
    steps_too_ += pattern.measure && pattern.step ? 1 : 0;
    const std::string key = pattern.text.empty() ? without_figures(line) : pattern.text;
    if (forms_.size() >= kMostForms && !forms_.contains(key)) return;
    Form& form = forms_[key];
    if (form.lines++ == 0) form = {1, std::string(line), std::move(pattern)};
    Form& most = form.pattern.text.empty() ? most_ : most_with_pair_;
    if (form.lines > most.lines) most = form;
  }
  bool full() const { return lines_ >= kMostLines; }

  /// Returns the message: what the lines contain, and what the user can do.
  frames::Message text() const {
    std::string seen =
        fmt::format("{}{} line{}", full() ? "the first " : "", lines_, lines_ == 1 ? "" : "s");
    if (with_pair_ == 0) {
      return fmt::format(
          "{}, none with a name and a number, such as '{}'; check that this file has the "
          "run's output{}",
          seen, console::shown_line(most_.first), common::kKindsListed);
    }
    seen += fmt::format(", {} with a name and a number, such as '{}'", with_pair_,
                        console::shown_line(most_with_pair_.first));
    if (measures_ == 0) {
      seen += ", and no loss, gradient norm or loss scale that Halfscope knows";
    } else if (steps_too_ < 2) {
      seen += ", and no two with a step beside a loss, a gradient norm or a loss scale";
    }
    return seen + way_out();
  }

 private:
  struct Form {
    std::uint64_t lines = 0;
    std::string first = {};
    SuggestedPattern pattern = {};
  };

  static std::string without_figures(std::string_view line) {
    std::string alike;
    for (const char c : line) {
      const bool figure = std::isdigit(static_cast<unsigned char>(c)) != 0;
      if (!figure || !alike.ends_with('0')) alike += figure ? '0' : c;
    }
    return alike;
  }

  frames::Message way_out() const {
    const SuggestedPattern& pattern = most_with_pair_.pattern;
    const bool numbers = pattern.text.find("{}") != std::string::npos;
    if (!pattern.measure && !numbers) return "; check that this file has the run's output";
    frames::Message text =
        "; if these are the run's output, name the values: " + quoted(pattern.text);
    if (!numbers || (pattern.measure && pattern.step)) return text;
    return text + fmt::format(", with {}{}{} in place of the {{}} that you mean",
                              pattern.step ? "" : "{step}",
                              pattern.step || pattern.measure ? "" : " and ",
                              pattern.measure ? "" : "{loss}, {grad_norm} or {loss_scale}");
  }

  std::uint64_t lines_ = 0, with_pair_ = 0;
  std::uint64_t measures_ = 0, steps_too_ = 0;   // lines with a measure; with a step as well
  std::unordered_map<std::string, Form> forms_;  // by pattern, or by the line without its digits
  Form most_, most_with_pair_;
};

}  // namespace

namespace {

/// Returns the pattern of a line's pairs from the first name on. If `unnamed` is true, the pattern
/// begins at the start of the line and also covers numbers without a name.
SuggestedPattern pattern_of(std::string_view line, bool unnamed) {
  constexpr std::size_t kLongest = 160;
  SuggestedPattern found;
  std::string pattern;
  std::vector<Meaning> named;
  const char* at = unnamed ? line.data() : nullptr;  // end of the text that the pattern covers
  for (const lines::Pair& pair : lines::pairs_in(line)) {
    if (at == nullptr && pair.name.empty()) continue;
    if (at == nullptr) at = pair.name.data();
    if (at == pair.text.data() && !pattern.empty()) break;  // no text between two values
    add_text({at, static_cast<std::size_t>(pair.text.data() - at)}, pattern);
    Meaning meaning = pair.named.meaning;
    const bool again = std::ranges::find(named, meaning) != named.end();
    if (again || !lines::suits(pair, meaning) || !pair.unit.empty()) meaning = Meaning::none;
    if (meaning != Meaning::none) named.push_back(meaning);
    pattern.append(lines::in_braces(meaning)).append(pair.unit);
    at = pair.text.data() + pair.text.size() + pair.unit.size();
    if (pattern.size() > kLongest) break;
    if (unnamed || !pair.name.empty()) found.text = pattern;
    found.step |= is_step(meaning);
    found.measure |= is_measure(meaning);
  }
  if (log::printable(found.text) != found.text) found.text.clear();
  return found;
}

}  // namespace

SuggestedPattern pattern_for(std::string_view line) {
  const std::size_t name = line.find_first_not_of(" 0123456789");
  const bool begins_with_numbers = name != 0 && name < line.size() && line[name - 1] == ' ';
  SuggestedPattern found = pattern_of(line, false);
  const bool braces = line.find_first_of("{}") != std::string_view::npos;
  if (found.text.empty() || braces) return found;  // without any name: not output of training
  const bool known = found.step || found.measure;
  return known && !begins_with_numbers ? found : pattern_of(line, true);
}

void refuse_text(const log::OpenPath& file) {
  TextSurvey survey;
  common::TextLines lines(file);
  std::string buffer;
  while (const auto line = survey.full() ? std::nullopt : lines.next()) {
    console::for_each_part(
        *line, [&](std::string_view part) { survey.take(console::without_colours(part, buffer)); });
  }
  throw frames::InputNeedsOption(
      log::printable(file.path.string()) +
      ": is text without any line that Halfscope knows: " + survey.text());
}

}  // namespace halfscope::analyzers::readers
