// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/record/record_log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <system_error>

#include "analyzers/frames/whole_tensors.hpp"
#include "analyzers/readers/record/record.pb.h"
#include "analyzers/readers/record/record_file.hpp"
#include "analyzers/readers/record/record_items.hpp"
#include "analyzers/readers/run_log/ranks.hpp"
#include "halfscope/log/error.hpp"
#include "halfscope/log/manifest.hpp"

namespace halfscope::analyzers::readers::record {

namespace fs = std::filesystem;
using frames::Message;
using frames::Notes;
using frames::Option;
using frames::Part;
using frames::Parts;
using frames::Selection;
using log::BadInput;
using log::printable;

namespace {

/// A file, and which of its logs; empty: whichever there are.
struct RecordPath {
  log::OpenPath file;
  std::string log;
};

/// "all.hst/runs/a" where all.hst is a file.
std::optional<RecordPath> find_record(const log::OpenPath& path) {
  const std::string text = path.path.string();
  for (std::size_t end = text.size(); end != 0 && end != std::string::npos;
       end = text.rfind('/', end - 1)) {
    const log::OpenPath file = path.at(text.substr(0, end));
    std::error_code unreadable;
    const fs::file_status status = fs::status(file.path, unreadable);
    if (fs::is_directory(status)) return std::nullopt;
    if (!fs::is_regular_file(status)) continue;
    if (!is_record_file(file)) return std::nullopt;
    return RecordPath{file, end == text.size() ? "" : text.substr(end + 1)};
  }
  return std::nullopt;
}

/// Of what is one.
RecordPath require_record(const log::OpenPath& path) {
  if (const auto found = find_record(path)) return *found;
  throw BadInput(no_record_text(printable(path.path.string())));
}

/// What was said where values were counted cannot be said again.
void refuse_reading_options(const std::string& shown, const Selection& s) {
  std::optional<Message> option;
  if (s.recorded_scale || s.scale_tag) option = Option::recorded_scale;
  if (!s.roles.empty()) option = frames::role_option();
  if (s.read_as) option = Option::as;
  if (s.ranks) option = Message("--ranks");
  if (!option) return;
  throw frames::OptionHelps(shown + ": is counted already, so " + *option +
                            " comes too late; count the log again with it");
}

/// A file that its parts share.
struct Opened {
  explicit Opened(const log::OpenPath& path) : file(path), shown(printable(path.path.string())) {}
  RecordFile file;
  std::string shown;
};

std::optional<log::Manifest> manifest_of(const PartHeader& header, const std::string& where) {
  if (!header.manifest) return std::nullopt;
  return log::manifest_of(*header.manifest, where);
}

Part part_of(const std::shared_ptr<const Opened>& opened, const PartPlace& place,
             const Selection& selection) {
  const PartHeader& header = place.header;
  Part part;
  part.log = header.log;
  part.index = header.index;
  part.of = header.of;
  part.name = header.name;
  part.settings = header.settings;
  const std::string where = opened->shown + ": " + printable(header.shown());
  part.manifest = [opened, &header, where] { return manifest_of(header, where); };
  part.read = [opened, &place, selection, where](const frames::Visitor& visit, Notes& notes,
                                                 const frames::Progress& progress) {
    const std::optional<log::Manifest> manifest = manifest_of(place.header, where);
    ItemTeller teller(selection, visit, manifest, where);
    opened->file.for_each_item(place, [&](const halfscope::record::Item& item) {
      teller.tell(item);
      tell_counts(item, selection, where, {.sums = visit.sums});
      for (const std::string& note : item.end().notes()) frames::note_once(notes, printable(note));
    });
    if (progress) progress(place.end, opened->file.parts().back().end);
  };
  part.read_counts = [opened, &place, selection, where](const frames::WholeCountsVisitor& visit) {
    opened->file.for_each_item(place, [&](const halfscope::record::Item& item) {
      tell_counts(item, selection, where, visit);
    });
  };
  return part;
}

std::vector<std::string> logs_of(const RecordFile& file) {
  std::set<std::string> logs;
  for (const PartPlace& part : file.parts()) logs.insert(part.header.log);
  return {logs.begin(), logs.end()};
}

/// The parts of a file that are of a log, or all.
Parts parts_of(const std::shared_ptr<const Opened>& opened, const std::string& log,
               const Selection& selection) {
  refuse_reading_options(opened->shown, selection);
  Parts parts;
  for (const PartPlace& place : opened->file.parts()) {
    if (log.empty() || place.header.log == log) parts.push_back(part_of(opened, place, selection));
  }
  std::ranges::stable_sort(parts, [](const Part& a, const Part& b) {
    return std::tie(a.log, a.index) < std::tie(b.log, b.index);
  });
  return parts;
}

/// "runs/a, runs/b and 3 more"
std::string list_text(const std::vector<std::string>& logs) {
  constexpr std::size_t kMost = 3;
  std::string text;
  for (std::size_t i = 0; i < std::min(kMost, logs.size()); ++i) {
    text += (i == 0 ? "" : ", ") + printable(logs[i]);
  }
  if (logs.size() > kMost) text += fmt::format(" and {} more", logs.size() - kMost);
  return text;
}

void require_one_log(const std::string& file, const std::string& wanted, const Parts& parts,
                     const std::vector<std::string>& logs) {
  if (parts.empty()) {
    throw BadInput(
        fmt::format("{}: has no log '{}'; it has {}", file, printable(wanted), list_text(logs)));
  }
  if (parts.front().log == parts.back().log) return;
  throw BadInput(fmt::format("{}: holds {} logs, {}; name one, such as {}/{}", file, logs.size(),
                             list_text(logs), file, printable(logs.front())));
}

void note_missing(const std::string& file, const Parts& parts, Notes& notes) {
  const Part& first = parts.front();
  if (parts.size() >= first.of) return;
  notes.push_back(fmt::format("{}: has {} of the {} parts of {}; merge the others into it", file,
                              parts.size(), first.of, printable(first.log)));
}

}  // namespace

bool is_record(const log::OpenPath& log) { return find_record(log).has_value(); }

std::vector<std::string> logs_in(const log::OpenPath& path) {
  const RecordPath record = require_record(path);
  if (!record.log.empty()) return {record.log};
  const RecordFile file(record.file);
  const std::vector<std::string> logs = logs_of(file);
  if (!logs.empty()) return logs;
  for (const std::string& damage : file.damage()) throw BadInput(damage);
  throw BadInput(printable(path.path.string()) + ": holds no part; merge those that do");
}

fs::path path_of(const log::OpenPath& path, const std::string& log) {
  const RecordPath record = require_record(path);
  return record.file.path.string() + "/" + log;
}

Parts record_parts(const log::OpenPath& log, const Selection& selection) {
  const auto record = require_record(log);
  return parts_of(std::make_shared<const Opened>(record.file), record.log, selection);
}

void read_record(const log::OpenPath& log, const common::TimelineSelection& selection,
                 const frames::Visitor& visit, Notes& notes, const frames::Progress& progress) {
  const auto record = require_record(log);
  const auto opened = std::make_shared<const Opened>(record.file);
  const Parts parts = parts_of(opened, record.log, selection);
  require_one_log(opened->shown, record.log, parts, logs_of(opened->file));
  for (const std::string& damage : opened->file.damage()) notes.push_back(damage);
  const bool ranks = !parts.front().name.empty() && parts.front().manifest();
  if (ranks) {
    run_log::join_ranks(parts, visit, notes, progress);
  } else {
    note_missing(opened->shown, parts, notes);
    for (const Part& part : parts) part.read(visit, notes, progress);
  }
}

}  // namespace halfscope::analyzers::readers::record
