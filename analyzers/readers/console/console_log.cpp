// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/console/console_log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <iterator>

#include "analyzers/readers/common/contradictions.hpp"
#include "analyzers/readers/common/log_files.hpp"
#include "analyzers/readers/common/text_lines.hpp"
#include "analyzers/readers/common/timeline.hpp"
#include "analyzers/readers/console/console_engines.hpp"
#include "analyzers/readers/console/console_files.hpp"
#include "analyzers/readers/console/console_lines.hpp"
#include "analyzers/readers/console/console_pattern.hpp"
#include "analyzers/readers/console/console_reading.hpp"
#include "analyzers/readers/console/console_steps.hpp"
#include "analyzers/readers/console/console_survey.hpp"
#include "analyzers/readers/input/content.hpp"
#include "analyzers/readers/input/text_encoding.hpp"
#include "halfscope/log/error.hpp"

namespace halfscope::analyzers::readers::console {

using frames::Notes;

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLookedAt = std::size_t{1} << 18;  // bytes at the beginning

constexpr common::Contradiction kCut{"the last line is incomplete",
                                     "it is used, but its last number may be cut"};

/// Returns true if lines anywhere in a text file make it a console log: they may lie between
/// imports at the beginning and tracebacks at the end. One line with a step and a loss does not
/// suffice, nor does a progress bar alone: any text may have these.
bool has_console_lines(const log::OpenPath& file) {
  constexpr int kSure = 2;
  int sure = 0;
  for_each_console_line(file, {}, [&](const ConsoleLine& line, std::uint64_t, bool) {
    sure += !line.any() ? 0 : line.surely() ? kSure : 1;
    return sure < kSure;
  });
  return sure >= kSure || wrapping_in(file).columns > 0;
}

/// The header is text behind its length: 8 bytes, not all 0, the last one 0.
bool begins_as_safetensors(std::string_view begin) {
  const std::string_view length = begin.substr(0, 8);
  return begin.size() > 8 && begin[8] == '{' && length.back() == '\0' &&
         length.find_first_not_of('\0') != std::string_view::npos;
}

/// Returns true for a JSON document over several lines. JSON lines are one object each.
bool begins_json_document(std::string_view begin) {
  const std::string_view first = begin.substr(0, begin.find('\n'));
  return (first.starts_with('{') || first.starts_with('[')) &&
         first.find_first_not_of(" \r", 1) == std::string_view::npos;
}

bool is_console_file(const log::OpenPath& file) {
  std::string begin = common::beginning_of(file, kLookedAt);
  if (begins_as_safetensors(begin)) return false;
  if (begin.find("\"log_history\"") != std::string::npos) return false;  // a Trainer's state
  if (begins_json_document(begin)) return false;
  try {
    // A log that was emptied while the program wrote on begins with zeros.
    const bool blank = begin.find_first_not_of('\0') == std::string::npos;
    if (blank) begin = common::TextLines(file).next().value_or("");
    return input::is_text(begin) && !input::is_of_other_kind(begin) && has_console_lines(file);
  } catch (const log::BadInput&) {
    return false;
  }
}

/// Arguments of read_console_log(), and how far reading is.
struct Reading {
  const log::OpenPath& log;
  const common::TimelineSelection& selection;
  const frames::Visitor& visit;
  Notes& notes;
  const frames::Progress& progress;
  const lines::Pattern* pattern;       // --lines; null: none
  std::uint64_t done = 0, in_all = 0;  // bytes; each file is read twice
};

/// Results of one engine that printed into the files of a run.
struct Engine {
  common::Timeline timeline;
  ConsoleSteps steps{timeline};
  frames::LogKind kind{"console log", {frames::Gap::tensors}};
};

/// Reads a file. `engines`: one, or one for each of two engines. Appends the contradictions of the
/// file to `remarks`.
void read_lines(const ConsoleFile& file, const std::vector<ConsoleSteps*>& engines,
                Reading& reading, std::vector<std::string>& remarks) {
  common::Contradictions contradictions;
  EngineSplit split;
  for (ConsoleSteps* steps : engines) steps->begin(file.survey, contradictions);
  std::optional<std::uint64_t> cut_line;  // a line has parts: the last one decides
  const auto see = [&](ConsoleLine line, std::uint64_t number, bool cut) {
    cut_line = cut && line.any() ? std::optional(number) : std::nullopt;
    std::size_t engine = 0;  // also of lines that may be of either
    if (engines.size() > 1) {
      line.iteration.reset();  // the message behind it shows the engine
      if (line.overflow && line.overflow->of_named) line.overflow.reset();
      if (line.periodic) engine = split.of(*line.periodic);
      if (line.overflow) engine = split.of(*line.overflow) ^ (file.survey.swapped ? 1U : 0U);
    }
    engines[engine]->take(line, number);
    return true;
  };
  for_each_console_line(reading.log.at(file.path), file.survey.wrapping, see, reading.progress,
                        reading.done, reading.in_all, reading.pattern);
  if (cut_line) contradictions.add(kCut, *cut_line);
  reading.done += common::bytes_of(reading.log, {file.path});
  const bool named = reading.log.path != file.path;
  for (const std::string& text : contradictions.texts()) {
    remarks.push_back((named ? name_of(file) + ": " : "") + text);
  }
}

/// Reads a file without steps, beside files of its run with steps. Its overflows count if these
/// have none.
void read_beside(const ConsoleFile& file, const ConsoleRun& run, Engine& engine, Reading& reading) {
  std::vector<std::string> remarks;
  ConsoleSteps steps(engine.timeline);
  read_lines(file, {&steps}, reading, remarks);
  const bool known = std::ranges::any_of(run, [](const ConsoleFile& other) {
    return other.survey.steps.first && (other.survey.overflows || other.survey.counts_skips);
  });
  ConsoleSteps::WithoutSteps handling;
  if (!known) {
    const PrintedSteps& of_run = run.front().survey.steps;
    handling.between.emplace(*of_run.first, *of_run.last);
  } else if (file.survey.overflows) {
    remarks.push_back(name_of(file) +
                      ": has no step numbers; its overflows are skipped, since another file has "
                      "steps and skipped steps");
  }
  steps.finish(handling);
  steps.add_to(engine.kind);
  std::ranges::move(remarks, std::back_inserter(engine.kind.remarks));
}

/// Reads the files of a run, those without steps last.
void read_files(const ConsoleRun& run, std::deque<Engine>& engines, Reading& reading) {
  const auto is_beside = [&](const ConsoleFile& file) {
    return run.front().survey.steps.first && !file.survey.steps.first;
  };
  std::vector<std::string> remarks;
  std::vector<ConsoleSteps*> steps;
  for (Engine& engine : engines) steps.push_back(&engine.steps);
  for (const ConsoleFile& file : run) {
    if (!is_beside(file)) read_lines(file, steps, reading, remarks);
  }
  for (Engine& engine : engines) {
    engine.steps.finish({.number = true});
    engine.steps.add_to(engine.kind);
  }
  std::ranges::move(remarks, std::back_inserter(engines.front().kind.remarks));
  for (const ConsoleFile& file : run) {
    if (is_beside(file)) read_beside(file, run, engines.front(), reading);
  }
}

/// Reads a run and passes its results to the visitor. `several`: the log has more runs.
void read_run(const ConsoleRun& run, const std::string& log, bool several, Reading& reading) {
  const bool two = !reading.selection.joined && std::ranges::any_of(run, [](const auto& file) {
    return file.survey.two_engines;
  });
  std::deque<Engine> engines;
  while (engines.size() < (two ? kEngines : 1)) {
    engines.emplace_back(common::Timeline(log, reading.selection, reading.visit));
  }
  read_files(run, engines, reading);
  for (int number = 1; Engine & engine : engines) {
    frames::LogKind& kind = engine.kind;
    if (run.size() > 1) kind.nonfinite_line.reset();  // it does not name its file
    for (const ConsoleFile& file : run) kind.tool = std::max(kind.tool, file.survey.tool);
    if (kind.counted_from) {
      kind.counted_from = std::max(*kind.counted_from, reading.selection.first_step);
    }
    if (engine.steps.numbered()) kind.gaps.push_back(frames::Gap::steps);
    if (two) {
      kind.remarks.emplace_back(
          "two engines write to the log, such as an actor and a critic: each becomes a log of its "
          "own, separated by scales and counters");
    }
    const std::string name = two ? fmt::format("{} (engine {})", log, number++) : log;
    if ((several || two) && reading.visit.run) reading.visit.run(name);
    if (reading.visit.kind) reading.visit.kind(kind);
    engine.timeline.finish(reading.notes);
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
  Reading reading{log, selection, visit, notes, progress, pattern ? &*pattern : nullptr};
  reading.in_all = 2 * common::bytes_of(log, paths);
  std::vector<ConsoleFile> files;
  for (const fs::path& path : paths) {
    files.push_back({path, survey_of(log.at(path), selection.ranks, reading.pattern)});
    reading.done += common::bytes_of(log, {path});
    if (progress) progress(reading.done, std::max(reading.done, reading.in_all));
  }
  std::vector<ConsoleRun> runs = console_runs(std::move(files), notes);
  if (selection.joined) {  // beside a log of another kind, all files are of its run
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
