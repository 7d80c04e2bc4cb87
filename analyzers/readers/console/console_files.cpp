// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/console/console_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <tuple>
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

/// "rank1.log and 6 more"
std::string names_of(const std::vector<std::filesystem::path>& files) {
  std::string names = printable(files.front().filename().string());
  return files.size() == 1 ? names : fmt::format("{} and {} more", names, files.size() - 1);
}

/// Whether a rank's file goes on where the one before is cut off: to later steps, or, as far as
/// either tells steps, with more messages.
bool tells_more(const Survey& file, const Survey& before) {
  if (!file.last || !before.last) {
    return file.last.has_value() > before.last.has_value() ||
           (file.last.has_value() == before.last.has_value() && file.overflows > before.overflows);
  }
  const std::int64_t apart = std::max(file.apart, before.apart);
  if (*file.last > *before.last + apart) return true;
  return *file.last + apart >= *before.last && file.overflows > before.overflows;
}

/// Leaves the first rank's file of each run, or a later one's that tells more.
void keep_first_rank(std::vector<ConsoleFile>& files, Notes& notes) {
  struct OfRank {
    std::int64_t rank;
    std::filesystem::path path;
    Survey survey;
  };
  std::map<std::string, std::vector<OfRank>> ranks;
  for (const ConsoleFile& file : files) {
    if (const auto name = rank_name(file.path.filename().string())) {
      ranks[name->others].push_back({name->rank, file.path, file.survey});
    }
  }
  for (auto& [name, of_run] : ranks) {
    if (of_run.size() < 2) continue;
    std::ranges::sort(of_run, {}, [](const OfRank& r) { return std::tie(r.rank, r.path); });
    std::size_t kept = 0;
    for (std::size_t i = 1; i < of_run.size(); ++i) {
      if (tells_more(of_run[i].survey, of_run[kept].survey)) kept = i;
    }
    std::vector<std::filesystem::path> others;
    for (std::size_t i = 0; i < of_run.size(); ++i) {
      if (i != kept) others.push_back(of_run[i].path);
    }
    std::erase_if(files, [&](const ConsoleFile& file) {
      return std::find(others.begin(), others.end(), file.path) != others.end();
    });
    notes.add(fmt::format("{}: treated as other ranks of the run in {}, and skipped",
                          names_of(others), printable(of_run[kept].path.filename().string())));
  }
}

/// Whether a file's steps begin among those of a run's last file, or just behind.
bool goes_on(const Survey& before, const Survey& file) {
  const std::int64_t apart = 2 * std::max(before.apart, file.apart);
  return *file.first > *before.first && *file.first <= *before.last + apart;
}

bool tells_steps(const ConsoleFile& file) { return file.survey.first.has_value(); }

void tell_runs(const std::vector<ConsoleRun>& runs, Notes& notes) {
  for (const ConsoleRun& run : runs) {
    for (std::size_t i = 1; i < run.size(); ++i) {
      if (!tells_steps(run[i])) continue;
      notes.add(fmt::format(
          "{}: treated as continuing {} at step {}; that step and later ones in {} are skipped",
          printable(run[i].path.filename().string()),
          printable(run[i - 1].path.filename().string()), *run[i].survey.first,
          printable(run[i - 1].path.filename().string())));
    }
  }
  if (runs.size() < 2) return;
  std::vector<std::filesystem::path> first;
  for (const ConsoleRun& run : runs) first.push_back(run.front().path);
  notes.add(
      fmt::format("{}: treated as {} runs, since no file continues the steps of another: each "
                  "becomes a log of its own",
                  names_of(first), runs.size()));
}

}  // namespace

std::vector<ConsoleRun> console_runs(std::vector<ConsoleFile> files, Notes& notes) {
  keep_first_rank(files, notes);
  const auto without = std::stable_partition(files.begin(), files.end(), tells_steps);
  std::stable_sort(files.begin(), without, [](const ConsoleFile& a, const ConsoleFile& b) {
    return *a.survey.first < *b.survey.first;
  });
  std::vector<ConsoleRun> runs;
  for (auto file = files.begin(); file != without; ++file) {
    const auto run = std::find_if(runs.begin(), runs.end(), [&](const ConsoleRun& r) {
      return goes_on(r.back().survey, file->survey);
    });
    if (run == runs.end()) {
      runs.push_back({std::move(*file)});
    } else {
      run->push_back(std::move(*file));
    }
  }
  const bool one = runs.size() == 1;  // the standard error of what one run printed, say
  for (auto file = without; file != files.end(); ++file) {
    if (one) {
      runs.front().push_back(std::move(*file));
    } else {
      runs.push_back({std::move(*file)});
    }
  }
  tell_runs(runs, notes);
  return runs;
}

}  // namespace halfscope::analyzers::readers::console
