// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <system_error>
#include <unordered_set>

#include "halfscope/log/error.hpp"
#include "halfscope/log/event_file.hpp"
#include "halfscope/log/folder.hpp"
#include "halfscope/log/manifest.hpp"
#include "halfscope/log/record_event.hpp"
#include "halfscope/log/run_log.hpp"
#include "halfscope/log/safetensors.hpp"

namespace halfscope::log {
namespace {

void make_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    throw BadInput(printable(folder.string()) + ": cannot make this folder (" + error.message() +
                   "); choose one that can be written");
  }
}

/// Creates the folder and its manifest, without which the other files cannot be interpreted.
std::filesystem::path begin(const std::filesystem::path& folder, const Manifest& manifest) {
  make_folder(folder);
  const std::filesystem::path file = folder / kManifestFile;
  if (std::filesystem::exists(file)) {
    throw BadInput(printable(folder.string()) +
                   ": holds a run log already (run.json), and a log is never written over; "
                   "log to another folder, or delete this one");
  }
  write_manifest(file, manifest);
  return folder;
}

/// TensorBoard reads files with "tfevents" in their names, in the order of names: the new name is
/// after `last`, even if the clock was set back.
std::string event_file_name(const std::string& last = {}) {
  static std::atomic<int> count = 0;
  const auto since_epoch = std::chrono::system_clock::now().time_since_epoch();
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(since_epoch).count();
  const std::string end =
      ".halfscope." + std::to_string(::getpid()) + "." + std::to_string(count++);
  for (int i = 0; i < 1'000'000; ++i) {
    const std::string name = "events.out.tfevents." + std::to_string(seconds + i) + end;
    if (name > last) return name;
  }
  throw BadInput(printable(last) +
                 ": the name of this event file comes after every name that can be made now, but "
                 "files are read in the order of their names; rename it");
}

std::string at_least_six_digits(std::int64_t step) {
  const std::string digits = std::to_string(step);
  return std::string(digits.size() < 6 ? 6 - digits.size() : 0, '0') + digits;
}

void require_step(std::int64_t step, std::string_view where) {
  if (step >= 0) return;
  throw BadInput(std::string(where) + ": step " + std::to_string(step) +
                 ", but steps count from 0; number the attempted steps so");
}

/// Replaces the manifest of an existing log and deletes the samples from `step` on.
std::filesystem::path begin_again(const std::filesystem::path& folder, const Manifest& manifest,
                                  std::int64_t step) {
  require_step(step, printable(folder.string()));
  const RunLog log(folder);
  write_manifest(folder / kManifestFile, manifest);
  const auto samples = log.samples();
  for (auto sample = samples.lower_bound(step); sample != samples.end(); ++sample) {
    std::error_code error;
    std::filesystem::remove(sample->second, error);
    if (error) {
      throw BadInput(printable(sample->second.string()) + ": cannot be deleted (" +
                     error.message() + "), but the run restarts before it; delete it");
    }
  }
  return folder;
}

std::string last_event_file(const std::filesystem::path& folder) {
  std::string last;
  for (const std::filesystem::path& path : entries(folder, "a run log is a folder")) {
    const std::string name = path.filename().string();
    if (name.find("tfevents") != std::string::npos) last = std::max(last, name);
  }
  return last;
}

std::uintmax_t size_of(const std::filesystem::path& file) {
  std::error_code unknown;
  const std::uintmax_t size = std::filesystem::file_size(file, unknown);
  return unknown ? 0 : size;
}

}  // namespace

struct RunLogWriter::Files {
  struct Batch {
    std::string records;
    std::vector<std::string> described;  // tags described first in this batch
  };

  Files(const std::filesystem::path& path, const Manifest& manifest)
      : folder(begin(path, manifest)),
        where(printable(folder.string())),
        gradients(manifest.gradients),
        event_file(folder / event_file_name()),
        events(event_file) {}

  Files(const std::filesystem::path& path, const Manifest& manifest, std::int64_t restart_at)
      : folder(begin_again(path, manifest, restart_at)),
        where(printable(folder.string())),
        gradients(manifest.gradients),
        event_file(folder / event_file_name(last_event_file(folder))),
        events(event_file) {
    proto::Event event;
    event.set_wall_time(wall_time_now());
    event.set_step(restart_at);
    event.mutable_session_log()->set_status(proto::SessionLog::START);
    events.write(event);
    written = size_of(event_file);
  }

