// SPDX-License-Identifier: Apache-2.0
#include "analyzers/count/count_parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/algorithm/string/replace.hpp>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "analyzers/frames/part.hpp"
#include "analyzers/overflow/attention_scores.hpp"
#include "analyzers/readers/input/open_input.hpp"
#include "analyzers/readers/kinds.hpp"
#include "analyzers/readers/logs.hpp"
#include "analyzers/readers/record/record.pb.h"
#include "analyzers/readers/record/record_file.hpp"
#include "analyzers/readers/record/record_items.hpp"
#include "analyzers/readers/record/record_log.hpp"
#include "analyzers/underflow/whole_findings.hpp"
#include "analyzers/updates/pairs.hpp"
#include "halfscope/log/error.hpp"
#include "halfscope/log/manifest.hpp"
#include "halfscope/number/format_names.hpp"

namespace halfscope::analyzers::count {

namespace fs = std::filesystem;
using frames::Part;
using frames::Selection;
using frames::WholeStep;
using log::printable;
using readers::record::PartHeader;
using readers::record::PartPlace;
using readers::record::RecordWriter;

namespace {

/// The 16-bit formats in which a run may keep its weights.
constexpr std::array<std::pair<std::string_view, Format>, 2> kWeightFormats = {
    {{"binary16", kBinary16}, {"bfloat16", kBfloat16}}};

frames::CountedSums sums_of(const frames::WholeTensor& tensor) {
  frames::CountedSums counted{tensor.name, tensor.step, tensor.scale, tensor.view.count, {}};
  counted.sums.add(tensor.view);
  return counted;
}

frames::CountedUpdates updates_of(const updates::Pair& pair, const std::string& weight,
                                  underflow::UpdateSource source, std::int64_t step) {
  frames::CountedUpdates counted{weight, step, std::string(underflow::name_of(source)), {}};
  for (const auto& [name, format] : kWeightFormats) {
    UpdateOptions options;
    options.format = format;
    counted.by_format.emplace_back(name, pair.count(options, [](double) {}));
  }
  return counted;
}

/// Returns the options that change the counts, in the form of the command line.
std::string settings_text(const Selection& s) {
  std::string text;
  const auto add = [&](const std::string& option) { text += (text.empty() ? "" : " ") + option; };
  if (s.recorded_scale) add(fmt::format("--recorded-scale {}", *s.recorded_scale));
  if (s.scale_tag) add("--recorded-scale " + *s.scale_tag);
  for (const auto& [glob, role] : s.roles) add(fmt::format("--role {}={}", glob, name_of(role)));
  if (s.read_as) add(fmt::format("--as {}", name_of(*s.read_as)));
  if (s.ranks) add(fmt::format("--ranks {}", *s.ranks));
  if (s.lines) add("--lines " + *s.lines);
  if (s.learning_rate) add(fmt::format("--lr {}", *s.learning_rate));
  return text;
}

std::string in_words(const std::string& settings) {
  return settings.empty() ? "without options" : "with " + printable(settings);
}

/// The parts that a file has: for each log its options and part numbers.
class Known {
 public:
  Known(const std::vector<PartPlace>& parts, const fs::path& file) : file_(file) {
    for (const PartPlace& part : parts) {
      Log& log = logs_[part.header.log];
      log.settings = part.header.settings;
      log.indices.insert(part.header.index);
    }
  }
  /// Returns true if the file has the part. Throws log::BadInput if it has parts of the log that
  /// were counted with other options.
  bool has(const Part& part, const std::string& settings) const {
    const auto log = logs_.find(part.log);
    if (log == logs_.end()) return false;
    if (log->second.settings == settings) return log->second.indices.contains(part.index);
    throw log::BadInput(fmt::format(
        "{}: has parts of {} that were counted {}, and this one is to be counted {}; use one file "
        "for each setting",
        printable(file_.string()), printable(part.log), in_words(log->second.settings),
        in_words(settings)));
  }

