// SPDX-License-Identifier: Apache-2.0
#include "sim/training/checkpoint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <system_error>
#include <utility>
#include <vector>

#include "halfscope/log/error.hpp"
#include "halfscope/log/event_file.hpp"
#include "halfscope/log/safetensors.hpp"
#include "sim/backend/tensor_bits.hpp"
#include "sim/training/run_settings.hpp"

namespace halfscope::sim::training {

using backend::Tensor;

namespace {

namespace fs = std::filesystem;
using log::BadInput;
using Metadata = std::map<std::string, std::string>;

constexpr std::size_t kKept = 2;

/// A counter and its name in the file.
constexpr std::pair<std::string_view, std::int64_t Counters::*> kCounts[] = {
    {"step", &Counters::step},
    {"applied", &Counters::applied},
    {"next_batch", &Counters::next_batch},
    {"skipped", &Counters::skipped},
    {"attempts", &Counters::attempts},
    {"nonfinite", &Counters::nonfinite}};
constexpr std::pair<std::string_view, double Counters::*> kNumbers[] = {
    {"first_loss", &Counters::first_loss}, {"last_loss", &Counters::last_loss}};

/// Calls see(name, tensor) for every tensor of the state.
template <class See>
void for_each_tensor(TrainingState& state, backend::UpdateRule::Kind optimizer, See&& see) {
  const auto keys = state_names(optimizer);
  for (autograd::Parameter* const parameter : state.parameters.all()) {
    see("weight/" + parameter->name, parameter->weight);
    if (parameter->master) see("master_weight/" + parameter->name, parameter->master);
    for (std::size_t i = 0; i < parameter->state.size(); ++i) {
      see(fmt::format("optimizer_state/{}/{}", keys.at(i), parameter->name), parameter->state[i]);
    }
  }
}

constexpr const char* kChecksum = "crc32c";
constexpr const char* kRun = "run";  ///< metadata key of the run's settings

/// Checksum of a checkpoint's other metadata, and of its tensors in order.
class Checksum {
 public:
  explicit Checksum(const Metadata& metadata) {
    for (const auto& [key, value] : metadata) {
      if (key != kChecksum) said_ += fmt::format("{}={}\n", key, value);
    }
  }
  void add(const std::string& name, const TensorView& values) {
    const auto* const bytes = reinterpret_cast<const char*>(values.data);
    said_ += fmt::format("{} {:08x}\n", name, log::crc32c({bytes, values.bytes()}));
  }
  std::string text() const { return fmt::format("{:08x}", log::crc32c(said_)); }

 private:
  std::string said_;
};

/// Returns the checkpoint files by step, ascending.
std::map<std::int64_t, fs::path> checkpoints(const fs::path& run) {
  constexpr std::string_view kBefore = "step-", kAfter = ".safetensors";
  std::map<std::int64_t, fs::path> found;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(run / "checkpoint", error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kBefore) || !name.ends_with(kAfter)) continue;
    std::int64_t step = 0;
    const char* const end = name.data() + name.size() - kAfter.size();
    const auto [stop, bad] = std::from_chars(name.data() + kBefore.size(), end, step);
    if (bad == std::errc() && stop == end) found[step] = entry.path();
  }
  return found;
}

[[noreturn]] void refuse(const fs::path& file, const std::string& what) {
  throw BadInput(fmt::format("{}: {}", log::printable(file.string()), what));
}

const std::string& told(const fs::path& file, const Metadata& metadata, std::string_view key) {
  const auto at = metadata.find(std::string(key));
  if (at == metadata.end()) refuse(file, fmt::format("its metadata does not have '{}'", key));
  return at->second;
}

Counters counters_of(const fs::path& file, const Metadata& metadata) {
  Counters counters;
  for (const auto& [name, member] : kCounts) {
    const std::string& text = told(file, metadata, name);
    const auto [stop, bad] =
        std::from_chars(text.data(), text.data() + text.size(), counters.*member);
    if (bad != std::errc() || stop != text.data() + text.size() || counters.*member < 0) {
      refuse(file,
             fmt::format("its metadata has {} '{}', expected a count", name, log::printable(text)));
    }
  }
  for (const auto& [name, member] : kNumbers) {
    counters.*member = std::strtod(told(file, metadata, name).c_str(), nullptr);
  }
  return counters;
}

