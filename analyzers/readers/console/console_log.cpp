// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/console/console_log.hpp"

#include <fmt/format.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <iterator>
#include <memory>

#include "analyzers/readers/common/contradictions.hpp"
#include "analyzers/readers/common/log_files.hpp"
#include "analyzers/readers/common/text_lines.hpp"
#include "analyzers/readers/common/timeline.hpp"
#include "analyzers/readers/console/console_engines.hpp"
#include "analyzers/readers/console/console_files.hpp"
#include "analyzers/readers/console/console_lines.hpp"
#include "analyzers/readers/console/console_pattern.hpp"
#include "analyzers/readers/console/console_rows.hpp"
#include "analyzers/readers/console/console_steps.hpp"
#include "analyzers/readers/console/console_survey.hpp"
#include "analyzers/readers/console/console_words.hpp"
#include "analyzers/readers/input/content.hpp"
#include "analyzers/readers/input/text_encoding.hpp"
#include "analyzers/readers/lines/blocks.hpp"
#include "halfscope/log/error.hpp"
#include "halfscope/log/read_file.hpp"

namespace halfscope::analyzers::readers::console {

using frames::Notes;

namespace {

namespace fs = std::filesystem;
using log::printable;

constexpr std::size_t kLookedAt = std::size_t{1} << 18;  // of the beginning, and of the end

constexpr common::Contradiction kCut{"the last line is incomplete",
                                     "it is used, but its last number may be cut"};

/// How sure it is that a text is a console log; kSure and more: it is one.
constexpr int kSure = 2;
int sureness(std::string_view text) {
  int sure = 0;
  std::string buffer, block;
  const auto peek = [&text]() -> std::optional<std::string_view> {
    if (text.empty()) return std::nullopt;
    return text.substr(0, std::min(text.find('\n'), text.size()));
  };
  const auto skip = [&] { text.remove_prefix(std::min(text.size(), peek()->size() + 1)); };
  while (!text.empty() && sure < kSure) {
    std::string_view line = *peek();
    skip();
    if (lines::read_block(line, peek, skip, block)) line = block;
    for_each_part(line, [&](std::string_view part) {
      const ConsoleLine said = console_line(without_colours(part, buffer));
      sure += !said.any() ? 0 : said.surely() ? kSure : 1;
    });
  }
  return sure;
}

constexpr std::size_t kPart = std::size_t{1} << 20;

/// A file that is looked through in parts, from its first byte that is not zero on.
struct Searched {
  std::shared_ptr<const log::OpenFile> file;
  std::string name;
  std::uint64_t size, begin = 0;

  explicit Searched(const log::OpenPath& path)
      : file(log::open_regular(path)), name(printable(path.path.string())), size(file->size()) {
    while (begin < size) {
      const std::string text = read(begin, kPart);
      const std::string_view rest = input::without_zeros(text);
      begin += text.size() - rest.size();
      if (!rest.empty()) break;
    }
  }

