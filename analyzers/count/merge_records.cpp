// SPDX-License-Identifier: Apache-2.0
#include "analyzers/count/merge_records.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <algorithm>
#include <cmath>

#include "analyzers/readers/record/record_file.hpp"
#include "analyzers/readers/record/record_log.hpp"
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

void add_binades(const BoundedTable& table, std::size_t tensor, std::vector<BinadeRow>& rows) {
  for (const BinadeTable::Row& row : table.exact().rows()) {
    rows.push_back({.exponent = row.exponent,
                    .low = to_double({row.exponent, 0}),
                    .high = to_double({row.exponent, kFractionUnit - 1}),
                    .count = row.count(),
                    .negative = static_cast<std::int64_t>(row.negative),
                    .tensor = tensor});
  }
  for (const Span& span : table.spans()) {
    rows.push_back({.low = span.first ? to_double(*span.first) : 0,
                    .high = span.last ? to_double(*span.last) : HUGE_VAL,
                    .count = span.count,
                    .tensor = tensor});
  }
}

void add_scalars(const log::StepScalars& scalars, std::vector<ScalarRow>& rows) {
  const auto add = [&](std::string name, const auto& value) {
    if (value) rows.push_back({std::move(name), scalars.step, static_cast<double>(*value)});
  };
  add("loss", scalars.loss);
  add("learning_rate", scalars.learning_rate);
  add("loss_scale", scalars.loss_scale);
  add("found_inf", scalars.found_inf);
  add("max_abs/weight_grad", scalars.max_abs_weight_grad);
  add("max_abs/activation_grad", scalars.max_abs_activation_grad);
  for (const auto& [tag, value] : scalars.more) rows.push_back({tag, scalars.step, value});
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

PartRows rows_of(const frames::Part& part, frames::Notes& notes, const frames::Progress& progress) {
  PartRows rows;
  frames::Visitor visit;
  visit.frame = [&](frames::Frame&& frame) {
    add_binades(frame.table, rows.tensors.size(), rows.binades);
    rows.tensors.push_back({.name = std::move(frame.name),
                            .role = name_of(frame.role),
                            .dtype = frame.source_dtype ? name_of(*frame.source_dtype) : "",
                            .step = frame.step,
                            .scale = frame.scale,
                            .total = frame.table.total(),
                            .zero = frame.table.zero(),
                            .nan = frame.table.nan(),
                            .inf = frame.table.inf()});
  };
  visit.scalars = [&](const log::StepScalars& scalars) { add_scalars(scalars, rows.scalars); };
  part.read(visit, notes, progress);
  return rows;
}

}  // namespace halfscope::analyzers::count
