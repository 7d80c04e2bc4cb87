// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <tbb/info.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <exception>
#include <map>
#include <mutex>
#include <span>

#include "analyzers/frames/count_values.hpp"
#include "analyzers/frames/whole_counts.hpp"
#include "analyzers/readers/common/roles.hpp"
#include "analyzers/readers/tensors/tensor_log.hpp"

namespace halfscope::analyzers::readers::tensors {

using frames::CountedSums;
using frames::Frame;
using frames::Message;
using frames::Notes;
using frames::Progress;
using frames::RoleSource;
using frames::Selection;
using frames::Visitor;

namespace {

using log::BadInput;
using log::printable;
using log::Role;

/// Reports the bytes read to a progress callback. Any thread may call add().
class Meter {
 public:
  Meter(const Progress& progress, std::uint64_t all) : progress_(progress), all_(all) {}
  void add(std::uint64_t bytes) {
    if (!progress_) return;
    const std::lock_guard lock(mutex_);
    done_ = std::min(all_, done_ + bytes);
    progress_(done_, all_);
  }

 private:
  const Progress& progress_;
  std::uint64_t all_, done_ = 0;
  std::mutex mutex_;
};

/// One file's content, kept until earlier files are passed on: order does not depend on threads.
struct FileFrames {
  std::vector<Frame> frames;
  std::vector<std::pair<CountedSums, PackedSums>> sums;  ///< a tensor without its sums, and these
  std::vector<log::SkippedTensor> skipped;
  std::optional<RoleSource> guessed;  ///< source of roles that no name has: assumed or file
  bool has_gradients = false;
  std::uint64_t coded = 0;  ///< tensors that the file stores as codes
  std::exception_ptr failed;
};

Frame frame_of(const StepFile& file, const log::NamedTensor& tensor, const Selection& s,
               const frames::Read& read, MagnitudeSums* sums) {
  Frame frame;
  frame.name = tensor.name;
  std::tie(frame.role, frame.role_source) = common::role_of(s, frame.name, file.unnamed);
  frame.loss_scaled = is_gradient(frame.role);
  frame.step = file.step;
  frame.source_dtype = tensor.view.dtype;
  frame.scale = scale_of(file, frame.role, s);
  frame.run_scale = frame.loss_scaled ? frame.scale : 1.0;
  frame.shape = tensor.shape;
  // clipped.hpp compares the moments of steps.
  const bool compared = file.among_steps && frame.role == Role::weight_grad;
  MomentSums moments;
  frame.table = frames::count_values(tensor.view, s, frame.scale, read,
                                     {compared ? &moments : nullptr, sums});
  if (compared) frame.moments = moments.value();
  return frame;
}

/// Reads one file. Passes frames, and sums if wanted, to `visit`; stores all else in `out`.
void read_file(const StepFile& file, const Selection& s, Meter& meter, const Visitor& visit,
               FileFrames& out) {
  const auto opened = open_step_file(file);
  out.skipped = opened->skipped();
  out.coded = opened->parts().size();
  std::uint64_t told = 0;
  const frames::Read read = [&](std::uint64_t bytes) {  // unpacked data may be more than the file
    bytes = std::min(bytes, file.bytes - told);
    told += bytes;
    meter.add(bytes);
  };
  opened->for_each([&](const log::NamedTensor& tensor) {
    if (!frames::selects(s, tensor.name)) {
      read(tensor.view.bytes());
      return;
    }
    std::optional<CountedSums> counted;
    if (visit.sums) counted = CountedSums{tensor.name, file.step, 1.0, tensor.view.count, {}};
    Frame frame = frame_of(file, tensor, s, read, counted ? &counted->sums : nullptr);
    // Values of codes have few bits, but no FP16 computed them.
    if (opened->parts().contains(tensor.name)) frame.computed_dtype = frame.source_dtype;
    if (counted) counted->scale = frame.scale;
    const bool guessed =
        frame.role_source == RoleSource::assumed || frame.role_source == RoleSource::file;
    if (guessed && frame.role != Role::optimizer_state) out.guessed = frame.role_source;
    out.has_gradients |= is_gradient(frame.role);
    visit.frame(std::move(frame));
    if (counted) visit.sums(std::move(*counted));
  });
  meter.add(file.bytes - told);
}

Message skipped_note(const std::filesystem::path& file, const log::SkippedTensor& skipped) {
  const std::string note = printable(file.string()) + ": tensor '" + printable(skipped.name) +
                           "' skipped: " + skipped.reason;
  if (!skipped.may_be_bfloat16) return note;
  return note + "; " + frames::as_bf16() + " says that it holds bfloat16's bits";
}

/// Notes on the first skipped tensors, and the number of others. Added after all other notes.
class SkippedNotes {
 public:
  void take(const std::filesystem::path& file, const log::SkippedTensor& skipped) {
    constexpr std::uint64_t kMost = 30, kMostWithoutWayOut = 3;
    const bool shown =
        skipped.may_be_bfloat16 ? told_.size() < kMost : without_way_out_ < kMostWithoutWayOut;
    if (!skipped.may_be_bfloat16) ++without_way_out_;
    if (shown) told_.add(skipped_note(file, skipped));
    if (!shown) ++more_;
  }
  void tell(const std::string& shown, Notes& notes) const {
    notes.add_all(told_);
    if (more_ == 0) return;
    notes.add(fmt::format("{}: {} more tensor{} skipped", shown, more_, more_ > 1 ? "s" : ""));
  }

