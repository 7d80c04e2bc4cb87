// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/tensors/tensor_folder.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <span>
#include <system_error>
#include <tuple>
#include <utility>

#include "analyzers/readers/common/log_files.hpp"
#include "analyzers/readers/tensors/dcp_file.hpp"
#include "analyzers/readers/tensors/open.hpp"
#include "analyzers/readers/tensors/step_names.hpp"
#include "analyzers/readers/tensors/tensor_shards.hpp"
#include "analyzers/readers/tensors/tensor_views.hpp"
#include "analyzers/readers/tensors/torch_file.hpp"
#include "analyzers/readers/tensors/unnamed_roles.hpp"
#include "halfscope/log/folder.hpp"
#include "halfscope/log/safetensors.hpp"

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
void take_metadata(const log::TensorFile& opened, StepFile& file) {
  const auto* const safetensors = dynamic_cast<const log::Safetensors*>(&opened);
  if (safetensors == nullptr) return;  // NPY and NPZ have none
  const auto& metadata = safetensors->metadata();
  const auto gradients = metadata.find("gradients");
  file.scaled = gradients != metadata.end() &&
                log::find_scale_state(gradients->second) == log::ScaleState::scaled;
  const auto scale = number_of<double>(metadata, "scale");
  if (scale && *scale > 0 && std::isfinite(*scale)) file.scale = scale;
  const auto step = number_of<std::int64_t>(metadata, "step");
  if (step && *step >= 0) file.step = *step;
}

/// Describes an open file. `step` is used if the metadata has none. Looks for signs of weights only
/// if no name has a role.
StepFile described(const log::OpenPath& path, std::optional<Dtype> as, std::int64_t step,
                   const log::TensorFile& opened, bool roles_in_names) {
  StepFile file;
  file.path = path.path;
  file.open = path.files;
  file.as = as;
  file.step = step;
  std::error_code ignored;
  // For a DCP checkpoint, the values are in other files than `path`.
  file.bytes =
      std::max<std::uint64_t>(fs::file_size(file.path, ignored), opened.tensor_bytes().value_or(0));
  take_metadata(opened, file);
  if (!roles_in_names) file.shows_weights = weights_shown(file.path, opened);
  return file;
}

/// The path of a tensor file.
struct Found {
  fs::path path;
  std::optional<std::int64_t> folder_step = {};  ///< step in the name of its subfolder, if any
  Index index = {};                              ///< the index that names it; null if none does
};

/// Returns the name of a tensor by its file's name, if the file has no name for it, or always the
/// same one: NPY, a tensor saved alone, Transformer Engine's dumps. Empty for other files.
std::string name_by_file(const fs::path& path, const std::vector<std::string>& names) {
  const std::string stem = path.stem().string();
  const bool torch = has_extension(path, kTorchFiles) && names.size() == 1 &&
                     (names[0] == stem || names[0] == "high_precision");
  return torch || path.extension() == ".npy" ? without_step(stem) : "";
}

/// Returns the file with only the tensors to read, under the names that they have in the folder.
std::unique_ptr<log::TensorFile> seen_as(const StepFile& file,
                                         std::unique_ptr<log::TensorFile> opened) {
  if (file.index) {
    const auto& names = file.index->shards.at(file.path.filename().string());
    opened = chosen(std::move(opened), {file.index, &names});
  }
  return file.tensor.empty() ? std::move(opened) : renamed(std::move(opened), file.tensor);
}

/// Adds a file. Returns the names of its readable tensors.
std::vector<std::string> add_file(const Found& found, std::optional<Dtype> as, TensorFolder& all) {
  const std::string stem = found.path.stem().string();
  const std::int64_t step = step_in_name(stem).value_or(found.folder_step.value_or(0));
  if (found.index) require_shard(found.path, *found.index);
  const log::OpenPath path(found.path, all.open);
  auto opened = open_tensor_file(path, as);
  StepFile file = described(path, as, step, *opened, all.roles_in_names);
  if (found.index) {
    if (file.shows_weights.empty()) file.shows_weights = "is a shard of a checkpoint";
    check_shard(found.path, *opened, *found.index, all.notes);
    file.index = found.index;
    file.tensor_bytes = opened->tensor_bytes();
  }
  file.tensor = name_by_file(found.path, opened->names());
  if (!file.tensor.empty()) all.names_cut = all.names_cut || file.tensor != stem;
  std::vector<std::string> names = seen_as(file, std::move(opened))->names();
  all.roles_in_names = all.roles_in_names || any_role_in(names);
  all.files.push_back(std::move(file));
  return names;
}

