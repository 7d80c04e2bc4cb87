// SPDX-License-Identifier: Apache-2.0
#include "halfscope/log/run_log.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <stdexcept>
#include <system_error>
#include <tuple>
#include <unordered_map>

#include "halfscope/log/error.hpp"
#include "halfscope/log/event_file.hpp"
#include "halfscope/log/folder.hpp"
#include "halfscope/log/manifest.hpp"
#include "halfscope/log/record_event.hpp"

namespace halfscope::log {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::pair<Role, std::string_view>, 11> kRoles = {{
    {Role::weight_grad, "weight_grad"},
    {Role::activation_grad, "activation_grad"},
    {Role::local_weight_grad, "local_weight_grad"},
    {Role::activation, "activation"},
    {Role::weight, "weight"},
    {Role::weight_after, "weight_after"},
    {Role::master_weight, "master_weight"},
    {Role::update, "update"},
    {Role::optimizer_state, "optimizer_state"},
    {Role::loss, "loss"},
    {Role::unknown, "unknown"},
}};

/// Returns the number in names such as step-000012.safetensors and rank-0003.
std::optional<std::int64_t> number_in(std::string_view name, std::string_view prefix,
                                      std::string_view suffix, std::size_t least_digits) {
  if (!name.starts_with(prefix) || !name.ends_with(suffix)) return std::nullopt;
  if (name.size() < prefix.size() + suffix.size() + least_digits) return std::nullopt;
  name.remove_prefix(prefix.size());
  name.remove_suffix(suffix.size());
  std::int64_t number = 0;
  const char* const end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data(), end, number);
  if (error != std::errc() || stop != end || number < 0) return std::nullopt;
  return number;
}

bool is_folder(const fs::path& path) {
  std::error_code unreadable;
  return fs::is_directory(path, unreadable);
}

bool is_file(const fs::path& path) {
  std::error_code unreadable;
  return fs::is_regular_file(path, unreadable);
}

constexpr std::string_view kWanted = "a run log is a folder that can be read";

std::vector<fs::path> event_files(const fs::path& folder) {
  std::vector<fs::path> files = entries(folder, kWanted);
  std::erase_if(files, [](const fs::path& path) {
    return path.filename().string().find("tfevents") == std::string::npos || !is_file(path);
  });
  return files;
}

std::map<std::int64_t, fs::path> sample_files(const fs::path& folder) {
  std::map<std::int64_t, fs::path> samples;
  if (!is_folder(folder / "tensors")) return samples;
  for (const fs::path& path : entries(folder / "tensors", kWanted)) {
    const auto step = number_in(path.filename().string(), "step-", ".safetensors", 6);
    if (step) samples[*step] = path;
  }
  return samples;
}

}  // namespace

std::string_view name_of(Role role) { return kRoles.at(static_cast<std::size_t>(role)).second; }

std::optional<Role> find_role(std::string_view name) {
  for (const auto& [role, its_name] : kRoles) {
    if (name == its_name && role != Role::unknown) return role;
  }
  return std::nullopt;
}

std::optional<Role> role_in_name(std::string_view tensor_name) {
  const std::size_t slash = tensor_name.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  return find_role(tensor_name.substr(0, slash));
}

bool is_gradient(Role role) {
  return role == Role::weight_grad || role == Role::activation_grad ||
         role == Role::local_weight_grad;
}

bool is_forward(Role role) {
  return role == Role::weight || role == Role::master_weight || role == Role::activation;
}

/// Reads a log's events once and fills in the members of RunLog.
class RunLogIndex {
 public:
  explicit RunLogIndex(RunLog& log) : log_(log) {}

  void read(const RunLog::Progress& progress) {
    const std::vector<std::uint64_t> starts = starts_of_files();
    for (std::size_t file = 0; file < log_.files_.size(); ++file) {
      EventReader reader(log_.folder_.at(log_.files_[file]));
      while (const auto event = reader.next()) {
        take(*event, file, reader.offset());
        if (progress) progress(starts[file] + reader.offset(), starts.back());
      }
      log_.notes_.insert(log_.notes_.end(), reader.notes().begin(), reader.notes().end());
    }
    for (const auto& [name, by_step] : places_) {
      for (const auto& [step, place] : by_step) {
        log_.records_.push_back({place.first, place.second, name, step});
      }
    }
    std::sort(log_.records_.begin(), log_.records_.end(), [](const auto& a, const auto& b) {
      return std::tie(a.file, a.offset, a.name) < std::tie(b.file, b.offset, b.name);
    });
  }

 private:
  /// Returns the number of bytes of all files before each file, and of all files.
  std::vector<std::uint64_t> starts_of_files() const {
    std::vector<std::uint64_t> starts = {0};
    for (const fs::path& path : log_.files_) {
      std::error_code ignored;
      const std::uint64_t size = fs::file_size(path, ignored);
      starts.push_back(starts.back() + (ignored ? 0 : size));
    }
    return starts;
  }