 private:
  Notes told_;
  std::uint64_t without_way_out_ = 0, more_ = 0;
};

/// Receives the content of files in order and passes it on, step by step.
class FolderFrames {
 public:
  FolderFrames(const Visitor& visit, Notes& notes) : visit_(visit), notes_(notes) {}

  void take(const StepFile& file, FileFrames&& read) {
    if (read.failed) std::rethrow_exception(read.failed);
    if (current_ && *current_ != file.step) pass_step();
    current_ = file.step;
    for (Frame& frame : read.frames) add(std::move(frame), file);
    for (auto& [counted, sums] : read.sums) {
      counted.sums = sums.unpacked();
      visit_.sums(std::move(counted));
    }
    for (const log::SkippedTensor& skipped : read.skipped) take_skipped(file, skipped);
    assumed_ |= read.guessed == RoleSource::assumed;
    if (read.guessed == RoleSource::file && weights_++ == 0) first_weights_ = &file;
    unscaled_ |= read.has_gradients && !file.scaled && !file.unscaled;
    coded_ += read.coded;
  }

  void finish(const TensorFolder& folder, const Selection& s) {
    pass_step();
    const std::string shown = printable(folder.at.path.string());
    add_role_notes(shown);
    if (unscaled_ && !s.recorded_scale) {
      notes_.add(shown + ": has no manifest, so its values are treated as unscaled; use " +
                 Message(frames::Option::recorded_scale, "S") + " if they carry a loss scale");
    }
    if (coded_ != 0) {
      notes_.add(fmt::format("{}: {} tensor{} stored as codes, and read as values", shown, coded_,
                             coded_ == 1 ? " is" : "s are"));
    }
    if (shards_) {
      notes_.add(shown +
                 ": tensors with the same name and step in several files are treated as "
                 "shards, and their counts are added");
    }
    notes_.add_all(folder.notes);
    notes_.add_all(skipped_notes_);
    if (more_skipped_ > 0) {
      notes_.add(fmt::format("{}: {} more tensor{} skipped", shown, more_skipped_,
                             more_skipped_ > 1 ? "s" : ""));
    }
    if (skipped_again_) notes_.add(shown + ": so are tensors of these names in its other files");
  }

 private:
  /// Adds a frame to its step, whose frames are in order of first appearance. Shards with the same
  /// name are added.
  void add(Frame&& frame, const StepFile& file) {
    const auto [at, is_new] = index_.try_emplace(frame.name, step_.size());
    if (is_new) {
      step_.push_back(std::move(frame));
      return;
    }
    Frame& sum = step_[at->second];
    if (sum.scale != frame.scale) {
      throw BadInput(printable(file.at.path.string()) + ": tensor '" + printable(frame.name) +
                     "', step " + std::to_string(file.step) + ": carries loss scale " +
                     std::to_string(frame.scale) + ", another file of that step says " +
                     std::to_string(sum.scale) +
                     "; shards of one tensor must agree: analyse the files one by one");
    }
    const bool coarser = format_of(*frame.source_dtype).min_quantum_exponent() >
                         format_of(*sum.source_dtype).min_quantum_exponent();
    if (coarser) sum.source_dtype = frame.source_dtype;
    frames::add_moments(sum, frame);
    sum.table.merge(frame.table);
    sum.shape = {sum.table.total()};  // the arrangement of shards is unknown
    shards_ = true;
  }

  void pass_step() {
    for (Frame& frame : step_) visit_.frame(std::move(frame));
    step_.clear();
    index_.clear();
  }

  /// Adds a note on a skipped tensor, or counts it. Often the same are skipped in every file.
  void take_skipped(const StepFile& file, const log::SkippedTensor& skipped) {
    const auto [first, is_new] = skipped_.try_emplace({skipped.name, skipped.reason}, &file);
    skipped_again_ |= first->second != &file;
    if (!is_new) return;
    constexpr std::uint64_t kMost = 30, kMostWithoutWayOut = 3;
    const bool shown = skipped.may_be_bfloat16 ? skipped_notes_.size() < kMost
                                               : without_way_out_++ < kMostWithoutWayOut;
    if (shown) {
      skipped_notes_.add(skipped_note(file.at.path, skipped));
    } else {
      ++more_skipped_;
    }
  }

