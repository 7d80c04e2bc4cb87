// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "analyzers/readers/common/roles.hpp"
#include "analyzers/readers/tensors/tensor_log.hpp"

namespace halfscope::analyzers::readers::tensors {

using frames::Selection;
using frames::WholeStep;

namespace {

using Opened = std::shared_ptr<const log::TensorFile>;

/// The tensors in several files as one file. Their names differ. It has no skipped tensors, because
/// read_tensor_files() has reported them.
class JoinedFile final : public log::TensorFile {
 public:
  explicit JoinedFile(const std::vector<StepFile>& files) {
    for (const StepFile& file : files) {
      const Opened& opened = files_.emplace_back(open_step_file(file));
      opened->for_each_name([&](const std::string& name) {
        const log::NamedTensor tensor = *opened->outline(name);
        add(name, tensor.shape, tensor.view.dtype, files_.size() - 1);
      });
    }
    index_names();
  }

  std::shared_ptr<const log::TensorBlocks> blocks(std::string_view name) const override {
    return files_[file_with(std::string(name))]->blocks(name);
  }

  /// Returns the number of the file with a tensor.
  std::size_t file_with(const std::string& name) const {
    return static_cast<std::size_t>(place(find(name).value()));
  }

 private:
  log::FileBytes values(const log::NamedTensor& tensor, std::uint64_t file) const override {
    const auto held = files_[static_cast<std::size_t>(file)]->tensor(tensor.name);
    return {{held, held->view.data}, {held->view.data, held->view.bytes()}};
  }

  std::vector<Opened> files_;
};

/// Returns true if no two files have a tensor of the same name.
bool have_own_names(const std::vector<StepFile>& files) {
  if (files.size() == 1) return true;
  std::unordered_set<std::string> names;
  return std::ranges::all_of(files, [&](const StepFile& file) {
    const Opened opened = open_step_file(file);
    const std::size_t before = names.size();
    opened->for_each_name([&](const std::string& name) { names.insert(name); });
    return names.size() == before + opened->size();
  });
}

/// Returns the selected files in groups. Files of one step are one group, but each is a group of
/// its own if several hold shards of one tensor.
std::vector<std::vector<StepFile>> groups_of(const TensorFolder& folder, const Selection& s) {
  std::map<std::int64_t, std::vector<StepFile>> by_step;
  for (StepFile& file : selected_files(folder, s)) by_step[file.step].push_back(std::move(file));
  std::vector<std::vector<StepFile>> groups;
  for (auto& [step, files] : by_step) {
    if (have_own_names(files)) {
      groups.push_back(std::move(files));
    } else {
      for (StepFile& file : files) groups.push_back({std::move(file)});
    }
  }
  return groups;
}

/// Calls `visit` with the tensors of a group of files as a step.
void visit_group(const std::filesystem::path& log, const std::vector<StepFile>& group,
                 WholeStep&& step, const frames::WholeStepVisitor& visit) {
  const bool single = group.size() == 1;
  const auto joined = single ? nullptr : std::make_shared<const JoinedFile>(group);
  const Opened opened = single ? open_step_file(group.front()) : joined;
  const auto file_of = [&](const std::string& name) -> const StepFile& {
    return group[single ? 0 : joined->file_with(name)];
  };
  step.log = log;
  step.file = single ? group.front().at.path : log;
  step.step = group.front().step;
  step.tensors = opened;
  step.file_of = [&](const std::string& name) { return file_of(name).at.path; };
  step.role_of = [&](const Selection& s, const std::string& name) {
    return common::role_of(s, name, file_of(name).unnamed).first;
  };
  step.scale_of = [&](const Selection& s, const std::string& name) {
    return scale_of(file_of(name), step.role_of(s, name), s);
  };
  visit(step);
}

}  // namespace

void visit_tensor_steps(const TensorFolder& folder, const Selection& selection,
                        const frames::WholeStepVisitor& visit, const frames::Progress& progress) {
  const auto groups = groups_of(folder, selection);
  const auto bytes_of = [](const std::vector<StepFile>& group) {
    std::uint64_t bytes = 0;
    for (const StepFile& file : group) bytes += file.bytes;
    return bytes;
  };
  std::uint64_t all = 0, done = 0;
  for (const auto& group : groups) all += bytes_of(group);
  for (const auto& group : groups) {
    WholeStep step;
    step.bytes = bytes_of(group);
    step.tell = frames::within(progress, done, step.bytes, all);
    done += step.bytes;
    visit_group(folder.at.path, group, std::move(step), visit);
    if (progress) progress(std::min(done, all), all);
  }
}

}  // namespace halfscope::analyzers::readers::tensors