  std::string read(std::uint64_t from, std::uint64_t most) const {
    std::string text(static_cast<std::size_t>(std::min(most, size - from)), '\0');
    log::read_exactly(*file, name, from, text.data(), text.size());
    return text;
  }
};

/// The lines that begin in a part, of which the last one may be long; empty where none does.
std::string lines_of_part(const Searched& searched, std::uint64_t part) {
  constexpr std::size_t kMore = std::size_t{1} << 16;
  const std::uint64_t from = searched.begin + part * kPart - (part == 0 ? 0 : 1);
  std::string text = searched.read(from, kPart + kMore);
  const std::size_t first = part == 0 ? 0 : text.find('\n');
  if (first >= kPart) return "";
  std::size_t looked = part == 0 ? kPart - 1 : kPart;  // the last line ends there or later
  while (true) {
    const std::size_t end = text.find('\n', looked);
    if (end != std::string::npos) text.resize(end);
    if (end != std::string::npos || from + text.size() == searched.size ||
        text.size() > common::kLongestLine) {
      break;
    }
    looked = text.size();
    text += searched.read(from + looked, looked);
  }
  return text.substr(first);
}

/// What lies between imports at the beginning and tracebacks at the end of a text.
bool tells_between(const log::OpenPath& path) {
  try {
    const Searched searched(path);
    if (!input::is_text(searched.read(searched.begin, kLookedAt))) return false;
    std::atomic<int> sure = 0;
    const std::uint64_t parts = (searched.size - searched.begin + kPart - 1) / kPart;
    tbb::parallel_for(std::uint64_t{0}, parts, [&](std::uint64_t part) {
      if (sure < kSure) sure += sureness(lines_of_part(searched, part));
    });
    return sure >= kSure;
  } catch (const log::BadInput&) {
    return false;
  }
}

/// A header of text follows its length: 8 bytes, of which the last is 0 and not all are.
bool begins_as_safetensors(std::string_view begin) {
  const std::string_view length = begin.substr(0, 8);
  return begin.size() > 8 && begin[8] == '{' && length.back() == '\0' &&
         length.find_first_not_of('\0') != std::string_view::npos;
}

/// A document over several lines: JSON lines are whole objects each.
bool begins_json_document(std::string_view begin) {
  const std::string_view first = begin.substr(0, begin.find('\n'));
  return (first.starts_with('{') || first.starts_with('[')) &&
         first.find_first_not_of(" \r", 1) == std::string_view::npos;
}

bool is_console_file(const log::OpenPath& file) {
  const std::string begin = common::beginning_of(file, kLookedAt);
  if (begins_as_safetensors(begin)) return false;
  if (begin.find("\"log_history\"") != std::string::npos) return false;  // a Trainer's state
  if (begins_json_document(begin)) return false;
  // A program that writes on after its log was emptied leaves zeros before what it writes.
  const bool blank = begin.find_first_not_of('\0') == std::string::npos;
  const bool text = input::is_text(begin) && !input::is_of_other_kind(begin);
  if (begin.empty() || (!blank && !text)) return false;
  if (sureness(begin) >= kSure || wrapping_of(begin).certain) return true;
  if (begin.size() < kLookedAt) return false;
  return sureness(common::end_of(file, kLookedAt)) >= kSure || tells_between(file);
}

/// What several files are read with.
struct Reading {
  const common::TimelineSelection& selection;
  const frames::Visitor& visit;
  Notes& notes;
  const frames::Progress& progress;
  const log::OpenPath& log;
  const lines::Pattern* pattern;       ///< --lines; null: none
  std::uint64_t done = 0, in_all = 0;  // bytes; each file is read twice
};

/// What one engine printed into the files of a run.
struct Engine {
  common::Timeline timeline;
  ConsoleSteps steps;
  std::int64_t first_step;  // that is selected
  frames::LogKind kind{"console log", {frames::Gap::tensors}};

  Engine(const std::string& log, const Reading& reading)
      : timeline(log, reading.selection, reading.visit),
        steps(timeline),
        first_step(reading.selection.first_step) {}

  void take(const ConsoleSteps& from) {
    kind.perhaps_skipped += from.perhaps_skipped();
    kind.ended_at_minimum |= from.at_minimum();
    kind.last_step = std::max(kind.last_step, from.last_step());
    kind.hysteresis = std::max(kind.hysteresis, from.hysteresis());
    if (from.ranks().ranks > 1) kind.ranks = from.ranks();
    if (!kind.counted_from && from.counted_from()) {
      kind.counted_from = std::max(*from.counted_from(), first_step);
    }
    if (!from.other_scalers().empty()) kind.scaler = from.scaler();
    for (const frames::OtherScaler& other : from.other_scalers()) {
      kind.other_scalers.push_back(other);
    }
  }
};
using Engines = std::vector<std::unique_ptr<Engine>>;

/// Gives each line to its engine; one of no engine in particular to the first.
class LineSplit {
 public:
  explicit LineSplit(const Survey& survey) : swapped_(survey.swapped) {}

  void give(ConsoleLine line, std::uint64_t number, const std::vector<ConsoleSteps*>& engines) {
    std::size_t engine = 0;
    if (engines.size() > 1) {
      line.iteration.reset();  // whose it is, the message behind it tells
      if (line.overflow && line.overflow->of_named) line.overflow.reset();
      if (line.periodic) engine = split_.of(*line.periodic);
      if (line.overflow) engine = split_.of(*line.overflow) ^ (swapped_ ? 1U : 0U);
    }
    engines[engine]->take(line, number);
  }

