// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/tensors/tensor_folder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <span>
#include <system_error>
#include <tuple>
#include <utility>

#include "analyzers/readers/common/log_files.hpp"
#include "analyzers/readers/tensors/names.hpp"
#include "analyzers/readers/tensors/open.hpp"
#include "analyzers/readers/tensors/shards.hpp"
#include "halfscope/log/folder.hpp"

namespace halfscope::analyzers::readers::tensors {
namespace {

namespace fs = std::filesystem;
using log::printable;

constexpr std::string_view kWanted = "expected one that can be read";

bool has_extension(const fs::path& path, std::span<const std::string_view> extensions) {
  return std::find(extensions.begin(), extensions.end(), path.extension().string()) !=
         extensions.end();
}

bool is_visible_file(const fs::path& path) {
  std::error_code unreadable;
  return path.filename().string().front() != '.' && fs::is_regular_file(path, unreadable);
}

constexpr std::array<std::string_view, 3> kTensorFiles = {".safetensors", ".npy", ".npz"};
constexpr std::array<std::string_view, 4> kTorchFiles = {".pt", ".pth", ".bin", ".ckpt"};

bool is_tensor_file(const log::OpenPath& path) {
  if (path.path.filename() == ".metadata") return is_dcp_metadata(path);
  return has_extension(path.path, kTensorFiles) && is_visible_file(path.path);
}

/// Checks the content too, because many kinds of files have these extensions.
bool is_torch_file(const log::OpenPath& path) {
  if (!has_extension(path.path, kTorchFiles) || !is_visible_file(path.path)) return false;
  const std::string start = common::beginning_of(path, kOldTorchStart.size());
  return start.starts_with("PK\x03\x04") || start == kOldTorchStart;
}

bool is_index(const log::OpenPath& path) {
  return path.path.filename().string().ends_with(".index.json") && is_visible_file(path.path) &&
         is_shard_index(path);
}

template <typename T>
std::optional<T> number_of(const std::map<std::string, std::string>& metadata, const char* key) {
  const auto found = metadata.find(key);
  if (found == metadata.end()) return std::nullopt;
  T value{};
  const char* const end = found->second.data() + found->second.size();
  const auto [stop, error] = std::from_chars(found->second.data(), end, value);
  return error == std::errc() && stop == end ? std::optional(value) : std::nullopt;
}

/// Copies "gradients", "scale" and "step" from the metadata, if they are valid.
void take_metadata(const std::map<std::string, std::string>& metadata, StepFile& file) {
  const auto gradients = metadata.find("gradients");
  const auto state =
      gradients == metadata.end() ? std::nullopt : log::find_scale_state(gradients->second);
  file.scaled = state == log::ScaleState::scaled;
  file.unscaled = state == log::ScaleState::unscaled;
  const auto scale = number_of<double>(metadata, "scale");
  if (scale && *scale > 0 && std::isfinite(*scale)) file.scale = scale;
  const auto step = number_of<std::int64_t>(metadata, "step");
  if (step && *step >= 0) file.step = *step;
}

bool any_role_in(const std::vector<std::string>& names) {
  return std::ranges::any_of(
      names, [](const std::string& name) { return log::role_in_name(name).has_value(); });
}

/// Describes an open file. Looks for signs of weights only if no name has a role.
void describe(StepFile& file, const log::TensorFile& opened, bool roles_in_names) {
  std::error_code ignored;
  // For a DCP checkpoint, the values are in other files than `at`.
  file.bytes = std::max<std::uint64_t>(fs::file_size(file.at.path, ignored),
                                       opened.tensor_bytes().value_or(0));
  take_metadata(opened.metadata(), file);
  file.tensor_bytes = opened.tensor_bytes();
  if (!roles_in_names) file.shows_weights = weights_shown(file.at.path, opened);
}

/// Sets StepFile::unnamed, once it is known that no name in the folder has a role.
void set_unnamed(std::vector<StepFile>& files) {
  for (StepFile& file : files) {
    const bool weights = !file.shows_weights.empty();
    file.unnamed = weights ? frames::Unnamed::weights : frames::Unnamed::gradients;
  }
}

/// Returns the name of a tensor by its file's name, if the file has no name for it, or always the
/// same one: NPY, a tensor saved alone, Transformer Engine's dumps. Empty for other files.
std::string name_by_file(const fs::path& path, const std::vector<std::string>& names) {
  const std::string stem = path.stem().string();
  const bool torch = has_extension(path, kTorchFiles) && names.size() == 1 &&
                     (names[0] == stem || names[0] == "high_precision");
  return torch || path.extension() == ".npy" ? without_step(stem) : "";
}

/// Keeps only the tensors to read, under the names that they have in the folder.
void choose(const StepFile& file, log::TensorFile& opened) {
  if (file.index) opened.keep_only(file.index->shards.at(file.at.path.filename().string()));
  if (!file.tensor.empty()) opened.rename(file.tensor);
}

/// Returns the subfolders whose names have a step, with the step.
std::vector<std::pair<fs::path, std::int64_t>> step_folders(const fs::path& folder) {
  std::vector<std::pair<fs::path, std::int64_t>> found;
  std::error_code unreadable;
  for (const fs::path& path : log::entries(folder, kWanted)) {
    const auto step = step_in_name(path.filename().string());
    if (step && fs::is_directory(path, unreadable)) found.emplace_back(path, *step);
  }
  return found;
}

/// Returns the path with all links resolved; the unchanged path if that is impossible.
fs::path real_path(const fs::path& path) {
  std::error_code error;
  fs::path real = fs::canonical(path, error);
  return error ? path : real;
}

/// Lists the files of a folder or an index.
class Listing {
 public:
  Listing(const log::OpenPath& log, std::optional<Dtype> as) : all_{log}, as_(as) {}