  void take(const proto::Event& event, std::size_t file, std::uint64_t offset) {
    if (event.session_log().status() == proto::SessionLog::START) forget_from(event.step());
    for_each_scalar(event.summary(), [&](const std::string& tag, double value) {
      if (!is_utf8(tag)) return skip(file, offset, "scalar '" + printable(tag) + "' is not UTF-8");
      StepScalars& scalars = log_.scalars_[event.step()];
      scalars.step = event.step();
      set_scalar(scalars, tag, value);
    });
    const RecordEvent records(event);
    for (const std::string& name : records.names()) {
      try {
        static_cast<void>(records.read(name));
        places_[name][event.step()] = {file, offset};
      } catch (const std::invalid_argument& error) {
        skip(file, offset,
             "tensor '" + printable(name) + "' at step " + std::to_string(event.step()) + ": " +
                 error.what());
      }
    }
  }

  /// Drops all entries from `step` on, because the run was restarted there.
  void forget_from(std::int64_t step) {
    log_.scalars_.erase(log_.scalars_.lower_bound(step), log_.scalars_.end());
    for (auto& [name, by_step] : places_) {
      by_step.erase(by_step.lower_bound(step), by_step.end());
    }
  }

  void skip(std::size_t file, std::uint64_t offset, const std::string& why) {
    constexpr std::size_t kMostNotes = 100;
    if (++skipped_ < kMostNotes) {
      log_.notes_.push_back(printable(log_.files_[file].string()) + ": record at byte " +
                            std::to_string(offset) + " skipped: " + why);
    } else if (skipped_ == kMostNotes) {
      log_.notes_.push_back(printable(log_.folder().string()) +
                            ": more records are skipped than are listed here");
    }
  }

  RunLog& log_;
  std::map<std::string, std::map<std::int64_t, std::pair<std::size_t, std::uint64_t>>> places_;
  std::size_t skipped_ = 0;
};

bool RunLog::is_one(const fs::path& folder) {
  if (!is_folder(folder)) return false;
  std::error_code unreadable;
  if (fs::exists(folder / kManifestFile, unreadable)) return true;
  const bool events = !event_files(folder).empty();
  if (!events && sample_files(folder).empty()) return false;
  throw BadInput(printable(folder.string()) + ": holds " +
                 (events ? "event files" : "sampled tensors") +
                 " but no run.json, which every run log needs; copy it from where the run was "
                 "recorded, or write {\"schema\": 1, \"gradients\": \"unscaled\"} to it if that is "
                 "how it was recorded (docs/run-log.md)");
}

RunLog::RunLog(const OpenPath& folder, const Progress& progress) : folder_(folder) {
  if (!is_one(folder.path)) {
    throw BadInput(printable(folder.path.string()) +
                   ": is not a run log, which is a folder with a run.json; name such a folder");
  }
  manifest_ = read_manifest(folder.at(folder.path / kManifestFile));
  files_ = event_files(folder.path);
  RunLogIndex(*this).read(progress);
}

std::vector<StepScalars> RunLog::scalars() const {
  std::vector<StepScalars> all;
  for (const auto& [step, scalars] : scalars_) all.push_back(scalars);
  return all;
}

void RunLog::for_each(const std::function<void(TensorRecord&&)>& visit,
                      const Wanted& wanted) const {
  std::optional<EventReader> reader;
  std::optional<proto::Event> event;  // kept, because an event may have thousands of records
  std::optional<RecordEvent> records;
  const Place* held = nullptr;
  const auto record_at = [&](const Place& place) {
    if (held == nullptr || held->file != place.file) reader.emplace(folder_.at(files_[place.file]));
    if (held == nullptr || held->file != place.file || held->offset != place.offset) {
      reader->seek(place.offset);
      event = reader->next();
      if (!event || reader->offset() != place.offset) throw std::invalid_argument("it is gone");
      records.emplace(*event);
    }
    held = &place;
    return records->read(place.name);
  };
  for (const Place& place : records_) {
    if (wanted && !wanted(place.name, place.step)) continue;
    std::optional<TensorRecord> record;
    try {
      record = record_at(place);
    } catch (const std::invalid_argument& error) {
      throw BadInput(printable(files_[place.file].string()) + ": tensor '" + printable(place.name) +
                     "' at step " + std::to_string(place.step) + " changed while it was read (" +
                     error.what() + "); read the log again");
    }
    visit(std::move(*record));
  }
}

std::map<std::int64_t, fs::path> RunLog::samples() const { return sample_files(folder_.path); }

std::vector<fs::path> rank_folders(const fs::path& folder) {
  std::map<std::int64_t, fs::path> ranks;
  if (!is_folder(folder)) return {};
  for (const fs::path& path : entries(folder, kWanted)) {
    const auto rank = number_in(path.filename().string(), "rank-", "", 4);
    if (rank && is_folder(path)) ranks[*rank] = path;
  }
  std::vector<fs::path> folders;
  folders.reserve(ranks.size());
  for (const auto& [rank, path] : ranks) folders.push_back(path);
  return folders;
}

}  // namespace halfscope::log