/// Returns a folder's tensor files: those its indexes name, or all without an index. `step` is that
/// in the folder's name.
std::vector<Found> files_beside(const fs::path& folder, std::optional<std::int64_t> step,
                                TensorFolder& all) {
  std::vector<log::OpenPath> indexes;
  std::vector<fs::path> tensors;
  bool parts = false, metadata = false;  // files of a DCP checkpoint
  for (fs::path& entry : log::entries(folder, kWanted)) {
    parts |= entry.extension() == ".distcp";
    metadata |= entry.filename() == ".metadata";
    const log::OpenPath path(std::move(entry), all.open);
    if (is_index(path)) indexes.push_back(path);
    if (is_tensor_file(path) || is_torch_file(path)) tensors.push_back(path.path);
  }
  if (parts && !metadata) {
    all.notes.add(printable(folder.string()) +
                  ": has files of a checkpoint (.distcp) without its .metadata, as while it is "
                  "written; they are skipped");
  }
  std::vector<Found> found;
  if (indexes.empty()) {
    for (fs::path& path : tensors) found.push_back({std::move(path), step});
    return found;
  }
  std::set<fs::path> named;
  for (const Index& index : indexes_to_read(indexes, all.notes)) {
    for (const auto& [name, unused] : index->shards) {
      named.insert(folder / name);
      found.push_back({folder / name, step, index});
    }
  }
  std::erase_if(tensors, [&](const fs::path& path) { return named.contains(path); });
  if (!tensors.empty()) all.notes.add(unnamed_note(tensors));
  return found;
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

/// Keeps one path to each file: one without links, else the first. Moves the others to to.again.
std::vector<Found> each_once(std::vector<Found> all, const fs::path& folder, TensorFolder& to) {
  const fs::path root = real_path(folder);
  std::vector<fs::path> real;
  std::map<fs::path, std::size_t> kept;  // index into `all`, by resolved path
  for (std::size_t i = 0; i < all.size(); ++i) {
    real.push_back(real_path(all[i].path));
    const bool no_link = root / all[i].path.lexically_relative(folder) == real[i];
    if (!kept.emplace(real[i], i).second && no_link) kept[real[i]] = i;
  }
  std::vector<Found> once;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (kept.at(real[i]) == i) {
      once.push_back(std::move(all[i]));
    } else {
      to.again.push_back(std::move(all[i].path));
    }
  }
  return once;
}

bool may_be_left_out(const Found& found) {
  return has_extension(found.path, kTorchFiles) && !found.index;
}

/// Adds a folder's files. Skips files of torch.save that cannot be read, and those whose tensors
/// all are in other files of the step too (a checkpoint in two formats), with a note.
class Adder {
 public:
  /// `has_torch` is true if files of torch.save will be added, after all others.
  Adder(std::optional<Dtype> as, bool has_torch, TensorFolder& all)
      : as_(as), has_torch_(has_torch), all_(all) {}

  void add(const Found& found) {
    if (!may_be_left_out(found)) {
      std::vector<std::string> names = add_file(found, as_, all_);
      if (!has_torch_) return;
      std::set<std::string>& of_step = names_[all_.files.back().step];
      of_step.insert(std::make_move_iterator(names.begin()), std::make_move_iterator(names.end()));
      return;
    }
    try {
      const std::vector<std::string> names = add_file(found, as_, all_);
      if (!is_known(names, all_.files.back().step)) return;
      all_.files.pop_back();
      all_.notes.add(
          printable(found.path.string()) +
          ": holds tensors that safetensors or NumPy files of its step also hold, and is skipped");
    } catch (const log::BadInput& refused) {
      if (!refused_) refused_ = std::current_exception();
      all_.notes.add(frames::message_of(refused) + "; the file is skipped");
    }
  }

  void finish() const {
    if (all_.files.empty() && refused_) std::rethrow_exception(refused_);
  }

 private:
  bool is_known(const std::vector<std::string>& names, std::int64_t step) const {
    const auto known = names_.find(step);
    return known != names_.end() && !names.empty() &&
           std::all_of(names.begin(), names.end(),
                       [&](const std::string& name) { return known->second.contains(name); });
  }