  /// Throws BadInput if the log or its samples were deleted or moved, or its event file was
  /// truncated: appending to the open event file would not fail then. At most four stat calls.
  void require_there() const {
    for (const std::filesystem::path& file : {event_file, folder / kManifestFile, samples}) {
      std::error_code unknown;  // a file system that does not respond now
      if (file.empty() || std::filesystem::exists(file, unknown) || unknown) continue;
      throw BadInput(printable(file.string()) +
                     ": is gone, so the log was deleted or moved while it was written; leave its "
                     "folder where it is until the run has ended");
    }
    std::error_code unknown;
    const std::uintmax_t size = std::filesystem::file_size(event_file, unknown);
    if (unknown || size >= written) return;
    throw BadInput(printable(event_file.string()) + ": has " + std::to_string(size) +
                   " bytes of the " + std::to_string(written) +
                   " that were written, so something else cut it; leave the log as it is until the "
                   "run has ended");
  }

  /// Adds an event; the first value of each tag in the file also has metadata.
  void add(std::int64_t step, proto::Summary&& summary, Batch& batch) {
    proto::Event event;
    event.set_wall_time(wall_time_now());
    event.set_step(step);
    *event.mutable_summary() = std::move(summary);
    for (proto::Summary::Value& value : *event.mutable_summary()->mutable_value()) {
      if (!value.has_tensor() || !described.insert(value.tag()).second) continue;
      batch.described.push_back(value.tag());
      describe(value);
    }
    batch.records += framed(event);
  }

  /// Writes the batch that `fill` fills: all of it or, if an exception is thrown, nothing.
  template <typename Fill>
  void write(const Fill& fill) {
    const std::lock_guard lock(mutex);
    require_there();
    Batch batch;
    try {
      fill(batch);
      events.append(batch.records);
      written += batch.records.size();
    } catch (...) {
      for (const std::string& tag : batch.described) described.erase(tag);
      throw;
    }
  }

  std::filesystem::path folder;
  std::string where;
  ScaleState gradients;
  std::mutex mutex;
  std::filesystem::path event_file;
  EventWriter events;
  std::uintmax_t written = size_of(event_file);  ///< size of the event file in bytes
  std::filesystem::path samples = {};            ///< folder of samples; empty: no sample yet
  std::unordered_set<std::string> described;     // tags whose metadata is in the file
};

RunLogWriter::RunLogWriter(const std::filesystem::path& folder, const Manifest& manifest)
    : files_(std::make_unique<Files>(folder, manifest)) {}
RunLogWriter::RunLogWriter(const std::filesystem::path& folder, const Manifest& manifest,
                           std::int64_t restart_at)
    : files_(std::make_unique<Files>(folder, manifest, restart_at)) {}
RunLogWriter::~RunLogWriter() = default;

void RunLogWriter::write(const StepScalars& scalars) {
  require_step(scalars.step, files_->where);
  proto::Summary summary = scalar_values(scalars, files_->where);
  if (summary.value_size() == 0) return;
  files_->write([&](Files::Batch& batch) { files_->add(scalars.step, std::move(summary), batch); });
}

void RunLogWriter::write(const TensorRecord& record) { write({&record, 1}); }

void RunLogWriter::write(std::span<const TensorRecord> records) {
  files_->write([&](Files::Batch& batch) {
    for (const TensorRecord& record : records) {
      require_step(record.step, files_->where);
      files_->add(record.step, record_values(record, files_->where), batch);
    }
  });
}

void RunLogWriter::write_sample(std::int64_t step, const std::vector<NamedTensor>& tensors,
                                const std::map<std::string, std::string>& metadata) {
  require_step(step, files_->where);
  const std::filesystem::path folder = files_->folder / "tensors";
  std::map<std::string, std::string> all = metadata;
  all.insert({{"schema", std::to_string(kSchema)},
              {"step", std::to_string(step)},
              {"gradients", std::string(name_of(files_->gradients))}});
  const std::lock_guard lock(files_->mutex);
  files_->require_there();
  make_folder(folder);
  files_->samples = folder;
  write_safetensors(folder / ("step-" + at_least_six_digits(step) + ".safetensors"), tensors, all);
}

}  // namespace halfscope::log