 private:
  struct Log {
    std::string settings;
    std::set<std::uint64_t> indices;
  };
  std::map<std::string, Log> logs_;
  const fs::path& file_;
};

PartHeader header_of(const Part& part, const std::string& settings) {
  const std::optional<log::Manifest> manifest = part.manifest();
  PartHeader header{.log = part.log,
                    .index = part.index,
                    .of = part.of,
                    .name = part.name,
                    .settings = settings,
                    .manifest = {}};
  if (manifest) header.manifest = log::text_of(*manifest, printable(header.shown()));
  return header;
}

std::string named(const Origin& origin, std::string text) {
  for (const Origin::Renamed& name : origin.renamed) boost::replace_all(text, name.from, name.to);
  return text;
}

/// Counts the whole tensors of a part, step by step. Counts no sums if `visit.sums` is empty. Holds
/// one pair of tensors in memory at a time.
void count_whole(const frames::Part& part, const frames::Selection& selection,
                 const frames::WholeCountsVisitor& visit, frames::Notes& notes,
                 const frames::Progress& progress) {
  frames::TensorsOfSteps tensors(
      selection, [&](const frames::WholeTensor& tensor) { visit.sums(sums_of(tensor)); });
  const auto take = [&](const WholeStep& step) {
    for (updates::PairNames& names : updates::pairs_of(step, selection, notes)) {
      const underflow::UpdateSource source = names.source;
      const std::string weight = names.weight;
      const updates::Pair pair(step, selection, std::move(names));
      if (pair.too_narrow() == nullptr) {
        visit.updates(updates_of(pair, weight, source, step.step));
      }
      if (!visit.sums) continue;
      pair.for_each_tensor(
          [&](const log::NamedTensor& tensor) { tensors.take(step, tensor, step.tell); });
    }
    overflow::for_each_query_and_key(
        step, selection,
        [&](const frames::WholeTensor& tensor) {
          if (auto rows = overflow::rows_of(tensor, true)) visit.rows(std::move(*rows));
        },
        [&](const log::NamedTensor& tensor) {
          if (visit.sums) tensors.take(step, tensor, {});
        });
    if (visit.sums) tensors.take(step, step.tell);
  };
  part.read_whole(take, notes, progress);
  tensors.finish(part.log, notes);
}

void count(const Origin& origin, const Part& part, const Selection& selection,
           const std::string& settings, RecordWriter& writer, frames::Notes& notes,
           const frames::Progress& progress) {
  if (part.bytes) return part.bytes([&](std::string_view piece) { writer.copy(piece); });
  writer.begin(header_of(part, settings));
  frames::Notes of_part;
  const auto add = [&](const auto& counted) { writer.add(readers::record::item_of(counted)); };
  bool has_sums = false;  // a reader that visits sums beside the histograms visits all of them
  frames::Visitor visit = readers::record::items_of([&](const auto& item) { writer.add(item); });
  visit.run = [&, run = visit.run](const std::string& name) { run(named(origin, name)); };
  visit.sums = [&](const frames::CountedSums& counted) {
    has_sums = true;
    add(counted);
  };
  part.read(visit, of_part, progress);
  const frames::WholeCountsVisitor rest = {has_sums ? frames::SumsVisitor() : add, add, add};
  if (part.read_whole) count_whole(part, selection, rest, of_part, progress);
  std::vector<std::string> texts;
  for (const frames::Message& note : of_part) texts.push_back(named(origin, note.text()));
  notes.add_all(of_part);
  writer.end(texts);
}

/// Returns the path without a trailing slash and "." steps, so that a log has one name.
fs::path plain(const fs::path& path) {
  fs::path to;
  for (const fs::path& step : path) {
    if (!step.empty() && step != ".") to /= step;
  }
  return to.empty() ? fs::path(".") : to;
}

/// Returns the parts of the logs, each once; adds a note for each damaged part of a record.
frames::Parts parts_with_notes(const Origin& origin, const Selection& selection,
                               frames::Notes& notes) {
  const readers::Logs opened(origin.files, selection);
  std::set<std::pair<std::string, std::uint64_t>> known;
  frames::Parts parts;
  for (const fs::path& path : origin.logs) {
    const readers::Log& log = opened.at(plain(path));
    for (const std::string& damage : readers::record::damage_of(log.opened())) {
      notes.add(named(origin, damage));
    }
    for (Part& part : readers::parts_of(log, selection)) {
      part.log = named(origin, std::move(part.log));
      if (known.emplace(part.log, part.index).second) parts.push_back(std::move(part));
    }
  }
  return parts;
}

}  // namespace

Counted count_parts(const Origin& origin, const Selection& selection, Shard shard,
                    const fs::path& file, frames::Notes& notes, const frames::Progress& progress) {
  // Reads the parts before it creates the file.
  const frames::Parts parts = parts_with_notes(origin, selection, notes);
  RecordWriter writer(file);
  const Known known(writer.parts(), file);
  const std::string given = settings_text(selection);
  Counted counted;
  std::uint64_t number = 0;
  for (const Part& part : parts) {
    if (number++ % shard.of != shard.index - 1) continue;
    ++counted.parts;
    const std::string settings = part.settings.value_or(given);
    if (known.has(part, settings)) {
      ++counted.kept;
    } else {
      count(origin, part, selection, settings, writer, notes, progress);
      origin.files.leave_arrived();
    }
  }
  writer.close();
  return counted;
}

Origin local_logs(std::vector<fs::path> logs) {
  return {std::move(logs), readers::input::open_files()};
}

Origin arriving_logs(std::vector<fs::path> logs, const Arrivals& arrivals,
                     std::vector<Origin::Renamed> renamed) {
  const auto open = [arrivals](const fs::path& path) {
    return readers::input::open_input(path, arrivals(path));
  };
  return {std::move(logs), log::OpenFiles(open), std::move(renamed)};
}

frames::Parts parts_of(const Origin& origin, const Selection& selection) {
  frames::Notes notes;
  return parts_with_notes(origin, selection, notes);
}

}  // namespace halfscope::analyzers::count
