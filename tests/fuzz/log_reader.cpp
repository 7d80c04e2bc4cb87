// SPDX-License-Identifier: Apache-2.0
#include "log_reader.hpp"

#include <algorithm>
#include <cmath>

#include "analyzers/frames/quantised.hpp"
#include "analyzers/study.hpp"

namespace halfscope::fuzz {
namespace {

void check(const Interval& interval, std::uint64_t most) {
  require(interval.low <= interval.high && interval.high <= most);
}

void check_table(const BoundedTable& table) {
  const std::uint64_t total = table.total();
  std::uint64_t in_spans = 0;
  for (const Span& span : table.spans()) {
    require(!span.first || !span.last || *span.first <= *span.last);
    in_spans += span.count;
  }
  require(table.exact().total() + in_spans == total);
  check(table.zero(), total);
  check(table.nan(), total);
  check(table.inf(), total);
  check(table.finite_nonzero(), total);
  check(table.at_or_above({0, 0}), total);
  const auto largest = table.largest(), at_least = table.largest_at_least();
  require(!largest || !at_least || *at_least <= *largest);
  const auto smallest = table.smallest(), at_most = table.smallest_at_most();
  require(!smallest || !at_most || *smallest <= *at_most);
  std::uint64_t surely = 0;
  table.for_each_part([&](const auto& first, const auto& last, const Interval& count) {
    require(!first || !last || *first <= *last);
    check(count, total);
    surely += count.low;
  });
  require(surely <= total);
}

void check_frame(const analyzers::frames::Frame& frame) {
  require(analyzers::frames::usable_scale(frame.scale) &&
          analyzers::frames::usable_scale(frame.run_scale));
  check_table(frame.table);
}

void check_peak(const analyzers::frames::StepPeak& peak) {
  require(!(peak.max_abs < 0));
  require(!peak.at_least || !(*peak.at_least > peak.max_abs));
  require(!peak.min_abs_nonzero || *peak.min_abs_nonzero >= 0);
}

void check_kind(const analyzers::frames::LogKind& kind) {
  require(!kind.name.empty() && log::printable(kind.name) == kind.name);
  require(std::is_sorted(kind.gaps.begin(), kind.gaps.end()));
}

void check_quantised(const analyzers::frames::QuantisedSeries& series,
                     const analyzers::frames::Selection& s) {
  require(!series.layer.empty() && !series.values.empty());
  const analyzers::frames::QuantisedValue* before = nullptr;
  for (const analyzers::frames::QuantisedValue& value : series.values) {
    require(analyzers::frames::in_steps(s, value.step));
    require(0 <= value.low && value.low <= value.high && std::isfinite(value.high));
    require(before == nullptr || before->step < value.step);
    require(std::binary_search(series.log_steps.begin(), series.log_steps.end(), value.step));
    before = &value;
  }
}

void read_once(Reads& read, const std::filesystem::path& log,
               const analyzers::frames::Selection& s) {
  analyzers::frames::Visitor visit;
  visit.frame = [&](analyzers::frames::Frame&& frame) {
    require(analyzers::frames::in_steps(s, frame.step));
    check_frame(frame);
  };
  visit.peak = [&](const analyzers::frames::StepPeak& peak) {
    require(analyzers::frames::in_steps(s, peak.step));
    check_peak(peak);
  };
  visit.scalars = [&](const log::StepScalars& scalars) {
    require(analyzers::frames::in_steps(s, scalars.step));
  };
  visit.kind = check_kind;
  visit.quantised = [&](const analyzers::frames::QuantisedSeries& series) {
    check_quantised(series, s);
  };
  analyzers::frames::Notes notes;
  const analyzers::frames::Progress progress = [](std::uint64_t done, std::uint64_t all) {
    require(done <= all);
  };
  read_or_refuse(log, [&] { read(log, s, visit, notes, progress); });
  for (const std::string& note : notes) {
    require(log::printable(note) == note && note.size() < 4096);
  }
}

/// What `recommend` makes of it, but the words.
void answer(const std::filesystem::path& log) {
  analyzers::frames::Selection selection;
  selection.scalars_suffice = true;
  analyzers::underflow::Target target;
  target.by_default = true;
  try {
    const analyzers::Study study = analyzers::recommendation(
        analyzers::analyze({log}, target, selection, analyzers::recommend_passes(), {}), selection,
        {});
    require(!study.analysis.logs.empty());
  } catch (const log::BadInput& refused) {
    const std::string message = refused.what();
    require(log::printable(message) == message && message.size() < 4096);
  }
}

}  // namespace

void read_log(Recognises& recognises, Reads& read, const std::filesystem::path& log) {
  static_cast<void>(recognises(log));
  analyzers::frames::Selection selection;
  read_once(read, log, selection);
  selection.recorded_scale = 1024;
  selection.first_step = 1;
  read_once(read, log, selection);
  answer(log);
}

void read_files(Recognises& recognises, Reads& read, Bytes bytes) {
  const auto files = files_in(bytes);
  const Folder folder;
  for (const auto& [name, contents] : files) folder.write(name, contents);
  const bool one = files.size() == 1;
  read_log(recognises, read, one ? folder.path() / files.front().first : folder.path());
}

}  // namespace halfscope::fuzz
