// SPDX-License-Identifier: Apache-2.0
#include "analyzers/tensor_folder.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <system_error>
#include <tuple>

#include "analyzers/readers/open.hpp"
#include "halfscope/log/folder.hpp"
#include "halfscope/log/safetensors.hpp"

namespace halfscope::analyzers {
namespace {

namespace fs = std::filesystem;
using log::BadInput;
using log::printable;

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Where a name tells its step.
struct StepMark {
  std::size_t begin = 0, end = 0;
  std::int64_t step = 0;
};

/// "step-000012" at `at`, which must begin and end a word.
std::optional<StepMark> mark_at(std::string_view name, std::size_t at) {
  if (at > 0 && (is_letter(name[at - 1]) || is_digit(name[at - 1]))) return std::nullopt;
  constexpr std::array<std::string_view, 2> kWords = {"step", "checkpoint"};
  for (const std::string_view word : kWords) {
    const std::string_view found = name.substr(at, word.size());
    const bool same = std::equal(found.begin(), found.end(), word.begin(), word.end(),
                                 [](char a, char b) { return (a | 0x20) == b; });
    if (!same) continue;
    std::size_t first = at + word.size();
    if (first < name.size() && (name[first] == '-' || name[first] == '_' || name[first] == '=')) {
      ++first;
    }
    std::int64_t step = 0;
    const char* const end = name.data() + name.size();
    if (first >= name.size() || !is_digit(name[first])) continue;  // from_chars takes a sign
    const auto [stop, error] = std::from_chars(name.data() + first, end, step);
    if (error != std::errc() || (stop != end && is_letter(*stop))) continue;
    return StepMark{at, static_cast<std::size_t>(stop - name.data()), step};
  }
  return std::nullopt;
}

std::optional<StepMark> last_mark(std::string_view name) {
  for (std::size_t at = name.size(); at-- > 0;) {
    if (const auto mark = mark_at(name, at)) return mark;
  }
  return std::nullopt;
}

/// A name without its step and the marks that joined it to the rest: "fc_step12" is "fc".
std::string without_step(const std::string& name) {
  const auto mark = last_mark(name);
  if (!mark) return name;
  const auto joins = [](char c) { return c == '-' || c == '_' || c == '.'; };
  std::string before = name.substr(0, mark->begin), after = name.substr(mark->end);
  while (!before.empty() && joins(before.back())) before.pop_back();
  while (before.empty() && !after.empty() && joins(after.front())) after.erase(0, 1);
  return before.empty() && after.empty() ? "tensor" : before + after;
}

constexpr std::string_view kWanted = "want one that can be read";

bool is_tensor_file(const fs::path& path) {
  std::error_code unreadable;
  const fs::path extension = path.extension();
  return (extension == ".safetensors" || extension == ".npy" || extension == ".npz") &&
         path.filename().string().front() != '.' && fs::is_regular_file(path, unreadable);
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

/// A file whose one tensor has another name.
class RenamedFile final : public log::TensorFile {
 public:
  RenamedFile(std::unique_ptr<log::TensorFile> file, std::string name)
      : file_(std::move(file)), name_(std::move(name)), skipped_(file_->skipped()) {
    for (log::SkippedTensor& skipped : skipped_) skipped.name = name_;
  }

  void for_each(const std::function<void(const log::NamedTensor&)>& visit) const override {
    file_->for_each([&](const log::NamedTensor& tensor) {
      visit({name_, tensor.shape, tensor.view});
    });
  }
  const std::vector<log::SkippedTensor>& skipped() const override { return skipped_; }
  std::vector<std::string> names() const override {
    return std::vector<std::string>(file_->names().size(), name_);
  }
  std::shared_ptr<const log::NamedTensor> tensor(std::string_view name) const override {
    const std::vector<std::string> names = file_->names();
    if (name != name_ || names.empty()) return nullptr;
    struct Held {
      std::shared_ptr<const log::NamedTensor> data;
      log::NamedTensor tensor;
    };
    auto held = std::make_shared<Held>();
    held->data = file_->tensor(names.front());
    held->tensor = {name_, held->data->shape, held->data->view};
    return {held, &held->tensor};
  }

 private:
  std::unique_ptr<log::TensorFile> file_;
  std::string name_;
  std::vector<log::SkippedTensor> skipped_;
};

/// Takes what the metadata says; the step too, if it is one.
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

void add_file(const fs::path& path, std::optional<std::int64_t> folder_step, TensorFolder& all) {
  StepFile file;
  file.path = path;
  const std::string stem = path.stem().string();
  file.step = step_in_name(stem).value_or(folder_step.value_or(0));
  std::error_code ignored;
  file.bytes = fs::file_size(path, ignored);
  const auto opened = readers::open_tensor_file(path);
  take_metadata(*opened, file);
  std::vector<std::string> names = opened->names();
  if (path.extension() == ".npy") {
    file.tensor = without_step(stem);
    all.npy_names_cut = all.npy_names_cut || file.tensor != stem;
    names = {file.tensor};
  }
  all.roles_in_names =
      all.roles_in_names || std::any_of(names.begin(), names.end(), [](const std::string& name) {
        return log::role_in_name(name).has_value();
      });
  all.files.push_back(std::move(file));
}

/// A path of a tensor file, and the step of the folder in the folder that it is in.
struct Found {
  fs::path path;
  std::optional<std::int64_t> folder_step;
};

std::vector<Found> files_in(const fs::path& folder) {
  std::vector<Found> found;
  std::error_code unreadable;
  for (const fs::path& path : log::entries(folder, kWanted)) {
    if (is_tensor_file(path)) found.push_back({path, std::nullopt});
    const auto step = step_in_name(path.filename().string());
    if (!step || !fs::is_directory(path, unreadable)) continue;
    for (const fs::path& inner : log::entries(path, kWanted)) {
      if (is_tensor_file(inner)) found.push_back({inner, step});
    }
  }
  return found;
}

/// Where the file itself lies; the path as it is where that cannot be told.
fs::path real_path(const fs::path& path) {
  std::error_code error;
  fs::path real = fs::canonical(path, error);
  return error ? path : real;
}

/// Of paths to one file the one without links is kept, else the first.
std::vector<Found> each_once(std::vector<Found> all, const fs::path& folder, TensorFolder& to) {
  const fs::path root = real_path(folder);
  std::vector<fs::path> real;
  std::map<fs::path, std::size_t> kept;  // by where they lie
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

}  // namespace

std::optional<std::int64_t> step_in_name(std::string_view name) {
  const auto mark = last_mark(name);
  return mark ? std::optional(mark->step) : std::nullopt;
}

TensorFolder list_tensor_folder(const fs::path& folder) {
  TensorFolder all;
  all.folder = folder;
  for (const Found& found : each_once(files_in(folder), folder, all)) {
    add_file(found.path, found.folder_step, all);
  }
  std::sort(all.files.begin(), all.files.end(), [](const StepFile& a, const StepFile& b) {
    return std::tie(a.step, a.path) < std::tie(b.step, b.path);
  });
  return all;
}

std::unique_ptr<log::TensorFile> open_step_file(const StepFile& file) {
  auto opened = readers::open_tensor_file(file.path);
  if (file.tensor.empty()) return opened;
  return std::make_unique<RenamedFile>(std::move(opened), file.tensor);
}

StepFile single_file(const fs::path& path) {
  StepFile file;
  file.path = path;
  std::error_code ignored;
  file.bytes = fs::file_size(path, ignored);
  take_metadata(*readers::open_tensor_file(path), file);
  file.step = 0;
  return file;
}

double scale_of(const StepFile& file, log::Role role, const Selection& selection) {
  if (selection.recorded_scale) return *selection.recorded_scale;
  const bool gradient = role == log::Role::weight_grad || role == log::Role::activation_grad;
  if (!file.scaled || !gradient) return 1.0;
  if (file.scale) return *file.scale;
  throw BadInput(printable(file.path.string()) +
                 ": its metadata says that gradients are scaled, but has no \"scale\" that is a "
                 "positive number; give it with --recorded-scale S");
}

}  // namespace halfscope::analyzers
