// SPDX-License-Identifier: Apache-2.0
#include "analyzers/count/merge_records.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <tuple>

#include "analyzers/readers/record/record_file.hpp"
#include "halfscope/log/error.hpp"
#include "halfscope/log/output_file.hpp"

namespace halfscope::analyzers::count {

namespace fs = std::filesystem;
using log::printable;
using readers::record::PartHeader;
using readers::record::PartPlace;
using readers::record::RecordFile;

namespace {

struct Placed {
  const RecordFile* file;
  const PartPlace* place;
  const PartHeader& header() const { return place->header; }
  std::string shown() const { return printable(file->path().string()); }
};

std::string bytes_of(const Placed& part) {
  std::string bytes;
  bytes.reserve(part.place->end - part.place->begin);
  part.file->for_each_piece(*part.place, [&](std::string_view piece) { bytes += piece; });
  return bytes;
}

/// All parts, sorted, each once.
class Union {
 public:
  explicit Union(std::vector<std::string>& problems) : problems_(problems) {}

  void add(const RecordFile& file) {
    for (const PartPlace& place : file.parts()) all_.push_back({&file, &place});
  }

  std::vector<Placed> parts() {
    std::ranges::stable_sort(all_, [](const Placed& a, const Placed& b) {
      return std::tie(a.header().log, a.header().index) <
             std::tie(b.header().log, b.header().index);
    });
    std::vector<Placed> parts;
    for (const Placed& part : all_) {
      const bool known = !parts.empty() && parts.back().header().log == part.header().log;
      if (known && !agree(parts.back(), part)) continue;
      if (known && parts.back().header().index == part.header().index) {
        require_same(parts.back(), part);
      } else {
        parts.push_back(part);
      }
    }
    return parts;
  }

 private:
  bool agree(const Placed& a, const Placed& b) {
    const PartHeader &one = a.header(), &other = b.header();
    if (one.settings != other.settings) {
      problems_.push_back(fmt::format(
          "{}: {} was counted with other options ({}) than in {} ({}); "
          "count all parts of a log with the same",
          b.shown(), printable(other.shown()), in_words(other), a.shown(), in_words(one)));
      return false;
    }
    if (one.of == other.of) return true;
    problems_.push_back(
        fmt::format("{}: {} is one of {} parts, but one of {} in {}; the log has "
                    "changed: delete the records of it and count it again",
                    b.shown(), printable(other.shown()), other.of, one.of, a.shown()));
    return false;
  }

  void require_same(const Placed& a, const Placed& b) {
    const auto size = [](const Placed& part) { return part.place->end - part.place->begin; };
    if (size(a) == size(b) && bytes_of(a) == bytes_of(b)) return;
    problems_.push_back(fmt::format("{}: {} differs from that in {}; the log has changed: keep one",
                                    b.shown(), printable(b.header().shown()), a.shown()));
  }

  static std::string in_words(const PartHeader& header) {
    return header.settings.empty() ? "none" : printable(header.settings);
  }

  std::vector<std::string>& problems_;
  std::vector<Placed> all_;
};

std::vector<RecordFile> open_all(const std::vector<fs::path>& files,
                                 std::vector<std::string>& problems) {
  std::vector<RecordFile> opened;
  opened.reserve(files.size());
  const log::OpenFiles shared;  // so that not all stay open
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

/// A file that is written over must be a record.
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
  const std::vector<RecordFile> opened = open_all(files, merged.problems);
  Union all(merged.problems);
  for (const RecordFile& file : opened) all.add(file);
  const std::vector<Placed> parts = all.parts();
  require_record_or_nothing(out, merged.problems);
  merged.logs = logs_of(parts);
  if (wanted == Wanted::all_parts) require_all(merged.logs, merged.problems);
  if (merged.problems.empty()) write(parts, out, progress);
  return merged;
}

}  // namespace halfscope::analyzers::count