/// Throws if a checkpoint belongs to another run. Old checkpoints do not name their run; they pass.
void require_own(const fs::path& file, const Metadata& metadata, const Settings& settings) {
  const auto run = metadata.find(kRun);
  if (run == metadata.end()) return;
  const std::string why = other_run(settings, run->second);
  if (!why.empty()) refuse(file, why + ", or it is damaged");
}

void read_one(const fs::path& file, const Settings& settings, TrainingState& state) {
  const backend::UpdateRule::Kind optimizer = settings.rule.kind;
  const log::Safetensors tensors(file);
  require_own(file, tensors.metadata(), settings);
  const auto find = [&](const std::string& name) {
    auto from = tensors.tensor(name);  // its elements' lifetime depends on it
    if (!from) refuse(file, "has no tensor '" + log::printable(name) + "'");
    return from;
  };
  Checksum sum(tensors.metadata());
  for_each_tensor(state, optimizer,
                  [&](const std::string& name, const Tensor&) { sum.add(name, find(name)->view); });
  if (sum.text() != told(file, tensors.metadata(), kChecksum)) {
    refuse(file, "its checksum does not fit what it holds");
  }
  const Counters counters = counters_of(file, tensors.metadata());
  for_each_tensor(state, optimizer, [&](const std::string& name, Tensor& to) {
    const auto from = find(name);
    const std::vector<std::uint64_t> wanted(to.shape.begin(), to.shape.end());
    if (from->shape != wanted || from->view.dtype != to.dtype) {
      refuse(file, fmt::format("tensor '{}' is {} {}, and the run's is {} {}", log::printable(name),
                               name_of(from->view.dtype), log::shape_text(from->shape),
                               name_of(to.dtype), log::shape_text(wanted)));
    }
    backend::set_bits(state.backend, from->view, to);
  });
  try {
    state.scaling.restore(told(file, tensors.metadata(), "policy"));
  } catch (const std::invalid_argument& error) {
    refuse(file, std::string("the state of its loss-scaling policy cannot be read (") +
                     log::printable(error.what()) + ")");
  }
  state.counters = counters;
}

}  // namespace

void write_checkpoint(const fs::path& run, const Settings& settings, TrainingState& state) {
  const fs::path folder = run / "checkpoint";
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    throw BadInput(fmt::format("{}: cannot make this folder ({}); free space, or change its rights",
                               log::printable(folder.string()), error.message()));
  }
  std::vector<std::pair<std::string, backend::TensorBits>> kept;
  for_each_tensor(state, settings.rule.kind, [&](const std::string& name, const Tensor& tensor) {
    kept.emplace_back(name, backend::bits_of(state.backend, tensor));
  });
  std::vector<log::NamedTensor> tensors;
  for (const auto& [name, bits] : kept) tensors.push_back(bits.named(name));
  Metadata metadata = {{"policy", state.scaling.state()}, {kRun, identity_text(settings)}};
  for (const auto& [name, member] : kCounts) {
    metadata[std::string(name)] = std::to_string(state.counters.*member);
  }
  for (const auto& [name, member] : kNumbers) {
    metadata[std::string(name)] = fmt::format("{:a}", state.counters.*member);
  }
  Checksum sum(metadata);
  for (const log::NamedTensor& tensor : tensors) sum.add(tensor.name, tensor.view);
  metadata[kChecksum] = sum.text();
  log::write_safetensors(folder / fmt::format("step-{:06}.safetensors", state.counters.step),
                         tensors, metadata);
  auto all = checkpoints(run);
  while (all.size() > kKept) {
    fs::remove(all.begin()->second, error);  // an error here is harmless: one file too many remains
    all.erase(all.begin());
  }
}

std::vector<std::string> read_checkpoint(const fs::path& run, const Settings& settings,
                                         TrainingState& state) {
  const auto all = checkpoints(run);
  if (all.empty()) {
    throw BadInput(
        fmt::format("{}: has no checkpoint (checkpoint/step-NNNNNN.safetensors) to continue from; "
                    "begin again with --force, or in another folder",
                    log::printable(run.string())));
  }
  std::vector<std::string> refused;
  for (auto at = all.rbegin(); at != all.rend(); ++at) {
    try {
      read_one(at->second, settings, state);
    } catch (const BadInput& error) {
      refused.emplace_back(error.what());  // an earlier checkpoint may be usable
      continue;
    }
    for (std::string& why : refused) {
      why += fmt::format("; continues from step {} instead", state.counters.step);
    }
    return refused;
  }
  throw BadInput(
      refused.front() +
      "; no checkpoint here is whole and of this run: restore one, or begin again with --force");
}

}  // namespace halfscope::sim::training