  TensorFolder of_folder() {
    find_beside(all_.at, 0);
    for (const auto& [inside, step] : step_folders(all_.at.path)) {
      find_beside(all_.at.at(inside), step);
    }
    std::ranges::stable_sort(found_, {}, [](const StepFile& file) { return file.at.path; });
    return finish(erase_again());
  }

  TensorFolder of_index() {
    find_shards(read_shard_index(all_.at), all_.at.path.parent_path(), 0);
    return finish({});
  }

 private:
  void find_shards(const Index& index, const fs::path& folder, std::int64_t step) {
    for (const auto& [name, unused] : index->shards) {
      found_.push_back({.at = all_.at.at(folder / name), .step = step, .as = as_, .index = index});
    }
  }

  /// Finds a folder's tensor files: those its indexes name, or all without an index. `step` is that
  /// in the folder's name.
  void find_beside(const log::OpenPath& folder, std::int64_t step) {
    std::vector<log::OpenPath> indexes;
    std::vector<fs::path> tensors;
    bool parts = false, metadata = false;  // files of a DCP checkpoint
    for (const fs::path& entry : log::entries(folder.path, kWanted)) {
      parts |= entry.extension() == ".distcp";
      metadata |= entry.filename() == ".metadata";
      const log::OpenPath path = folder.at(entry);
      if (is_index(path)) indexes.push_back(path);
      if (is_tensor_file(path) || is_torch_file(path)) tensors.push_back(entry);
    }
    if (parts && !metadata) {
      all_.notes.add(printable(folder.path.string()) +
                     ": has files of a checkpoint (.distcp) without its .metadata, as while it is "
                     "written; they are skipped");
    }
    if (indexes.empty()) {
      for (const fs::path& path : tensors) {
        found_.push_back({.at = folder.at(path), .step = step, .as = as_});
      }
      return;
    }
    for (const Index& index : indexes_to_read(indexes, all_.notes)) {
      find_shards(index, folder.path, step);
      std::erase_if(tensors, [&](const fs::path& path) {
        return index->shards.contains(path.filename().string());
      });
    }
    if (tensors.empty()) return;
    all_.notes.add(fmt::format(
        "{}{} named by no index beside it, and skipped", printable(tensors.front().string()),
        tensors.size() == 1 ? ": is"
                            : fmt::format(" and {} more tensor files: are", tensors.size() - 1)));
  }

