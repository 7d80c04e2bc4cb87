// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/tensors/file_samples.hpp"

#include <algorithm>
#include <memory>

#include "analyzers/readers/common/roles.hpp"
#include "analyzers/readers/tensors/shard_index.hpp"
#include "analyzers/readers/tensors/tensor_folder.hpp"
#include "analyzers/readers/tensors/unnamed_roles.hpp"

namespace halfscope::analyzers::readers::tensors {

using frames::Selection;
using frames::WholeStep;

namespace {

using log::Role;

/// The tensors in several files of one step, as one tensor file. Keeps references to the StepFiles.
class StepTensors final : public log::TensorFile {
 public:
  StepTensors() = default;
  StepTensors(const StepTensors&) = delete;
  StepTensors& operator=(const StepTensors&) = delete;
  /// Adds a file. Returns false, and adds nothing, if it shares a tensor's name with another file.
  bool add(const StepFile& file) {
    const Part part{open_step_file(file), &file};
    const std::size_t index = parts_.size();
    if (index == 1) add_names(0);
    if (index > 0) {
      bool is_there = false;
      part.opened->for_each_name(
          [&](const std::string& name) { is_there = is_there || places_.contains(name); });
      if (is_there) return false;
    }
    parts_.push_back(part);
    if (index > 0) add_names(index);
    return true;
  }

  void for_each(const std::function<void(const log::NamedTensor&)>& visit) const override {
    for_each_name([&](const std::string& name) { visit(*tensor(name)); });
  }
  const std::vector<log::SkippedTensor>& skipped() const override { return skipped_; }
  std::vector<std::string> names() const override {
    std::vector<std::string> all;
    for_each_name([&](const std::string& name) { all.push_back(name); });
    return all;
  }
  void for_each_name(const std::function<void(const std::string&)>& visit) const override {
    for (const Part& part : parts_) part.opened->for_each_name(visit);
  }

  std::shared_ptr<const log::NamedTensor> tensor(std::string_view name) const override {
    const Part* const part = part_of(name);
    return part == nullptr ? nullptr : part->opened->tensor(name);
  }
  std::optional<log::NamedTensor> outline(std::string_view name) const override {
    const Part* const part = part_of(name);
    return part == nullptr ? std::nullopt : part->opened->outline(name);
  }
  const StepFile& file_of(const std::string& name) const {
    return *(parts_.size() == 1 ? parts_.front() : parts_[places_.at(name)]).file;
  }

 private:
  struct Part {
    std::shared_ptr<const log::TensorFile> opened;
    const StepFile* file;
  };
  const Part* part_of(std::string_view name) const {
    if (parts_.size() == 1) return &parts_.front();
    const auto place = places_.find(name);
    return place == places_.end() ? nullptr : &parts_[place->second];
  }
  void add_names(std::size_t part) {
    parts_[part].opened->for_each_name(
        [&](const std::string& name) { places_.emplace(name, part); });
  }

  std::vector<Part> parts_;
  /// Index into parts_, by tensor. Empty if there is only one part.
  std::map<std::string, std::size_t, std::less<>> places_;
  std::vector<log::SkippedTensor> skipped_;  ///< always empty: for_each_frame() reports them
};

/// Returns the selected files in groups. Files of one step are one group, but each is a group of
/// its own if several hold shards of one tensor.
std::vector<std::vector<StepFile>> groups_of(const std::vector<StepFile>& files,
                                             const Selection& selection) {
  std::map<std::int64_t, std::vector<StepFile>> by_step;
  for (const StepFile& file : files) {
    if (frames::in_steps(selection, file.step)) by_step[file.step].push_back(file);
  }
  std::vector<std::vector<StepFile>> groups;
  for (auto& [step, of_step] : by_step) {
    StepTensors all;
    const auto joins = [&](const StepFile& file) { return all.add(file); };
    if (of_step.size() == 1 || std::ranges::all_of(of_step, joins)) {
      groups.push_back(std::move(of_step));
    } else {
      for (StepFile& file : of_step) groups.push_back({std::move(file)});
    }
  }
  return groups;
}

TensorFolder folder_of(const log::OpenPath& log, std::optional<Dtype> as) {
  if (std::filesystem::is_directory(log.path)) return list_tensor_folder(log, as);
  return readers::tensors::is_shard_index(log) ? list_tensor_index(log, as) : single_file(log, as);
}

/// Returns the tensors of a group of files as a step, which keeps references to all arguments.
WholeStep step_of(const TensorFolder& folder, const std::vector<StepFile>& group,
                  StepTensors& tensors) {
  WholeStep step;
  for (const StepFile& file : group) {
    tensors.add(file);
    step.bytes += file.bytes;
  }
  step.log = folder.folder;
  step.file = group.size() == 1 ? group.front().path : folder.folder;
  step.step = group.front().step;
  step.tensors = &tensors;
  step.file_of = [&](const std::string& name) { return tensors.file_of(name).path; };
  step.role_of = [&](const Selection& s, const std::string& name) {
    return readers::common::role_of(s, name, unnamed_in(folder, tensors.file_of(name))).first;
  };
  step.scale_of = [&tensors, role_of = step.role_of](const Selection& s, const std::string& name) {
    return scale_of(tensors.file_of(name), role_of(s, name), s);
  };
  return step;
}

}  // namespace

void visit_file_samples(const log::OpenPath& log, const Selection& selection,
                        const frames::WholeStepVisitor& visit, const frames::Progress& progress) {
  visit_folder_samples(folder_of(log, selection.read_as), selection, visit, progress);
}

void visit_folder_samples(const TensorFolder& folder, const Selection& selection,
                          const frames::WholeStepVisitor& visit, const frames::Progress& progress) {
  std::uint64_t all = 0, done = 0;
  const auto groups = groups_of(folder.files, selection);
  for (const auto& group : groups) {
    for (const StepFile& file : group) all += file.bytes;
  }
  for (const auto& group : groups) {
    StepTensors tensors;
    WholeStep step = step_of(folder, group, tensors);
    step.tell = frames::within(progress, done, step.bytes, all);
    visit(step);
    done += step.bytes;
    if (progress) progress(std::min(done, all), all);
  }
}

}  // namespace halfscope::analyzers::readers::tensors
