// SPDX-License-Identifier: Apache-2.0
#include "analyzers/samples.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <tuple>

#include "analyzers/readers/kinds.hpp"
#include "analyzers/readers/shard_index.hpp"
#include "analyzers/unnamed_roles.hpp"
#include "halfscope/log/safetensors.hpp"

namespace halfscope::analyzers {
namespace {

using log::printable;
using log::Role;

/// One rank of a run log, with what its sampled steps' records say.
struct Rank {
  log::RunLog run;
  std::map<std::int64_t, log::StepScalars> scalars;
  std::map<std::int64_t, std::map<std::string, log::TensorRecord>> records;

  Rank(const std::filesystem::path& folder, const Selection& selection) : run(folder) {
    for (log::StepScalars& s : run.scalars()) scalars.emplace(s.step, std::move(s));
    const auto samples = run.samples();
    const auto wanted = [&](const std::string&, std::int64_t step) {
      return in_steps(selection, step) && samples.contains(step);
    };
    const auto keep = [&](log::TensorRecord&& record) {
      record.table = BinadeTable();  // the values are at hand
      auto& of_step = records[record.step];
      const std::string name = record.name;
      of_step.insert_or_assign(name, std::move(record));
    };
    run.for_each(keep, wanted);
  }
};

/// The folders of a run's ranks; the run's own where it has none; empty where nothing was sampled.
std::vector<std::filesystem::path> sampled_folders(const std::filesystem::path& log) {
  std::vector<std::filesystem::path> folders = log::rank_folders(log);
  if (folders.empty()) folders.push_back(log);
  const bool any = std::any_of(folders.begin(), folders.end(), [](const auto& folder) {
    std::error_code ignored;
    return std::filesystem::is_directory(folder / "tensors", ignored);
  });
  return any ? folders : std::vector<std::filesystem::path>();
}

struct Sample {
  std::int64_t step = 0;
  std::size_t rank = 0;
  std::filesystem::path file;
};

std::vector<Sample> samples_of(const std::vector<Rank>& ranks, const Selection& selection) {
  std::vector<Sample> samples;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    for (const auto& [step, file] : ranks[rank].run.samples()) {
      if (in_steps(selection, step)) samples.push_back({step, rank, file});
    }
  }
  std::sort(samples.begin(), samples.end(), [](const Sample& a, const Sample& b) {
    return std::tie(a.step, a.rank) < std::tie(b.step, b.rank);
  });
  return samples;
}

std::uint64_t bytes_of(const std::filesystem::path& file) {
  std::error_code error;
  const std::uint64_t bytes = std::filesystem::file_size(file, error);
  return error ? 0 : bytes;
}

/// Tells the whole's progress of one step's, which begins at `done` bytes.
Tell within(const Progress& progress, std::uint64_t done, std::uint64_t step, std::uint64_t all) {
  if (!progress) return {};
  return [&progress, done, step, all](double part) {
    const auto more =
        static_cast<std::uint64_t>(std::clamp(part, 0.0, 1.0) * static_cast<double>(step));
    progress(std::min(done + more, all), all);
  };
}

void note_skipped(const std::filesystem::path& file, const log::TensorFile& tensors, Notes& notes) {
  for (const log::SkippedTensor& skipped : tensors.skipped()) {
    note_once(notes, printable(file.string()) + ": tensor '" + printable(skipped.name) +
                         "' skipped: " + skipped.reason);
  }
}

void visit_run(const std::vector<std::filesystem::path>& folders, const Selection& selection,
               const WholeStepVisitor& visit, Notes& notes, const Progress& progress) {
  std::vector<Rank> ranks;
  for (const std::filesystem::path& folder : folders) ranks.emplace_back(folder, selection);
  const std::vector<Sample> samples = samples_of(ranks, selection);
  std::uint64_t all = 0, done = 0;
  for (const Sample& sample : samples) all += bytes_of(sample.file);
  for (const Sample& sample : samples) {
    Rank& rank = ranks[sample.rank];
    const log::Safetensors tensors(sample.file);
    note_skipped(sample.file, tensors, notes);
    WholeStep step;
    step.log = rank.run.folder();
    step.file = sample.file;
    step.step = sample.step;
    step.rank = static_cast<int>(sample.rank);
    step.sharded = ranks.front().run.manifest().sharded;
    step.tensors = &tensors;
    step.metadata = tensors.metadata();
    step.run = &rank.run;
    const auto scalars = rank.scalars.find(sample.step);
    if (scalars != rank.scalars.end()) step.scalars = &scalars->second;
    step.records = std::move(rank.records[sample.step]);
    step.bytes = bytes_of(sample.file);
    step.tell = within(progress, done, step.bytes, all);
    visit(step);
    done += step.bytes;
    if (progress) progress(std::min(done, all), all);
  }
}

/// Tensors of a step that lie in several files, as one file.
class StepTensors final : public log::TensorFile {
 public:
  /// False where a name of the file is there already: files hold parts of one tensor then.
  bool add(const StepFile& file) {
    const std::shared_ptr<log::TensorFile> opened = open_step_file(file);
    std::vector<std::string> names = opened->names();
    for (const std::string& name : names) {
      if (places_.contains(name)) return false;
    }
    for (std::string& name : names) {
      places_.emplace(name, opened);
      names_.push_back(std::move(name));
    }
    return true;
  }