  /// Keeps one path to each file: one without links, else the first. Returns the others.
  std::vector<fs::path> erase_again() {
    const fs::path root = real_path(all_.at.path);
    std::vector<fs::path> real, again;
    std::map<fs::path, std::size_t> kept;  // index into found_, by resolved path
    for (const StepFile& file : found_) {
      const fs::path& path = real.emplace_back(real_path(file.at.path));
      const bool no_link = root / file.at.path.lexically_relative(all_.at.path) == path;
      const std::size_t place = real.size() - 1;
      if (!kept.emplace(path, place).second && no_link) kept[path] = place;
    }
    std::vector<StepFile> once;
    for (std::size_t i = 0; i < found_.size(); ++i) {
      if (kept.at(real[i]) == i) {
        once.push_back(std::move(found_[i]));
      } else {
        again.push_back(found_[i].at.path);
      }
    }
    found_ = std::move(once);
    return again;
  }

  /// Opens and describes a file, and adds it. Returns the names of its readable tensors.
  std::vector<std::string> add(StepFile file) {
    const fs::path& path = file.at.path;
    file.step = step_in_name(path.stem().string()).value_or(file.step);
    std::error_code unreadable;
    if (file.index && !fs::exists(path, unreadable)) {
      throw log::BadInput(fmt::format(
          "{}: names the file '{}', which is missing; copy or download it too, or name the tensor "
          "files that are there",
          printable(file.index->path.string()), printable(path.filename().string())));
    }
    const auto opened = open_tensor_file(file.at, as_);
    describe(file, *opened, roles_in_names_);
    if (file.index) {
      if (file.shows_weights.empty()) file.shows_weights = "is a shard of a checkpoint";
      check_shard(path, *opened, *file.index, all_.notes);
    }
    file.tensor = name_by_file(path, opened->names());
    choose(file, *opened);
    std::vector<std::string> names = opened->names();
    roles_in_names_ = roles_in_names_ || any_role_in(names);
    all_.files.push_back(std::move(file));
    return names;
  }

  /// Adds the files that were found. Skips files of torch.save that cannot be read, and those whose
  /// tensors all are in other files of the step too (a checkpoint in two formats), with a note.
  void add_found() {
    const auto may_fail = [](const StepFile& file) {
      return has_extension(file.at.path, kTorchFiles) && !file.index;
    };
    const auto torch = std::stable_partition(found_.begin(), found_.end(), std::not_fn(may_fail));
    std::map<std::int64_t, std::set<std::string>>
        known;  // names by step, if torch.save wrote files
    for (const StepFile& file : std::span(found_.begin(), torch)) {
      const std::vector<std::string> names = add(file);
      if (torch != found_.end()) known[all_.files.back().step].insert(names.begin(), names.end());
    }
    std::exception_ptr refused;  // error of the first unreadable file
    for (const StepFile& file : std::span(torch, found_.end())) {
      try {
        const std::vector<std::string> names = add(file);
        const std::set<std::string>& of_step = known[all_.files.back().step];
        const auto is_known = [&](const std::string& name) { return of_step.contains(name); };
        if (names.empty() || !std::ranges::all_of(names, is_known)) continue;
        all_.files.pop_back();
        all_.notes.add(printable(file.at.path.string()) +
                       ": holds tensors that safetensors or NumPy files of its step also hold, and "
                       "is skipped");
      } catch (const log::BadInput& error) {
        if (!refused) refused = std::current_exception();
        all_.notes.add(frames::message_of(error) + "; the file is skipped");
      }
    }
    if (all_.files.empty() && refused) std::rethrow_exception(refused);
  }

  /// Adds notes on indexes whose total_size is not the size of the tensors in their files.
  void check_sizes() {
    std::map<Index, std::optional<std::uint64_t>> sizes;
    for (const StepFile& file : all_.files) {
      std::optional<std::uint64_t>& size = sizes.try_emplace(file.index, 0).first->second;
      size = size && file.tensor_bytes ? std::optional(*size + *file.tensor_bytes) : std::nullopt;
    }
    for (const auto& [index, size] : sizes) {
      if (!index || !index->total_size || !size || *size == *index->total_size) continue;
      all_.notes.add(fmt::format(
          "{}: says that its tensors take {} bytes, but its files' take {}: some tensors may be "
          "counted twice there, or be of another checkpoint",
          printable(index->path.string()), *index->total_size, *size));
    }
  }

