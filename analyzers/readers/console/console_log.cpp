// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/console/console_log.hpp"

#include <fmt/format.h>

#include <algorithm>
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
using log::printable;

constexpr std::size_t kLookedAt = std::size_t{1} << 18;  // of the beginning

constexpr common::Contradiction kCut{"the last line is incomplete",
                                     "it is used, but its last number may be cut"};

/// Whether lines anywhere in a text file are those of a console log: they may lie between imports
/// at the beginning and tracebacks at the end. A progress bar alone, or one line with a step and a
/// loss, may be of any text.
bool has_console_lines(const log::OpenPath& file) {
  constexpr int kSure = 2;
  int sure = 0;
  for_each_console_line(file, {}, [&](const ConsoleLine& line, std::uint64_t, bool) {
    sure += !line.any() ? 0 : line.surely() ? kSure : 1;
    return sure < kSure;
  });
  return sure >= kSure || wrapping_in(file).columns > 0;
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
  try {
    // A program that writes on after its log was emptied leaves zeros before what it writes.
    const bool blank = begin.find_first_not_of('\0') == std::string::npos;
    if (blank ? !input::is_text(common::TextLines(file).next().value_or(""))
              : !input::is_text(begin) || input::is_of_other_kind(begin)) {
      return false;
    }
    return has_console_lines(file);
  } catch (const log::BadInput&) {
    return false;
  }
}

/// What several files are read with.
struct Reading {
  const common::TimelineSelection& selection;
  const frames::Visitor& visit;
  Notes& notes;
  const frames::Progress& progress;
  const log::OpenPath& log;
  const lines::Pattern* pattern;          // --lines; null: none
  std::uint64_t done = 0, in_all = 0;     // bytes; each file is read twice
  std::vector<std::string> remarks = {};  // of the run that is read: LogKind::remarks
};

/// What one engine printed into the files of a run.
struct Engine {
  common::Timeline timeline;
  ConsoleSteps steps;
  frames::LogKind kind{"console log", {frames::Gap::tensors}};

  Engine(const std::string& log, const Reading& reading)
      : timeline(log, reading.selection, reading.visit), steps(timeline) {}
};

void read_lines(const ConsoleFile& file, const std::vector<ConsoleSteps*>& engines,
                Reading& reading) {
  common::Contradictions contradictions;
  EngineSplit split;
  for (ConsoleSteps* steps : engines) steps->begin(file.survey, contradictions);
  std::optional<std::uint64_t> cut_line;  // a line has parts: the last one decides
  const auto see = [&](ConsoleLine line, std::uint64_t number, bool cut) {
    cut_line = cut && line.any() ? std::optional(number) : std::nullopt;
    std::size_t engine = 0;  // of a line of no engine in particular
    if (engines.size() > 1) {
      line.iteration.reset();  // whose it is, the message behind it tells
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
  for (const std::string& text : contradictions.texts()) {
    const std::string of = printable(file.path.filename().string()) + ": ";
    reading.remarks.push_back((reading.log.path == file.path ? "" : of) + text);
  }
}

/// Adds what a reading found besides its steps to the log's kind.
void tell_rest(const ConsoleSteps& steps, Engine& engine, Reading& reading) {
  steps.add_to(engine.kind);
  for (const std::vector<std::string>& remarks : {steps.remarks(), reading.remarks}) {
    for (const std::string& remark : remarks) {
      const bool known =
          std::ranges::find(engine.kind.remarks, remark) != engine.kind.remarks.end();
      if (!known) engine.kind.remarks.push_back(remark);
    }
  }
  reading.remarks.clear();
}

/// A file that tells no steps, beside files of its run that do: its overflows count where these
/// tell of none.
void read_beside(const ConsoleFile& file, const ConsoleRun& run, Engine& engine, Reading& reading) {
  ConsoleSteps steps(engine.timeline);
  read_lines(file, {&steps}, reading);
  ConsoleSteps::Untold untold;
  const bool told = std::ranges::any_of(run, [&](const ConsoleFile& other) {
    return other.survey.steps.first && (other.survey.overflows || other.survey.counts_skips);
  });
  const ToldSteps& of_run = run.front().survey.steps;
  if (!told) untold.between.emplace(*of_run.first, *of_run.last);
  if (told && file.survey.overflows) {
    reading.remarks.push_back(
        printable(file.path.filename().string()) +
        ": has no step numbers; its overflows are skipped, since another file "
        "has steps and skipped steps");
  }
  steps.finish(untold);
  tell_rest(steps, engine, reading);
}

/// Tells the visitor what one engine printed into all files of a run.
void tell_engine(Engine& engine, const ConsoleRun& run, Reading& reading) {
  frames::LogKind& kind = engine.kind;
  if (run.size() > 1) kind.nonfinite_line.reset();  // of which file, it does not say
  for (const ConsoleFile& file : run) kind.tool = std::max(kind.tool, file.survey.tool);
  if (kind.counted_from) {
    kind.counted_from = std::max(*kind.counted_from, reading.selection.first_step);
  }
  if (engine.steps.numbered()) kind.gaps.push_back(frames::Gap::steps);
  if (reading.visit.kind) reading.visit.kind(kind);
  engine.timeline.finish(reading.notes);
}

/// The files of a run; `several`: others are in the log.
void read_run(const ConsoleRun& run, const std::string& log, bool several, Reading& reading) {
  const bool two = !reading.selection.joined && std::ranges::any_of(run, [](const auto& file) {
    return file.survey.two_engines;
  });
  std::vector<std::unique_ptr<Engine>> engines;
  std::vector<ConsoleSteps*> steps;
  for (std::size_t i = 0; i < (two ? kEngines : 1); ++i) {
    engines.push_back(std::make_unique<Engine>(log, reading));
    steps.push_back(&engines.back()->steps);
  }
  const auto is_beside = [&](const ConsoleFile& file) {
    return run.front().survey.steps.first && !file.survey.steps.first;
  };
  for (const ConsoleFile& file : run) {
    if (!is_beside(file)) read_lines(file, steps, reading);
  }
  for (auto& engine : engines) {
    engine->steps.finish({.number = true, .between = {}});
    tell_rest(engine->steps, *engine, reading);
  }
  for (const ConsoleFile& file : run) {
    if (is_beside(file)) read_beside(file, run, *engines.front(), reading);
  }
  for (std::size_t i = 0; i < engines.size(); ++i) {
    const std::string name = two ? fmt::format("{} (engine {})", log, i + 1) : log;
    if ((several || two) && reading.visit.run) reading.visit.run(name);
    if (two) {
      engines[i]->kind.remarks.emplace_back(
          "two engines write to the log, such as an actor and a critic: each becomes a log of its "
          "own, separated by scales and counters");
    }
    tell_engine(*engines[i], run, reading);
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
  Reading reading{selection, visit, notes, progress, log, pattern ? &*pattern : nullptr};
  reading.in_all = 2 * common::bytes_of(log, paths);
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
