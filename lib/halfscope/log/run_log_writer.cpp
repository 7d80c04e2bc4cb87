// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <system_error>

#include "halfscope/log/error.hpp"
#include "halfscope/log/event_file.hpp"
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

/// Makes the folder and its manifest, which says what all the rest means.
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

/// TensorBoard takes any name with "tfevents" and reads files in the order of their names.
std::string event_file_name() {
  static std::atomic<int> count = 0;
  const auto since_epoch = std::chrono::system_clock::now().time_since_epoch();
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(since_epoch).count();
  return "events.out.tfevents." + std::to_string(seconds) + ".halfscope." +
         std::to_string(::getpid()) + "." + std::to_string(count++);
}

std::string at_least_six_digits(std::int64_t step) {
  const std::string digits = std::to_string(step);
  return std::string(digits.size() < 6 ? 6 - digits.size() : 0, '0') + digits;
}

void require_step(std::int64_t step, std::string_view where) {
  if (step >= 0) return;
  throw BadInput(std::string(where) + ": step " + std::to_string(step) +
                 ", and steps count from 0; number the attempted steps so");
}

}  // namespace

struct RunLogWriter::Files {
  Files(const std::filesystem::path& path, const Manifest& manifest)
      : folder(begin(path, manifest)),
        where(printable(folder.string())),
        gradients(manifest.gradients),
        events(folder / event_file_name()) {}

  void write(std::int64_t step, proto::Summary&& summary) {
    proto::Event event;
    event.set_wall_time(
        std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count());
    event.set_step(step);
    *event.mutable_summary() = std::move(summary);
    const std::lock_guard lock(mutex);
    for (proto::Summary::Value& value : *event.mutable_summary()->mutable_value()) {
      if (value.has_metadata() && described.contains(value.tag())) value.clear_metadata();
    }
    events.write(event);
    for (const proto::Summary::Value& value : event.summary().value()) {
      if (value.has_metadata()) described.insert(value.tag());
    }
  }

  std::filesystem::path folder;
  std::string where;
  ScaleState gradients;
  std::mutex mutex;
  EventWriter events;
  std::set<std::string> described;  // tags whose metadata is in the file
};

RunLogWriter::RunLogWriter(const std::filesystem::path& folder, const Manifest& manifest)
    : files_(std::make_unique<Files>(folder, manifest)) {}
RunLogWriter::~RunLogWriter() = default;

void RunLogWriter::write(const StepScalars& scalars) {
  require_step(scalars.step, files_->where);
  proto::Summary summary = scalar_values(scalars, files_->where);
  if (summary.value_size() != 0) files_->write(scalars.step, std::move(summary));
}

void RunLogWriter::write(const TensorRecord& record) {
  require_step(record.step, files_->where);
  files_->write(record.step, record_values(record, files_->where));
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
  make_folder(folder);
  write_safetensors(folder / ("step-" + at_least_six_digits(step) + ".safetensors"), tensors, all);
}

}  // namespace halfscope::log