  void for_each(const std::function<void(const log::NamedTensor&)>& visit) const override {
    for (const std::string& name : names_) visit(*tensor(name));
  }
  const std::vector<log::SkippedTensor>& skipped() const override { return skipped_; }
  std::vector<std::string> names() const override { return names_; }

  std::shared_ptr<const log::NamedTensor> tensor(std::string_view name) const override {
    const auto place = places_.find(name);
    return place == places_.end() ? nullptr : place->second->tensor(name);
  }

 private:
  std::map<std::string, std::shared_ptr<const log::TensorFile>, std::less<>> places_;
  std::vector<std::string> names_;
  std::vector<log::SkippedTensor> skipped_;  ///< for_each_frame has named them
};

/// One step's files together; apart where several hold parts of one tensor.
std::vector<std::vector<StepFile>> groups_of(const std::vector<StepFile>& files,
                                             const Selection& selection) {
  std::map<std::int64_t, std::vector<StepFile>> by_step;
  for (const StepFile& file : files) {
    if (in_steps(selection, file.step)) by_step[file.step].push_back(file);
  }
  std::vector<std::vector<StepFile>> groups;
  for (auto& [step, of_step] : by_step) {
    StepTensors all;
    if (std::all_of(of_step.begin(), of_step.end(), [&](const auto& f) { return all.add(f); })) {
      groups.push_back(std::move(of_step));
    } else {
      for (StepFile& file : of_step) groups.push_back({std::move(file)});
    }
  }
  return groups;
}

/// What reading the files has to say, for_each_frame has said already.
void visit_tensor_files(const TensorFolder& folder, const Selection& selection,
                        const WholeStepVisitor& visit, const Progress& progress) {
  std::uint64_t all = 0, done = 0;
  const auto groups = groups_of(folder.files, selection);
  for (const auto& group : groups) {
    for (const StepFile& file : group) all += file.bytes;
  }
  for (const auto& group : groups) {
    StepTensors tensors;
    WholeStep step;
    for (const StepFile& file : group) {
      const std::size_t before = tensors.names().size();
      tensors.add(file);
      const std::vector<std::string> names = tensors.names();
      for (std::size_t i = before; i < names.size(); ++i) step.files.emplace(names[i], file);
      step.bytes += file.bytes;
    }
    step.log = folder.folder;
    step.file = group.size() == 1 ? group.front().path : folder.folder;
    step.step = group.front().step;
    step.tensors = &tensors;
    step.folder = &folder;
    step.tell = within(progress, done, step.bytes, all);
    visit(step);
    done += step.bytes;
    if (progress) progress(std::min(done, all), all);
  }
}

TensorFolder folder_of(const std::filesystem::path& path, std::optional<Dtype> as) {
  return readers::is_shard_index(path) ? list_tensor_index(path, as) : single_file(path, as);
}

/// Whether the tensors of this role carry the loss scale, as the sampled file or the manifest says.
bool says_scaled(const WholeStep& step, Role role) {
  if (!is_gradient(role)) return false;
  const char* const keys[] = {"activation_gradients", "gradients"};
  for (const char* key : keys) {
    if (role == Role::weight_grad && key == keys[0]) continue;
    const auto found = step.metadata.find(key);
    if (found != step.metadata.end()) {
      return log::find_scale_state(found->second) == log::ScaleState::scaled;
    }
  }
  return step.run->manifest().gradients == log::ScaleState::scaled;
}

/// The scale in a sampled file's metadata, if it is a number.
std::optional<double> scale_in(const std::map<std::string, std::string>& metadata) {
  const auto found = metadata.find("scale");
  if (found == metadata.end()) return std::nullopt;
  const std::string& text = found->second;
  double scale = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), scale);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return scale;
}

}  // namespace

