// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/console_log.hpp"

#include <algorithm>
#include <fstream>

#include "analyzers/readers/console_lines.hpp"
#include "analyzers/readers/console_steps.hpp"
#include "analyzers/readers/contradictions.hpp"
#include "analyzers/readers/kinds.hpp"
#include "analyzers/readers/text_lines.hpp"
#include "analyzers/readers/timeline.hpp"

namespace halfscope::readers {
namespace {

namespace fs = std::filesystem;
using log::printable;

constexpr std::size_t kLookedAt = std::size_t{1} << 18;  // of the beginning, and of the end

constexpr Contradiction kSeveralMessages{
    "several messages of overflows stand in one line, as where processes share a log",
    "each is counted, and a step that several processes skip may be counted more than once"};

/// The parts of a line: progress bars print over what they have printed, after a carriage return.
template <typename See>
void for_each_part(std::string_view line, const See& see) {
  while (!line.empty()) {
    const std::size_t end = std::min(line.find('\r'), line.size());
    see(line.substr(0, end));
    line.remove_prefix(std::min(line.size(), end + 1));
  }
}

void take_part(std::string_view part, std::uint64_t line, ConsoleSteps& steps,
               Contradictions& contradictions) {
  const ConsoleLine found = console_line(part);
  if (!found.overflow) return steps.take(found, line);
  const std::vector<std::string_view> messages = messages_in(part);
  if (messages.size() > 1) contradictions.add(kSeveralMessages, line);
  for (const std::string_view message : messages) steps.take(console_line(message), line);
}

bool tells_any(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    bool any = false;
    for_each_part(text.substr(0, end),
                  [&](std::string_view part) { any = any || console_line(part).any(); });
    if (any) return true;
    text.remove_prefix(std::min(text.size(), end + 1));
  }
  return false;
}

std::string end_of(const fs::path& file, std::size_t most) {
  std::ifstream in(file, std::ios::binary);
  in.seekg(0, std::ios::end);
  const auto size = static_cast<std::uint64_t>(std::max<std::streamoff>(0, in.tellg()));
  std::string text(static_cast<std::size_t>(std::min<std::uint64_t>(size, most)), '\0');
  in.seekg(-static_cast<std::streamoff>(text.size()), std::ios::end);
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(std::max<std::streamsize>(0, in.gcount())));
  return text;
}

bool is_console_file(const fs::path& file) {
  const std::string begin = beginning_of(file, kLookedAt);
  if (begin.find('\0') != std::string::npos) return false;  // no text
  return tells_any(begin) || (begin.size() == kLookedAt && tells_any(end_of(file, kLookedAt)));
}

/// One file. `number`: no file before it had its overflows numbered. Returns whether its were.
bool read_file(const fs::path& file, Timeline& timeline, bool number, analyzers::Notes& notes,
               const analyzers::Progress& progress, std::uint64_t before, std::uint64_t in_all) {
  TextLines lines(file, progress, before, in_all);
  Contradictions contradictions;
  ConsoleSteps steps(timeline, contradictions);
  while (const auto line = lines.next()) {
    for_each_part(*line, [&](std::string_view part) {
      take_part(part, lines.number(), steps, contradictions);
    });
  }
  steps.finish(number);
  contradictions.tell(lines.name(), notes);
  for (const std::string& remark : steps.remarks()) notes.push_back(lines.name() + ": " + remark);
  if (!steps.any_step() && !number) {
    notes.push_back(lines.name() +
                    ": tells no steps, and is left out beside another log that tells none");
  }
  return steps.numbered();
}

}  // namespace

bool is_console_log(const fs::path& log) { return any_file_below(log, 0, is_console_file); }

void read_console_log(const fs::path& log, const analyzers::Selection& selection,
                      const analyzers::Visitor& visit, analyzers::Notes& notes,
                      const analyzers::Progress& progress) {
  std::vector<fs::path> files = files_of(log);
  std::erase_if(files, [](const fs::path& file) { return !is_console_file(file); });
  const std::uint64_t in_all = bytes_of(files);
  std::uint64_t before = 0;
  Timeline timeline(log.string(), selection, visit);
  bool numbered = false;
  for (const fs::path& file : files) {
    numbered |= read_file(file, timeline, !numbered, notes, progress, before, in_all);
    before += bytes_of({file});
  }
  if (visit.kind) {
    analyzers::LogKind kind{"console log", {analyzers::Gap::tensors}};
    if (numbered) kind.gaps.push_back(analyzers::Gap::steps);
    visit.kind(kind);
  }
  timeline.finish(notes);
}

}  // namespace halfscope::readers
