// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/record/record_log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <any>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <system_error>
#include <tuple>
#include <utility>

#include "analyzers/frames/whole_tensors.hpp"
#include "analyzers/readers/record/record.pb.h"
#include "analyzers/readers/record/record_file.hpp"
#include "analyzers/readers/record/record_items.hpp"
#include "analyzers/readers/run_log/run_log.hpp"
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

/// The file of a record, and the name of a log in it; the name is empty if the path has none.
struct RecordPath {
  log::OpenPath file;
  std::string log;
};

/// Splits "all.hst/runs/a" into record and log. Empty if no part of the path is a record.
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

/// Same as find_record(), but throws log::BadInput if the path is not a record.
RecordPath require_record(const log::OpenPath& path) {
  if (const auto found = find_record(path)) return *found;
  throw BadInput(no_record_text(printable(path.path.string())));
}

/// Throws if the selection has an option that applies only when values are counted.
void refuse_reading_options(const std::string& shown, const Selection& s) {
  std::optional<Message> option;
  if (s.recorded_scale || s.scale_tag) option = Option::recorded_scale;
  if (!s.roles.empty()) option = frames::role_option();
  if (s.read_as) option = Option::as;
  if (s.ranks) option = Message("--ranks");
  if (s.lines) option = Option::lines;
  if (s.learning_rate) option = Message("--lr");
  if (!option) return;
  throw frames::InputNeedsOption(shown + ": is counted already, so " + *option +
                                 " comes too late; count the log again with it");
}

/// An open record, shared by its parts.
struct Opened {
  explicit Opened(const log::OpenPath& path) : file(path), shown(printable(path.path.string())) {
    const RecordFile* const alone = &file;
    parts = united(std::span(&alone, 1), problems);
  }
  RecordFile file;
  std::string shown;
  std::vector<Placed> parts;          ///< sorted by log and index, each once
  std::vector<std::string> problems;  ///< parts that do not belong together; from united()
};
using Shared = std::shared_ptr<const Opened>;

/// Returns an open record, which is read once and then kept with the path's open files. It opens
/// files of its own, because kept objects must not refer to those.
Shared opened(const log::OpenPath& path) {
  const std::any kept = path.files.kept(path.path);
  if (const auto* const known = std::any_cast<Shared>(&kept)) return *known;
  Shared made =
      std::make_shared<const Opened>(log::OpenPath(path.path, path.files.none_of_these()));
  path.files.keep(path.path, made);
  return made;
}

std::optional<log::Manifest> manifest_of(const PartHeader& header, const std::string& where) {
  if (!header.manifest) return std::nullopt;
  return log::manifest_of(*header.manifest, where);
}

Part part_of(const Shared& opened, const PartPlace& place, const Selection& selection) {
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
      for (const std::string& note : item.end().notes()) notes.add(printable(note));
    });
    if (progress) progress(place.end, opened->file.parts().back().end);
  };
  part.bytes = [opened, &place](const std::function<void(std::string_view)>& take) {
    opened->file.for_each_piece(place, take);
  };
  part.read_counts = [opened, &place, selection, where](const frames::WholeCountsVisitor& visit) {
    opened->file.for_each_item(place, [&](const halfscope::record::Item& item) {
      tell_counts(item, selection, where, visit);
    });
  };
  return part;
}

std::vector<std::string> logs_of(const Opened& opened) {
  std::vector<std::string> logs;
  for (const Placed& part : opened.parts) {
    if (logs.empty() || logs.back() != part.header().log) logs.push_back(part.header().log);
  }
  return logs;
}

/// Returns the parts of one log in a file, or of all logs if `log` is empty.
Parts parts_of(const Shared& opened, const std::string& log, const Selection& selection) {
  refuse_reading_options(opened->shown, selection);
  for (const std::string& problem : opened->problems) throw BadInput(problem);
  Parts parts;
  for (const Placed& part : opened->parts) {
    if (!log.empty() && part.header().log != log) continue;
    parts.push_back(part_of(opened, *part.place, selection));
  }
  return parts;
}

/// Lists logs for a message: "runs/a, runs/b, runs/c and 3 more".
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
  notes.add(fmt::format("{}: has {} of the {} parts of {}; merge the others into it", file,
                        parts.size(), first.of, printable(first.log)));
}

std::string file_of(const Placed& part) { return printable(part.file->path().string()); }
std::string name_of(const Placed& part) { return printable(part.header().shown()); }

