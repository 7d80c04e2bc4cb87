// SPDX-License-Identifier: Apache-2.0
#include "analyzers/count/merge_records.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>

#include "analyzers/readers/record/record_file.hpp"
#include "analyzers/readers/record/united.hpp"
#include "halfscope/log/error.hpp"
#include "halfscope/log/output_file.hpp"

namespace halfscope::analyzers::count {

namespace fs = std::filesystem;
using log::printable;
using readers::record::PartHeader;
using readers::record::Placed;
using readers::record::RecordFile;

namespace {

std::vector<RecordFile> open_all(const std::vector<fs::path>& files,
                                 std::vector<std::string>& problems) {
  std::vector<RecordFile> opened;
  opened.reserve(files.size());
  const log::OpenFiles shared;  // limits the number of open files
  for (const fs::path& file : files) {
    try {
      const RecordFile& one = opened.emplace_back(log::OpenPath(file, shared));
      problems.insert(problems.end(), one.damage().begin(), one.damage().end());
    } catch (const log::BadInput& error) {
      problems.emplace_back(error.what());
    }
  }
  return opened;
}

/// Adds a problem if the output file exists, is not empty and is not a record file.
void require_record_or_nothing(const fs::path& out, std::vector<std::string>& problems) {
  std::error_code unreadable;
  const bool taken = fs::is_regular_file(out, unreadable) && fs::file_size(out, unreadable) != 0;
  if (!taken || readers::record::is_record_file(out)) return;
  problems.push_back(readers::record::no_record_text(printable(out.string())) +
                     ", and is not written over; name another file");
}

std::vector<MergedLog> logs_of(const std::vector<Placed>& parts) {
  std::vector<MergedLog> logs;
  for (const Placed& part : parts) {
    const PartHeader& header = part.header();
    const bool known = !logs.empty() && logs.back().log == header.log;
    MergedLog& log = known ? logs.back() : logs.emplace_back();
    log = {header.log, log.parts + 1, header.of};
  }
  return logs;
}

void require_all(const std::vector<MergedLog>& logs, std::vector<std::string>& problems) {
  for (const MergedLog& log : logs) {
    if (log.missing() == 0) continue;
    problems.push_back(fmt::format("{}: {} of {} parts are missing; count them and merge again",
                                   printable(log.log), log.missing(), log.of));
  }
}

void write(const std::vector<Placed>& parts, const fs::path& out,
           const frames::Progress& progress) {
  std::uint64_t all = 0, done = 0;
  for (const Placed& part : parts) all += part.place->end - part.place->begin;
  log::OutputFile file(out);
  file.write(readers::record::file_header());
  for (const Placed& part : parts) {
    part.file->for_each_piece(*part.place, [&](std::string_view piece) {
      file.write(piece);
      done += piece.size();
      if (progress) progress(done, all);
    });
  }
  file.commit();
}

}  // namespace

Merged merge_records(const std::vector<fs::path>& files, const fs::path& out, Wanted wanted,
                     const frames::Progress& progress) {
  Merged merged;
  const readers::record::Alone alone(out, O_RDONLY);
  const std::vector<RecordFile> opened = open_all(files, merged.problems);
  std::vector<const RecordFile*> all;
  for (const RecordFile& file : opened) all.push_back(&file);
  const std::vector<Placed> parts = readers::record::united(all, merged.problems);
  require_record_or_nothing(out, merged.problems);
  merged.logs = logs_of(parts);
  if (wanted == Wanted::all_parts) require_all(merged.logs, merged.problems);
  if (merged.problems.empty()) write(parts, out, progress);
  return merged;
}

}  // namespace halfscope::analyzers::count
