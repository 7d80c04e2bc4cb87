// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/tensorboard/tensorboard.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <stdexcept>
#include <system_error>

#include "analyzers/readers/common/timeline.hpp"
#include "analyzers/readers/lines/scalar_log.hpp"
#include "analyzers/readers/tensorboard/tensorboard_files.hpp"
#include "analyzers/readers/tensorboard/tensorboard_histogram.hpp"
#include "analyzers/readers/tensorboard/tensorboard_index.hpp"
#include "halfscope/log/event_file.hpp"

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