std::string bytes_of(const Placed& part) {
  std::string bytes;
  bytes.reserve(part.place->end - part.place->begin);
  part.file->for_each_piece(*part.place, [&](std::string_view piece) { bytes += piece; });
  return bytes;
}

/// Returns the reason why two parts of a log do not belong together. Empty if they do.
std::string disagreement(const Placed& a, const Placed& b) {
  const PartHeader &one = a.header(), &other = b.header();
  if (one.settings != other.settings) {
    const auto words = [](const PartHeader& header) {
      return header.settings.empty() ? "none" : printable(header.settings);
    };
    return fmt::format(
        "{}: {} was counted with other options ({}) than in {} ({}); count all parts of a log with "
        "the same",
        file_of(b), name_of(b), words(other), file_of(a), words(one));
  }
  if (one.of == other.of) return "";
  return fmt::format(
      "{}: {} is one of {} parts, and {} in {} one of {}; the log has changed: delete its records "
      "and count it again",
      file_of(b), name_of(b), other.of, name_of(a), file_of(a), one.of);
}

bool are_same(const Placed& a, const Placed& b) {
  const auto size = [](const Placed& part) { return part.place->end - part.place->begin; };
  return size(a) == size(b) && bytes_of(a) == bytes_of(b);
}

}  // namespace

bool is_record(const log::OpenPath& log) { return find_record(log).has_value(); }

std::vector<std::string> damage_of(const log::OpenPath& log) {
  const auto record = find_record(log);
  return record ? opened(record->file)->file.damage() : std::vector<std::string>();
}

std::vector<std::string> logs_in(const log::OpenPath& path) {
  const RecordPath record = require_record(path);
  if (!record.log.empty()) return {record.log};
  const Shared file = opened(record.file);
  const std::vector<std::string> logs = logs_of(*file);
  if (!logs.empty()) return logs;
  for (const std::string& damage : file->file.damage()) throw BadInput(damage);
  throw BadInput(printable(path.path.string()) + ": holds no part; merge those that do");
}

fs::path path_of(const log::OpenPath& path, const std::string& log) {
  const RecordPath record = require_record(path);
  return record.file.path.string() + "/" + log;
}

Parts record_parts(const log::OpenPath& log, const Selection& selection) {
  const auto record = require_record(log);
  return parts_of(opened(record.file), record.log, selection);
}

void read_record(const log::OpenPath& log, const common::TimelineSelection& selection,
                 const frames::Visitor& visit, Notes& notes, const frames::Progress& progress) {
  const auto record = require_record(log);
  const Shared file = opened(record.file);
  const Parts parts = parts_of(file, record.log, selection);
  require_one_log(file->shown, record.log, parts, logs_of(*file));
  for (const std::string& damage : file->file.damage()) notes.add(damage);
  const bool ranks = !parts.front().name.empty() && parts.front().manifest();
  if (ranks) {
    run_log::join_ranks(parts, visit, notes, progress);
  } else {
    note_missing(file->shown, parts, notes);
    for (const Part& part : parts) part.read(visit, notes, progress);
  }
}

std::vector<Placed> united(std::span<const RecordFile* const> files,
                           std::vector<std::string>& problems) {
  std::vector<Placed> all, parts;
  for (const RecordFile* const file : files) {
    for (const PartPlace& place : file->parts()) all.push_back({file, &place});
  }
  std::ranges::stable_sort(all, [](const Placed& a, const Placed& b) {
    return std::tie(a.header().log, a.header().index) < std::tie(b.header().log, b.header().index);
  });
  std::set<std::pair<std::string, const RecordFile*>> refused;  // log, file
  for (const Placed& part : all) {
    const bool follows = !parts.empty() && parts.back().header().log == part.header().log;
    if (std::string why = follows ? disagreement(parts.back(), part) : ""; !why.empty()) {
      if (refused.emplace(part.header().log, part.file).second) problems.push_back(std::move(why));
    } else if (!follows || parts.back().header().index != part.header().index) {
      parts.push_back(part);
    } else if (!are_same(parts.back(), part)) {
      problems.push_back(
          fmt::format("{}: {} differs from that in {}; the log has changed: keep one",
                      file_of(part), name_of(part), file_of(parts.back())));
    }
  }
  return parts;
}

}  // namespace halfscope::analyzers::readers::record
