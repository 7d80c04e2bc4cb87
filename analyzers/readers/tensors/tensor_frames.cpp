// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/tensors/tensor_frames.hpp"

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
#include "analyzers/readers/tensors/shard_index.hpp"
#include "analyzers/readers/tensors/unnamed_roles.hpp"

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

/// Sums of a tensor, packed until they are passed on in order.
struct KeptSums {
  explicit KeptSums(const CountedSums& counted)
      : rest{counted.name, counted.step, counted.scale, counted.elements, {}}, sums(counted.sums) {}
  CountedSums unpacked() && {
    rest.sums = sums.unpacked();
    return std::move(rest);
  }

  CountedSums rest;
  PackedSums sums;
};

/// One file's content, kept until earlier files are passed on: order does not depend on threads.
struct FileFrames {
  std::vector<Frame> frames;
  std::vector<KeptSums> sums;
  std::vector<log::SkippedTensor> skipped;
  std::optional<RoleSource> guessed;  ///< source of roles that no name has: assumed or file
  bool has_gradients = false;
  std::exception_ptr failed;
};

Frame frame_of(const StepFile& file, const log::NamedTensor& tensor, const Selection& s,
               std::optional<frames::Unnamed> unnamed, const frames::Read& read,
               MagnitudeSums* sums) {
  Frame frame;
  frame.name = tensor.name;
  std::tie(frame.role, frame.role_source) = readers::common::role_of(s, frame.name, unnamed);
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
void read_file(const StepFile& file, const Selection& s, std::optional<frames::Unnamed> unnamed,
               Meter& meter, const Visitor& visit, FileFrames& out) {
  const auto opened = open_step_file(file);
  out.skipped = opened->skipped();
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
    Frame frame = frame_of(file, tensor, s, unnamed, read, counted ? &counted->sums : nullptr);
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

std::string again_note(const std::string& shown, const std::vector<std::filesystem::path>& again) {
  const std::size_t more = again.size() - 1;
  return shown + ": '" + printable(again.front().string()) + "'" +
         (more == 0 ? " leads to a file that is already read, and is skipped"
                    : " and " + std::to_string(more) +
                          " more lead to files that are already read, and are skipped");
}

Message assumed_note(const std::string& shown) {
  return shown +
         ": no tensor name contains a role, so all are treated as weight_grad (but optimizer "
         "states, such as .exp_avg); use " +
         frames::role_option() + " to name roles, such as " + frames::role_option("*", "weight") +
         " for a model's weights";
}

/// Collects files whose tensors got their roles by a guess, for notes.
class GuessedRoles {
 public:
  void take(const StepFile& file, const FileFrames& read) {
    if (!read.guessed) return;
    if (*read.guessed == RoleSource::assumed) {
      assumed_ = true;
    } else if (files_++ == 0) {
      first_ = file;
    }
  }
  void tell(const std::string& shown, Notes& notes) const {
    if (assumed_) notes.add(assumed_note(shown));
    if (files_ == 0) return;
    const std::string more = files_ > 1 ? fmt::format(", and {} more files", files_ - 1) : "";
    notes.add(fmt::format("{}: treated as a model's weights{}: it {}; use ",
                          printable(first_.path.string()), more, first_.shows_weights) +
              frames::role_option("*", "weight_grad") + " if they are gradients");
  }

 private:
  bool assumed_ = false;
  StepFile first_;
  std::uint64_t files_ = 0;
};

Message unscaled_note(const std::string& shown) {
  return shown + ": has no manifest, so its values are treated as unscaled; use " +
         Message(frames::Option::recorded_scale, "S") + " if they carry a loss scale";
}

/// The frames of one step, in order of first appearance. Shards with the same name are added.
struct StepFrames {
  std::vector<Frame> frames;
  std::map<std::string, std::size_t> index;
  bool shards = false;

  void add(Frame&& frame, const StepFile& file) {
    const auto [at, is_new] = index.try_emplace(frame.name, frames.size());
    if (is_new) {
      frames.push_back(std::move(frame));
      return;
    }
    Frame& sum = frames[at->second];
    if (sum.scale != frame.scale) {
      throw BadInput(printable(file.path.string()) + ": tensor '" + printable(frame.name) +
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
    shards = true;
  }
};

/// Reads files in parallel. The results are in the order of the files.
std::vector<FileFrames> read_files(const TensorFolder& folder, std::span<const StepFile> files,
                                   const Selection& s, bool with_sums, Meter& meter) {
  std::vector<FileFrames> read(files.size());
  tbb::parallel_for(std::size_t{0}, files.size(), [&](std::size_t i) {
    try {
      Visitor keep;
      keep.frame = [&](Frame&& frame) { read[i].frames.push_back(std::move(frame)); };
      if (with_sums) keep.sums = [&](CountedSums&& sums) { read[i].sums.emplace_back(sums); };
      read_file(files[i], s, unnamed_in(folder, files[i]), meter, keep, read[i]);
    } catch (...) {
      read[i].failed = std::current_exception();
    }
  });
  return read;
}

/// Receives the content of files in order and passes it on, step by step.
class FolderFrames {
 public:
  FolderFrames(const Visitor& visit, Notes& notes) : visit_(visit), notes_(notes) {}

  void take(const StepFile& file, FileFrames&& read) {
    if (read.failed) std::rethrow_exception(read.failed);
    if (current_ && *current_ != file.step) finish_step();
    current_ = file.step;
    for (Frame& frame : read.frames) step_.add(std::move(frame), file);
    for (KeptSums& sums : read.sums) visit_.sums(std::move(sums).unpacked());
    for (log::SkippedTensor& skipped : read.skipped) {  // often the same tensors in every file
      const auto [at, is_new] = skipped_.try_emplace({skipped.name, skipped.reason}, 0);
      ++at->second;
      if (is_new) told_.take(file.path, skipped);
    }
    roles_.take(file, read);
    unscaled_ |= read.has_gradients && !file.scaled;
  }

  void finish(const TensorFolder& folder, const Selection& s) {
    finish_step();
    const std::string shown = printable(folder.folder.string());
    const bool again = std::any_of(skipped_.begin(), skipped_.end(),
                                   [](const auto& skipped) { return skipped.second > 1; });
    roles_.tell(shown, notes_);
    if (unscaled_ && !s.recorded_scale) notes_.add(unscaled_note(shown));
    if (step_.shards) {
      notes_.add(shown +
                 ": tensors with the same name and step in several files are treated as "
                 "shards, and their counts are added");
    }
    if (!folder.again.empty()) notes_.add(again_note(shown, folder.again));
    if (folder.names_cut) {
      notes_.add(shown + ": the step in a file's name is not part of its tensor's name");
    }
    notes_.add_all(folder.notes);
    told_.tell(shown, notes_);
    if (again) notes_.add(shown + ": so are tensors of these names in its other files");
  }

 private:
  void finish_step() {
    for (Frame& frame : step_.frames) visit_.frame(std::move(frame));
    step_.frames.clear();
    step_.index.clear();
  }

  const Visitor& visit_;
  Notes& notes_;
  SkippedNotes told_;
  StepFrames step_;
  std::optional<std::int64_t> current_;
  /// Number of files, by a skipped tensor's name and reason.
  std::map<std::pair<std::string, std::string>, std::uint64_t> skipped_;
  GuessedRoles roles_;
  bool unscaled_ = false;
};

}  // namespace

void read_tensor_file(const log::OpenPath& opened, const Selection& s, const Visitor& visit,
                      Notes& notes, const Progress& progress) {
  if (readers::tensors::is_shard_index(opened)) {
    read_tensor_folder(list_tensor_index(opened, s.read_as), s, visit, notes, progress);
    return;
  }
  const std::filesystem::path& path = opened.path;
  const TensorFolder alone = single_file(opened, s.read_as);
  const StepFile& file = alone.files.front();
  if (!frames::in_steps(s, 0)) return;
  Meter meter(progress, file.bytes);
  FileFrames read;
  read_file(file, s, unnamed_in(alone, file), meter, visit, read);
  const std::string shown = printable(path.string());
  GuessedRoles roles;
  roles.take(file, read);
  roles.tell(shown, notes);
  if (read.has_gradients && !file.scaled && !s.recorded_scale) {
    notes.add(unscaled_note(shown));
  }
  SkippedNotes told;
  for (const log::SkippedTensor& skipped : read.skipped) told.take(path, skipped);
  told.tell(shown, notes);
}

std::vector<StepFile> selected_files(const TensorFolder& folder, const Selection& s) {
  std::vector<StepFile> files;
  for (const StepFile& file : folder.files) {
    if (frames::in_steps(s, file.step)) files.push_back(file);
  }
  const bool several = !files.empty() && files.front().step != files.back().step;
  for (StepFile& file : files) file.among_steps = several;
  return files;
}

void read_tensor_folder(const TensorFolder& folder, const Selection& s, const Visitor& visit,
                        Notes& notes, const Progress& progress) {
  read_step_files(folder, selected_files(folder, s), s, visit, notes, progress);
}

void read_step_files(const TensorFolder& folder, std::span<const StepFile> files,
                     const Selection& s, const Visitor& visit, Notes& notes,
                     const Progress& progress) {
  std::uint64_t bytes = 0;
  for (const StepFile& file : files) bytes += file.bytes;
  Meter meter(progress, bytes);
  FolderFrames frames(visit, notes);
  // Limits memory: the histograms of a batch are held until they are passed on.
  const std::size_t batch = 4 * static_cast<std::size_t>(tbb::info::default_concurrency());
  for (std::size_t first = 0; first < files.size(); first += batch) {
    const auto part = files.subspan(first, std::min(batch, files.size() - first));
    std::vector<FileFrames> read = read_files(folder, part, s, visit.sums != nullptr, meter);
    for (std::size_t i = 0; i < part.size(); ++i) frames.take(part[i], std::move(read[i]));
  }
  frames.finish(folder, s);
}

}  // namespace halfscope::analyzers::readers::tensors
