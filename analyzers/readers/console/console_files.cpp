// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/console/console_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>

#include "analyzers/readers/common/text_lines.hpp"

namespace halfscope::analyzers::readers::console {

using frames::Notes;

namespace {

using log::printable;

/// A name's number of a rank, and the name without it.
struct RankName {
  std::string others;
  std::int64_t rank = 0;
};

std::optional<RankName> rank_name(const std::string& name) {
  static constexpr std::array<std::string_view, 8> kWords = {"rank", "worker", "node", "gpu",
                                                             "host", "proc",   "task", "process"};
  for (const std::string_view word : kWords) {
    std::size_t at = name.find(word);
    if (at == std::string::npos) continue;
    at = name.find_first_not_of("-_.=", at + word.size());
    if (at == std::string::npos) continue;
    const std::size_t end = std::min(name.find_first_not_of("0123456789", at), name.size());
    const auto rank = common::integer_in(std::string_view(name).substr(at, end - at));
    if (rank) return RankName{name.substr(0, at) + "#" + name.substr(end), *rank};
  }
  return std::nullopt;
}

std::string name_of(const ConsoleFile& file) { return printable(file.path.filename().string()); }

/// "rank1.log and 6 more"
std::string and_more(const std::filesystem::path& first, std::size_t files) {
  const std::string name = printable(first.filename().string());
  return files == 1 ? name : fmt::format("{} and {} more", name, files - 1);
}

/// Whether a rank's file goes on where another one is cut off: to later steps, or, as far as either
/// tells steps, with more messages.
bool tells_more(const Survey& file, const Survey& other) {
  constexpr std::int64_t kNone = -2 * kMostSteps;
  const std::int64_t ahead = file.steps.last.value_or(kNone) - other.steps.last.value_or(kNone);
  const std::int64_t apart = std::max(file.steps.apart, other.steps.apart);
  return ahead > apart || (ahead >= -apart && file.overflows > other.overflows);
}

/// Returns the files, of each run the first rank's alone, or a later one's that tells more.
std::vector<ConsoleFile> of_one_rank(std::vector<ConsoleFile> files, Notes& notes) {
  std::map<std::string, std::vector<std::pair<std::int64_t, ConsoleFile>>> runs;
  std::vector<ConsoleFile> kept;
  for (ConsoleFile& file : files) {
    if (const auto name = rank_name(file.path.filename().string())) {
      runs[name->others].emplace_back(name->rank, std::move(file));
    } else {
      kept.push_back(std::move(file));
    }
  }
  for (auto& [name, ranks] : runs) {
    std::ranges::stable_sort(ranks, {}, [](const auto& file) { return file.first; });
    std::size_t best = 0;
    for (std::size_t i = 1; i < ranks.size(); ++i) {
      if (tells_more(ranks[i].second.survey, ranks[best].second.survey)) best = i;
    }
    kept.push_back(std::move(ranks[best].second));
    ranks.erase(ranks.begin() + static_cast<std::ptrdiff_t>(best));
    if (ranks.empty()) continue;
    notes.add(fmt::format("{}: treated as other ranks of the run in {}, and skipped",
                          and_more(ranks.front().second.path, ranks.size()), name_of(kept.back())));
  }
  std::ranges::sort(kept, {}, &ConsoleFile::path);
  return kept;
}

/// Whether a file's steps begin among those of a run's last file, or just behind.
bool goes_on(const ToldSteps& before, const ToldSteps& file) {
  const std::int64_t apart = 2 * std::max(before.apart, file.apart);
  return *file.first > *before.first && *file.first <= *before.last + apart;
}

}  // namespace

std::vector<ConsoleRun> console_runs(std::vector<ConsoleFile> files, Notes& notes) {
  files = of_one_rank(std::move(files), notes);
  std::ranges::stable_sort(files, {}, [](const ConsoleFile& file) {
    return file.survey.steps.first.value_or(kMostSteps + 1);
  });
  std::vector<ConsoleRun> runs;
  std::size_t with_steps = 0;
  for (ConsoleFile& file : files) {
    const ToldSteps& steps = file.survey.steps;
    // One without steps is the standard error of the one run with steps, say.
    const auto run = std::ranges::find_if(runs, [&](const ConsoleRun& r) {
      return steps.first ? goes_on(r.back().survey.steps, steps) : with_steps == 1;
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
                    and_more(runs.front().front().path, runs.size()), runs.size()));
  }
  return runs;
}

}  // namespace halfscope::analyzers::readers::console