  /// Adds the files and all notes. `again`: links to files that are added already.
  TensorFolder finish(const std::vector<fs::path>& again) {
    add_found();
    check_sizes();
    std::ranges::sort(all_.files, {},
                      [](const StepFile& file) { return std::tie(file.step, file.at.path); });
    if (!roles_in_names_) set_unnamed(all_.files);
    const std::string shown = printable(all_.at.path.string());
    frames::Notes notes;
    if (!again.empty()) {
      const std::string first = shown + ": '" + printable(again.front().string()) + "'";
      notes.add(again.size() == 1
                    ? first + " leads to a file that is already read, and is skipped"
                    : fmt::format("{} and {} more lead to files that are already read, and are "
                                  "skipped",
                                  first, again.size() - 1));
    }
    const bool cut = std::ranges::any_of(all_.files, [](const StepFile& file) {
      return !file.tensor.empty() && file.tensor != file.at.path.stem().string();
    });
    if (cut) notes.add(shown + ": the step in a file's name is not part of its tensor's name");
    notes.add_all(all_.notes);
    all_.notes = std::move(notes);
    return std::move(all_);
  }

  TensorFolder all_;
  std::optional<Dtype> as_;
  std::vector<StepFile> found_;
  bool roles_in_names_ = false;  ///< the name of some tensor has a role
};

/// Lists a single file, whose step is 0 and whose tensors keep their names.
TensorFolder single_file(const log::OpenPath& path, std::optional<Dtype> as) {
  using Opened = std::shared_ptr<const log::TensorFile>;
  const std::any kept = path.files.kept(path.path);
  const auto* const known = std::any_cast<Opened>(&kept);
  const Opened opened = known != nullptr ? *known : open_tensor_file(path, as);
  if (known == nullptr) path.files.keep(path.path, opened);
  TensorFolder alone{path};
  StepFile& file = alone.files.emplace_back(StepFile{.at = path, .as = as, .opened = opened});
  const bool roles_in_names = any_role_in(opened->names());
  describe(file, *opened, roles_in_names);
  file.step = 0;
  if (!roles_in_names) set_unnamed(alone.files);
  return alone;
}

bool any_below(const log::OpenPath& folder, bool (*is)(const log::OpenPath&)) {
  const auto any = [&](const fs::path& inside) {
    return std::ranges::any_of(log::entries(inside, kWanted),
                               [&](const fs::path& path) { return is(folder.at(path)); });
  };
  return any(folder.path) || std::ranges::any_of(step_folders(folder.path), any,
                                                 [](const auto& one) { return one.first; });
}

}  // namespace

bool holds_tensor_files(const log::OpenPath& folder) {
  return any_below(
      folder, [](const log::OpenPath& path) { return is_tensor_file(path) || is_index(path); });
}

bool holds_torch_files(const log::OpenPath& folder) { return any_below(folder, is_torch_file); }

TensorFolder tensor_files_of(const log::OpenPath& log, std::optional<Dtype> as) {
  std::error_code unreadable;
  if (fs::is_directory(log.path, unreadable)) return Listing(log, as).of_folder();
  return is_shard_index(log) ? Listing(log, as).of_index() : single_file(log, as);
}

std::vector<StepFile> selected_files(const TensorFolder& folder, const frames::Selection& s) {
  std::vector<StepFile> files;
  std::ranges::copy_if(folder.files, std::back_inserter(files),
                       [&](const StepFile& file) { return frames::in_steps(s, file.step); });
  const bool several = !files.empty() && files.front().step != files.back().step;
  for (StepFile& file : files) file.among_steps = several;
  return files;
}

std::shared_ptr<const log::TensorFile> open_step_file(const StepFile& file) {
  if (file.opened) return file.opened;
  auto opened = open_tensor_file(file.at, file.as);
  choose(file, *opened);
  return opened;
}

double scale_of(const StepFile& file, log::Role role, const frames::Selection& selection) {
  if (selection.recorded_scale) return *selection.recorded_scale;
  if (!file.scaled || !is_gradient(role)) return 1.0;
  if (file.scale) return *file.scale;
  throw frames::InputNeedsOption(
      printable(file.at.path.string()) +
      ": its metadata says that gradients are scaled, but has no \"scale\" "
      "that is a positive number; give it with " +
      frames::Message(frames::Option::recorded_scale, "S"));
}

}  // namespace halfscope::analyzers::readers::tensors
