// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/tensorboard/tensorboard.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

#include "analyzers/readers/common/log_files.hpp"
#include "analyzers/readers/common/timeline.hpp"
#include "analyzers/readers/lines/scalar_log.hpp"
#include "analyzers/readers/tensorboard/tensorboard_histogram.hpp"
#include "analyzers/readers/tensorboard/tensorboard_index.hpp"
#include "halfscope/log/event_file.hpp"
#include "halfscope/log/event_outline.hpp"

namespace halfscope::analyzers::readers::tensorboard {

using common::Timeline;

namespace {

namespace fs = std::filesystem;
using frames::Gap;
using frames::Notes;
using log::BadInput;
using log::printable;

/// One pass over the histograms of an index.
class FrameReader {
 public:
  FrameReader(const TensorBoardIndex& index, Timeline& timeline) : index_(index), to_(timeline) {}

  void read(const frames::Progress& progress) {
    std::uint64_t done = 0;
    for (const TensorBoardIndex::Place& place : index_.histograms()) {
      const std::uint64_t all = index_.histograms().size();
      if (progress && done % 64 == 0) {
        progress(index_.bytes() + index_.bytes() * done / all, 2 * index_.bytes());
      }
      ++done;
      steps_.insert(place.step);
      if (to_.wants(index_.tags()[place.tag].name, place.step)) emit(place);
    }
    if (progress) progress(2 * index_.bytes(), 2 * index_.bytes());
  }

  std::set<Gap> gaps() const {
    std::set<Gap> gaps = gaps_;
    if (common::skips_steps(steps_)) gaps.insert(Gap::every_step);
    return gaps;
  }
  const Notes& notes() const { return notes_; }

 private:
  void emit(const TensorBoardIndex::Place& place) {
    const TensorBoardIndex::Tag& tag = index_.tags()[place.tag];
    frames::Frame frame;
    try {
      frame.table = table_at(place, tag.of_run_log);
    } catch (const std::invalid_argument& error) {
      return skip(place, tag.name, error.what());
    }
    frame.name = tag.name;
    frame.step = place.step;
    note_gaps(frame.table);
    to_.tensor(std::move(frame));
  }

  BoundedTable table_at(const TensorBoardIndex::Place& place, bool of_run_log) {
    if (!reader_ || file_ != place.file) {
      reader_.emplace(index_.file(place.file));
      file_ = place.file;
    }
    const auto bytes = reader_->bytes(place.offset, place.size);
    const auto parse = [&](auto& message) {
      if (!bytes || !message.ParseFromArray(bytes->data(), static_cast<int>(bytes->size()))) {
        throw std::invalid_argument("it cannot be read");
      }
    };
    if (place.form == TensorBoardIndex::Form::tensor) {
      parse(tensor_);
      return table_of(tensor_);
    }
    parse(histogram_);
    return of_run_log ? table_of_run_log(histogram_) : table_of(histogram_);
  }

  void skip(const TensorBoardIndex::Place& place, const std::string& name, const char* why) {
    constexpr std::size_t kMost = 20;
    if (notes_.size() > kMost) return;
    const std::string file = printable(index_.file(place.file).path.string());
    notes_.add(notes_.size() == kMost
                   ? file + ": more histograms are skipped than are listed here"
                   : fmt::format("{}: histogram '{}' at step {}, byte {}, skipped: {}", file,
                                 printable(name), place.step, place.offset, why));
  }

  void note_gaps(const BoundedTable& table) {
    const auto may_be_zero = [](const Span& span) { return !span.first; };
    if (std::any_of(table.spans().begin(), table.spans().end(), may_be_zero)) {
      gaps_.insert(Gap::zeros);
    }
    if (common::hides_underflow(table)) gaps_.insert(Gap::underflow);
    if (!table.nonfinite_known()) gaps_.insert(Gap::nonfinite);
  }