  std::optional<Dtype> as_;
  bool has_torch_;
  TensorFolder& all_;
  std::map<std::int64_t, std::set<std::string>> names_;  ///< by step, without torch.save's files
  std::exception_ptr refused_;                           ///< error of the first unreadable file
};

void add_files(std::vector<Found> found, std::optional<Dtype> as, TensorFolder& all) {
  const auto torch = std::stable_partition(
      found.begin(), found.end(), [](const Found& file) { return !may_be_left_out(file); });
  Adder adder(as, torch != found.end(), all);
  std::set<Index> indexes;
  for (const Found& file : found) {
    adder.add(file);
    if (file.index) indexes.insert(file.index);
  }
  adder.finish();
  for (const Index& index : indexes) check_size(index, all.files, all.notes);
  std::sort(all.files.begin(), all.files.end(), [](const StepFile& a, const StepFile& b) {
    return std::tie(a.step, a.path) < std::tie(b.step, b.path);
  });
}

bool any_below(const log::OpenPath& folder, bool (*is)(const log::OpenPath&)) {
  const auto any = [&](const fs::path& inside) {
    const std::vector<fs::path> paths = log::entries(inside, kWanted);
    return std::any_of(paths.begin(), paths.end(),
                       [&](const fs::path& path) { return is(folder.at(path)); });
  };
  const auto inside = step_folders(folder.path);
  return any(folder.path) || std::any_of(inside.begin(), inside.end(),
                                         [&](const auto& step) { return any(step.first); });
}

}  // namespace

bool holds_tensor_files(const log::OpenPath& folder) {
  return any_below(
      folder, [](const log::OpenPath& path) { return is_tensor_file(path) || is_index(path); });
}

bool holds_torch_files(const log::OpenPath& folder) { return any_below(folder, is_torch_file); }

TensorFolder list_tensor_folder(const log::OpenPath& folder, std::optional<Dtype> as) {
  TensorFolder all;
  all.folder = folder.path;
  all.open = folder.files;
  std::vector<Found> found = files_beside(all.folder, std::nullopt, all);
  for (const auto& [inside, step] : step_folders(all.folder)) {
    const std::vector<Found> more = files_beside(inside, step, all);
    found.insert(found.end(), more.begin(), more.end());
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Found& a, const Found& b) { return a.path < b.path; });
  add_files(each_once(std::move(found), all.folder, all), as, all);
  return all;
}

TensorFolder list_tensor_index(const log::OpenPath& path, std::optional<Dtype> as) {
  TensorFolder all;
  all.folder = path.path;
  all.open = path.files;
  const auto index = std::make_shared<ShardIndex>(read_shard_index(path));
  std::vector<Found> found;
  for (const auto& [name, unused] : index->shards) {
    found.push_back({all.folder.parent_path() / name, std::nullopt, index});
  }
  add_files(std::move(found), as, all);
  return all;
}

std::shared_ptr<log::TensorFile> open_step_file(const StepFile& file) {
  if (file.opened) return file.opened;
  return seen_as(file, open_tensor_file({file.path, file.open}, file.as));
}

TensorFolder single_file(const log::OpenPath& path, std::optional<Dtype> as) {
  using Opened = std::shared_ptr<log::TensorFile>;
  const std::any kept = path.files.kept(path.path);
  const auto* const known = std::any_cast<Opened>(&kept);
  Opened opened = known != nullptr ? *known : open_tensor_file(path, as);
  if (known == nullptr) path.files.keep(path.path, opened);
  TensorFolder alone;
  alone.folder = path.path;
  alone.roles_in_names = any_role_in(opened->names());
  alone.files.push_back(described(path, as, 0, *opened, alone.roles_in_names));
  alone.files.front().step = 0;
  alone.files.front().opened = std::move(opened);
  return alone;
}

double scale_of(const StepFile& file, log::Role role, const frames::Selection& selection) {
  if (selection.recorded_scale) return *selection.recorded_scale;
  if (!file.scaled || !is_gradient(role)) return 1.0;
  if (file.scale) return *file.scale;
  throw frames::InputNeedsOption(
      printable(file.path.string()) +
      ": its metadata says that gradients are scaled, but has no \"scale\" "
      "that is a positive number; give it with " +
      frames::Message(frames::Option::recorded_scale, "S"));
}

}  // namespace halfscope::analyzers::readers::tensors