Role WholeStep::role_of(const Selection& selection, const std::string& name) const {
  const auto unnamed = folder == nullptr ? std::nullopt : unnamed_in(*folder, files.at(name));
  return analyzers::role_of(selection, name, unnamed).first;
}

bool WholeStep::is_sharded(Role role) const {
  return std::find(sharded.begin(), sharded.end(), role) != sharded.end();
}

double WholeStep::scale_of(const Selection& selection, const std::string& name) const {
  if (run == nullptr) {
    return analyzers::scale_of(files.at(name), role_of(selection, name), selection);
  }
  const auto record = records.find(name);
  if (record != records.end()) return analyzers::scale_of(record->second, selection, log);
  if (!says_scaled(*this, role_of(selection, name))) return 1.0;
  log::TensorRecord stand_in;
  stand_in.name = name;
  stand_in.step = step;
  stand_in.state = log::ScaleState::scaled;
  std::optional<double> scale = scale_in(metadata);
  if (!scale && scalars != nullptr) scale = scalars->loss_scale;
  stand_in.scale_known = scale.has_value();
  stand_in.scale = scale.value_or(1.0);
  return analyzers::scale_of(stand_in, selection, file);
}

void for_each_whole_step(const std::filesystem::path& log, const Selection& selection,
                         const WholeStepVisitor& visit, Notes& notes, const Progress& progress) {
  if (!readers::may_hold_whole_tensors(log)) return;
  if (!std::filesystem::is_directory(log)) {
    visit_tensor_files(folder_of(log, selection.read_as), selection, visit, progress);
    return;
  }
  if (log::rank_folders(log).empty() && !readers::is_run_log(log)) {
    visit_tensor_files(list_tensor_folder(log, selection.read_as), selection, visit, progress);
    return;
  }
  const auto folders = sampled_folders(log);
  if (!folders.empty()) visit_run(folders, selection, visit, notes, progress);
}

namespace {

/// Whether a sampled tensor of a run carries a scale that cannot be undone, as after a collapse.
bool scale_collapsed(const WholeStep& step, const Selection& selection, Role role) {
  if (step.run == nullptr || step.scalars == nullptr || selection.recorded_scale) return false;
  const std::optional<double> scale = step.scalars->loss_scale;
  return scale && !usable_scale(*scale) && says_scaled(step, role);
}

}  // namespace

void for_each_whole_tensor(const std::filesystem::path& log, const Selection& selection,
                           const WholeVisitor& visit, Notes& notes, const Progress& progress) {
  std::optional<std::int64_t> left_out;  // the first step
  const auto visit_step = [&](const WholeStep& step) {
    double done = 0;
    const double all = std::max(1.0, static_cast<double>(step.bytes));
    for (const std::string& name : step.tensors->names()) {
      WholeTensor whole;
      whole.role = step.role_of(selection, name);
      if (!selects(selection, name) || (step.rank > 0 && !step.is_sharded(whole.role))) continue;
      if (scale_collapsed(step, selection, whole.role)) {
        left_out = std::min(left_out.value_or(step.step), step.step);
        continue;
      }
      const auto tensor = step.tensors->tensor(name);
      whole.name = name;
      whole.step = step.step;
      whole.scale = step.scale_of(selection, name);
      whole.shape = tensor->shape;
      whole.view = tensor->view;
      const auto bytes = static_cast<double>(whole.view.bytes());
      if (step.tell) whole.tell = [&](double part) { step.tell((done + part * bytes) / all); };
      visit(whole);
      done += bytes;
      if (step.tell) step.tell(done / all);
    }
  };
  for_each_whole_step(log, selection, visit_step, notes, progress);
  if (!left_out) return;
  note_once(notes, fmt::format("{}: sampled gradients are left out from step {} on: their loss "
                               "scale is no positive normal binary32 number",
                               log::printable(log.string()), *left_out));
}

void note_once(Notes& notes, std::string note) {
  if (std::find(notes.begin(), notes.end(), note) == notes.end()) notes.push_back(std::move(note));
}

}  // namespace halfscope::analyzers