  const TensorBoardIndex& index_;
  Timeline& to_;
  std::optional<log::EventReader> reader_;
  std::uint32_t file_ = 0;
  log::proto::HistogramProto histogram_;  // members, so that their memory is reused
  log::proto::TensorProto tensor_;
  std::set<std::int64_t> steps_;
  std::set<Gap> gaps_;
  Notes notes_;
};

/// Reports the scalars, and notes by which tags they were recognised.
void report_scalars(const TensorBoardIndex& index, lines::ScalarLog& found, const fs::path& log,
                    Notes& notes) {
  for (const TensorBoardIndex::Tag& tag : index.tags()) {
    if (tag.scalar) found.series(tag.name, tag.named, "");
  }
  for (const TensorBoardIndex::Scalar& scalar : index.scalars()) {
    found.series(index.tags()[scalar.tag].name).add(scalar.step, scalar.value);
  }
  found.report_scalars();
  std::string list;
  for (const auto& [meaning, series] : found.used()) {
    list += fmt::format("{}{} is '{}'", list.empty() ? "" : ", ", lines::name_of(meaning),
                        printable(series->tag));
  }
  if (!list.empty()) notes.add(printable(log.string()) + ": recognised by tag: " + list);
}

std::vector<std::string> names_of_histograms(const TensorBoardIndex& index) {
  std::vector<std::string> names;
  for (const TensorBoardIndex::Tag& tag : index.tags()) {
    if (tag.histogram) names.push_back(tag.name);
  }
  return names;
}

void refuse_empty(const TensorBoardIndex& index, const fs::path& log) {
  const bool scalars = std::any_of(index.tags().begin(), index.tags().end(),
                                   [](const TensorBoardIndex::Tag& tag) { return tag.scalar; });
  if (scalars || !index.histograms().empty()) return;
  throw BadInput(
      printable(log.string()) + ": its event files hold " +
      (index.any_record() ? "neither histograms nor scalars" : "no record that can be read") +
      "; expected what SummaryWriter.add_histogram and add_scalar or tf.summary write" +
      (index.notes().empty() ? "" : " (" + index.notes().front() + ")"));
}

namespace fs = std::filesystem;

/// Returns true if the first record has correct checksums and is an event. TFRecord files of other
/// content have the same framing.
bool begins_with_event(const log::OpenPath& file) {
  constexpr std::size_t kHeaderBytes = 12;
  constexpr std::uint64_t kMost = 1 << 20;
  const std::string header = common::beginning_of(file, kHeaderBytes);
  const auto length = log::record_length(header);
  if (!length) return false;
  if (*length > kMost) return true;  // a valid record, too large to read
  const std::string begin =
      common::beginning_of(file, kHeaderBytes + static_cast<std::size_t>(*length));
  log::EventOutline event;
  return begin.size() == kHeaderBytes + *length &&
         event.read(std::string_view(begin).substr(kHeaderBytes));
}

bool is_named_as_one(const fs::path& file) {
  return file.filename().string().find("tfevents") != std::string::npos;
}

/// The event files of a folder, by name, or the file itself. An event file is recognised by its
/// beginning; in a folder also by its name, since the beginning may be damaged. Never throws.
std::vector<log::OpenPath> event_files_of(const log::OpenPath& log) {
  std::vector<log::OpenPath> files;
  for (fs::path& file : common::files_of(log.path)) files.push_back(log.at(std::move(file)));
  const bool alone = files.size() == 1 && files.front().path == log.path;
  std::erase_if(files, [&](const log::OpenPath& file) {
    return !begins_with_event(file) && (alone || !is_named_as_one(file.path));
  });
  return files;
}

/// The first folder below `folder` that holds event files and is not a run log of Halfscope; empty
/// if none is found. Looks into a bounded number of folders.
std::optional<fs::path> folder_with_events_in(const fs::path& folder) {
  constexpr int kMostFolders = 200, kDepth = 3;
  int seen = 0;
  std::error_code error;
  if (!fs::is_directory(folder, error)) return std::nullopt;
  std::optional<fs::path> first;
  fs::recursive_directory_iterator entry(folder, fs::directory_options::skip_permission_denied,
                                         error);
  for (const fs::recursive_directory_iterator end; !error && entry != end; entry.increment(error)) {
    std::error_code unreadable;
    if (!entry->is_directory(unreadable)) continue;
    if (++seen > kMostFolders) break;
    const bool hidden = entry->path().filename().string().starts_with('.');
    if (hidden || common::is_run_log(entry->path())) {
      entry.disable_recursion_pending();
      continue;
    }
    if (entry.depth() + 1 >= kDepth) entry.disable_recursion_pending();
    if (first && *first < entry->path()) continue;
    if (!event_files_of(entry->path()).empty()) first = entry->path();
  }
  return first;
}

}  // namespace

bool is_tensorboard(const log::OpenPath& log) { return !event_files_of(log).empty(); }

void read_tensorboard(const log::OpenPath& opened, const common::TimelineSelection& selection,
                      const frames::Visitor& visit, Notes& notes,
                      const frames::Progress& progress) {
  const fs::path& log = opened.path;
  const TensorBoardIndex index(event_files_of(opened), selection.scale_tag, progress);
  refuse_empty(index, log);
  lines::ScalarLog scalars(opened, {}, selection, visit, notes, progress);
  report_scalars(index, scalars, log, notes);
  scalars.timeline().names(names_of_histograms(index));
  FrameReader frames(index, scalars.timeline());
  frames.read(progress);

  std::set<Gap> gaps = frames.gaps();
  const bool any = !index.histograms().empty();
  gaps.insert({Gap::updates, any ? Gap::dtype : Gap::tensors});
  if (any && !selection.knows_scale()) gaps.insert(Gap::loss_scale);
  notes.add_all(index.notes());
  notes.add_all(frames.notes());
  if (const auto below = folder_with_events_in(log)) {
    notes.add(fmt::format(
        "{}: folders in it also hold event files ('{}'): these are other runs, not read",
        printable(log.string()), printable(below->string())));
  }
  if (std::any_of(index.tags().begin(), index.tags().end(),
                  [](const TensorBoardIndex::Tag& tag) { return tag.of_run_log; })) {
    notes.add(printable(log.string()) +
              ": belongs to a run log of Halfscope; give its folder, with run.json, which "
              "has exact histograms and their scales");
  }
  scalars.finish({.name = any ? "TensorBoard histograms" : "TensorBoard scalars",
                  .gaps = {gaps.begin(), gaps.end()},
                  .tool = frames::Tool::tensorboard});
}

}  // namespace halfscope::analyzers::readers::tensorboard