 private:
  EngineSplit split_;
  bool swapped_;
};

void read_lines(const ConsoleFile& file, const std::vector<ConsoleSteps*>& engines,
                Reading& reading) {
  common::Contradictions contradictions;
  LineSplit split(file.survey);
  for (ConsoleSteps* steps : engines) steps->begin(file.survey, contradictions);
  std::optional<std::uint64_t> cut_line;  // a line has parts: the last one decides
  const auto see = [&](const ConsoleLine& line, std::uint64_t number, bool cut) {
    cut_line = cut && line.any() ? std::optional(number) : std::nullopt;
    split.give(line, number, engines);
  };
  for_each_console_line(reading.log.at(file.path), file.survey.wrapping, see, reading.progress,
                        reading.done, reading.in_all, &contradictions, reading.pattern);
  if (cut_line) contradictions.add(kCut, *cut_line);
  reading.done += common::bytes_of(reading.log, {file.path});
  contradictions.tell(printable(file.path.string()), reading.notes);
}

void tell_remarks(const ConsoleSteps& steps, const fs::path& of, Notes& notes) {
  for (const std::string& remark : steps.remarks()) {
    notes.add(printable(of.string()) + ": " + remark);
  }
}

/// A file that tells no steps, beside files of its run that do: its overflows count where these
/// tell of none.
void read_beside(const ConsoleFile& file, const ConsoleRun& run, Engine& engine, Reading& reading) {
  ConsoleSteps steps(engine.timeline);
  read_lines(file, {&steps}, reading);
  ConsoleSteps::Untold untold;
  const bool told = std::ranges::any_of(run, [&](const ConsoleFile& other) {
    return other.survey.first && (other.survey.overflows || other.survey.counts_skips);
  });
  const std::string name = printable(file.path.string());
  if (!told) untold.between.emplace(*run.front().survey.first, *run.front().survey.last);
  if (told && file.survey.overflows) {
    reading.notes.add(name +
                      ": has no step numbers; its overflows are skipped, since another file "
                      "has steps and skipped steps");
  }
  steps.finish(untold);
  engine.take(steps);
  tell_remarks(steps, file.path, reading.notes);
}

/// The files of a run; `several`: others are in the log.
void read_run(const ConsoleRun& run, const std::string& log, bool several, Reading& reading) {
  const bool two = !reading.selection.joined && std::ranges::any_of(run, [](const auto& file) {
    return file.survey.two_engines;
  });
  Engines engines;
  std::vector<ConsoleSteps*> steps;
  for (std::size_t i = 0; i < (two ? kEngines : 1); ++i) {
    engines.push_back(std::make_unique<Engine>(log, reading));
    steps.push_back(&engines.back()->steps);
  }
  for (const ConsoleFile& file : run) {
    const bool beside = run.front().survey.first && !file.survey.first;
    if (!beside) read_lines(file, steps, reading);
  }
  for (auto& engine : engines) {
    engine->steps.finish({.number = true, .between = {}});
    engine->take(engine->steps);
    tell_remarks(engine->steps, run.size() == 1 ? run.front().path : fs::path(log), reading.notes);
  }
  for (const ConsoleFile& file : run) {
    const bool beside = run.front().survey.first && !file.survey.first;
    if (beside) read_beside(file, run, *engines.front(), reading);
  }
  if (two) {
    reading.notes.add(printable(log) +
                      ": two engines write to it, such as an actor and a critic: each "
                      "becomes a log of its own, separated by scales and counters");
  }
  for (std::size_t i = 0; i < engines.size(); ++i) {
    const std::string name = two ? fmt::format("{} (engine {})", log, i + 1) : log;
    if ((several || two) && reading.visit.run) reading.visit.run(name);
    frames::LogKind& kind = engines[i]->kind;
    for (const ConsoleFile& file : run) kind.tool = std::max(kind.tool, file.survey.tool);
    if (engines[i]->steps.numbered()) kind.gaps.push_back(frames::Gap::steps);
    if (reading.visit.kind) reading.visit.kind(kind);
    engines[i]->timeline.finish(reading.notes);
  }
}

}  // namespace

bool is_console_log(const log::OpenPath& log) {
  return common::any_file_below(log, 0, is_console_file);
}

void read_console_log(const log::OpenPath& log, const common::TimelineSelection& selection,
                      const frames::Visitor& visit, Notes& notes,
                      const frames::Progress& progress) {
  std::optional<lines::Pattern> pattern;
  if (selection.lines) pattern.emplace(*selection.lines);
  std::vector<fs::path> paths = pattern ? files_with(*pattern, log) : common::files_of(log.path);
  std::erase_if(paths,
                [&](const fs::path& file) { return !pattern && !is_console_file(log.at(file)); });
  Reading reading{selection, visit,
                  notes,     progress,
                  log,       pattern ? &*pattern : nullptr,
                  0,         2 * common::bytes_of(log, paths)};
  std::vector<ConsoleFile> files;
  for (const fs::path& path : paths) {
    files.push_back({path, survey_of(log.at(path), selection.ranks, reading.pattern)});
    reading.done += common::bytes_of(log, {path});
    if (progress) progress(reading.done, std::max(reading.done, reading.in_all));
  }
  std::vector<ConsoleRun> runs = console_runs(std::move(files), notes);
  if (selection.joined) {  // all that lies beside a log of another kind is of its run
    for (std::size_t i = 1; i < runs.size(); ++i) {
      std::ranges::move(runs[i], std::back_inserter(runs.front()));
    }
    runs.resize(std::min<std::size_t>(1, runs.size()));
  }
  const bool several = runs.size() > 1;
  for (const ConsoleRun& run : runs) {
    read_run(run, several ? run.front().path.string() : log.path.string(), several, reading);
  }
}

}  // namespace halfscope::analyzers::readers::console
