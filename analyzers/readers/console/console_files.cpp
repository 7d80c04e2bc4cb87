// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/console/console_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "analyzers/readers/common/text_lines.hpp"

namespace halfscope::analyzers::readers::console {

namespace {

/// A file of one of several ranks. `others`: its name without the rank's number, which the files of
/// all ranks share.
struct RankName {
  std::string others;
  std::int64_t rank = 0;
};

std::optional<RankName> rank_name(const std::string& name) {
  for (const std::string_view word :
       {"rank", "worker", "node", "gpu", "host", "proc", "task", "process"}) {
    std::size_t at = name.find(word);
    if (at == std::string::npos) continue;
    at = std::min(name.find_first_not_of("-_.=", at + word.size()), name.size());
    const std::size_t end = std::min(name.find_first_not_of("0123456789", at), name.size());
    const auto rank = common::integer_in(std::string_view(name).substr(at, end - at));
    if (rank) return RankName{name.substr(0, at) + "#" + name.substr(end), *rank};
  }
  return std::nullopt;
}

/// Returns "rank1.log and 6 more".
std::string and_more(const ConsoleFile& first, std::size_t files) {
  return files == 1 ? name_of(first) : fmt::format("{} and {} more", name_of(first), files - 1);
}

/// Returns true if a rank's file goes on where another one is cut off: it has later steps, or as
/// many and more messages.
bool goes_further(const Survey& file, const Survey& other) {
  constexpr std::int64_t kNone = -2 * kMostSteps;
  const std::int64_t ahead = file.steps.last.value_or(kNone) - other.steps.last.value_or(kNone);
  const std::int64_t apart = std::max(file.steps.apart, other.steps.apart);
  return ahead > apart || (ahead >= -apart && file.overflows > other.overflows);
}

/// Returns the files by path. Only one file of several ranks is kept: that of the first
/// rank, unless a later one goes further.
std::vector<ConsoleFile> of_one_rank(std::vector<ConsoleFile> files, frames::Notes& notes) {
  std::map<std::string, std::multimap<std::int64_t, ConsoleFile>> runs;  // by name, then by rank
  std::vector<ConsoleFile> kept;
  for (ConsoleFile& file : files) {
    if (const auto name = rank_name(file.path.filename().string())) {
      runs[name->others].emplace(name->rank, std::move(file));
    } else {
      kept.push_back(std::move(file));
    }
  }
  for (auto& [name, ranks] : runs) {
    auto best = ranks.begin();
    for (auto rank = ranks.begin(); rank != ranks.end(); ++rank) {
      if (goes_further(rank->second.survey, best->second.survey)) best = rank;
    }
    kept.push_back(std::move(best->second));
    ranks.erase(best);
    if (ranks.empty()) continue;
    notes.add(fmt::format("{}: treated as other ranks of the run in {}, and skipped",
                          and_more(ranks.begin()->second, ranks.size()), name_of(kept.back())));
  }
  std::ranges::sort(kept, {}, &ConsoleFile::path);
  return kept;
}

/// Returns true if a file's steps begin among those of a run's last file, or just behind.
bool continues(const PrintedSteps& before, const PrintedSteps& file) {
  const std::int64_t apart = 2 * std::max(before.apart, file.apart);
  return *file.first > *before.first && *file.first <= *before.last + apart;
}

}  // namespace

std::string name_of(const ConsoleFile& file) {
  return log::printable(file.path.filename().string());
}

std::vector<ConsoleRun> console_runs(std::vector<ConsoleFile> files, frames::Notes& notes) {
  files = of_one_rank(std::move(files), notes);
  std::ranges::stable_sort(files, {}, [](const ConsoleFile& file) {
    return file.survey.steps.first.value_or(kMostSteps + 1);
  });
  std::vector<ConsoleRun> runs;
  std::size_t with_steps = 0;
  for (ConsoleFile& file : files) {
    const PrintedSteps& steps = file.survey.steps;
    // A file without steps may be the standard error of the only run with steps.
    const auto run = std::ranges::find_if(runs, [&](const ConsoleRun& r) {
      return steps.first ? continues(r.back().survey.steps, steps) : with_steps == 1;
    });
    if (run == runs.end()) {
      with_steps += steps.first ? 1 : 0;
      runs.push_back({std::move(file)});
      continue;
    }
    if (steps.first) {
      notes.add(fmt::format(
          "{}: treated as continuing {} at step {}; that step and later ones in {} are skipped",
          name_of(file), name_of(run->back()), *steps.first, name_of(run->back())));
    }
    run->push_back(std::move(file));
  }
  if (runs.size() > 1) {
    notes.add(
        fmt::format("{}: treated as {} runs, since no file continues the steps of another: each "
                    "becomes a log of its own",
                    and_more(runs.front().front(), runs.size()), runs.size()));
  }
  return runs;
}

}  // namespace halfscope::analyzers::readers::console