  void add_role_notes(const std::string& shown) {
    if (assumed_) {
      notes_.add(shown +
                 ": no tensor name contains a role, so all are treated as weight_grad (but "
                 "optimizer states, such as .exp_avg); use " +
                 frames::role_option() + " to name roles, such as " +
                 frames::role_option("*", "weight") + " for a model's weights");
    }
    if (weights_ == 0) return;
    const std::string more = weights_ > 1 ? fmt::format(", and {} more files", weights_ - 1) : "";
    const std::string& shows = first_weights_->shows_weights;  // empty: the selection says it
    notes_.add(fmt::format("{}: treated as a model's weights{}: it {}; use ",
                           printable(first_weights_->at.path.string()), more,
                           shows.empty() ? "is compared with a model's weights" : shows) +
               frames::role_option("*", "weight_grad") + " if they are gradients");
  }

  const Visitor& visit_;
  Notes& notes_;
  std::optional<std::int64_t> current_;  ///< the step of step_
  std::vector<Frame> step_;
  std::map<std::string, std::size_t> index_;  ///< into step_, by name
  bool shards_ = false, unscaled_ = false;
  std::uint64_t coded_ = 0;    ///< number of tensors that are stored as codes
  bool assumed_ = false;       ///< a file's roles are those of gradients, by a guess
  std::uint64_t weights_ = 0;  ///< number of files whose roles are those of weights
  const StepFile* first_weights_ = nullptr;
  /// The first file with a skipped tensor, by name and reason.
  std::map<std::pair<std::string, std::string>, const StepFile*> skipped_;
  bool skipped_again_ = false;
  Notes skipped_notes_;
  std::uint64_t without_way_out_ = 0, more_skipped_ = 0;
};

/// Reads files in parallel. The results are in the order of the files.
std::vector<FileFrames> read_files(std::span<const StepFile> files, const Selection& s,
                                   bool with_sums, Meter& meter) {
  std::vector<FileFrames> read(files.size());
  tbb::parallel_for(std::size_t{0}, files.size(), [&](std::size_t i) {
    try {
      Visitor keep;
      keep.frame = [&](Frame&& frame) { read[i].frames.push_back(std::move(frame)); };
      const auto pack = [&](CountedSums&& counted) {
        PackedSums packed(counted.sums);
        counted.sums = {};
        read[i].sums.emplace_back(std::move(counted), std::move(packed));
      };
      if (with_sums) keep.sums = pack;
      read_file(files[i], s, meter, keep, read[i]);
    } catch (...) {
      read[i].failed = std::current_exception();
    }
  });
  return read;
}

/// Reads some of the selected files: all files of one or more steps.
void read_steps(const TensorFolder& folder, std::span<const StepFile> files, const Selection& s,
                const Visitor& visit, Notes& notes, const Progress& progress) {
  std::uint64_t bytes = 0;
  for (const StepFile& file : files) bytes += file.bytes;
  Meter meter(progress, bytes);
  FolderFrames frames(visit, notes);
  // Limits memory: the histograms of a batch are held until they are passed on.
  const std::size_t batch = 4 * static_cast<std::size_t>(tbb::info::default_concurrency());
  for (std::size_t first = 0; files.size() > 1 && first < files.size(); first += batch) {
    const auto part = files.subspan(first, std::min(batch, files.size() - first));
    std::vector<FileFrames> read = read_files(part, s, visit.sums != nullptr, meter);
    for (std::size_t i = 0; i < part.size(); ++i) frames.take(part[i], std::move(read[i]));
  }
  if (files.size() == 1) {
    FileFrames read;  // without the frames, which go to `visit` at once
    read_file(files.front(), s, meter, visit, read);
    frames.take(files.front(), std::move(read));
  }
  frames.finish(folder, s);
}

}  // namespace

void read_tensor_files(const TensorFolder& folder, const Selection& s, const Visitor& visit,
                       Notes& notes, const Progress& progress) {
  read_steps(folder, selected_files(folder, s), s, visit, notes, progress);
}

frames::Parts step_parts(const log::OpenPath& opened, const Selection& selection) {
  const auto folder =
      std::make_shared<const TensorFolder>(tensor_files_of(opened, selection.read_as));
  const auto files =
      std::make_shared<const std::vector<StepFile>>(selected_files(*folder, selection));
  frames::Parts parts;
  for (auto first = files->begin(); first != files->end();) {
    const auto end = std::find_if(first, files->end(),
                                  [&](const StepFile& file) { return file.step != first->step; });
    frames::Part& part = parts.emplace_back();
    part.log = opened.path.string();
    part.index = parts.size() - 1;
    part.name = "step " + std::to_string(first->step);
    part.read = [folder, files, selection, step = std::span(first, end)](
                    const Visitor& visit, Notes& notes, const Progress& progress) {
      read_steps(*folder, step, selection, visit, notes, progress);
    };
    Selection one = selection;
    one.first_step = first->step;
    one.end_step = first->step + 1;
    part.read_whole = [folder, one](const frames::WholeStepVisitor& visit, Notes&,
                                    const Progress& progress) {
      visit_tensor_steps(*folder, one, visit, progress);
    };
    first = end;
  }
  for (frames::Part& part : parts) part.of = parts.size();
  return parts;
}

}  // namespace halfscope::analyzers::readers::tensors
