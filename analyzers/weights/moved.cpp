// SPDX-License-Identifier: Apache-2.0
#include "analyzers/weights/moved.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <regex>

#include "analyzers/frames/elements.hpp"
#include "analyzers/readers/kinds.hpp"
#include "analyzers/readers/samples.hpp"
#include "analyzers/readers/tensors/names.hpp"
#include "analyzers/underflow/modules.hpp"
#include "analyzers/weights/sent.hpp"
#include "halfscope/optimizer/changed.hpp"

namespace halfscope::analyzers::weights {

using log::BadInput;
using log::printable;
using log::Role;

namespace {

std::string outline_text(const log::NamedTensor& tensor) {
  return fmt::format("{} in {}", log::shape_text(tensor.shape), name_of(tensor.view.dtype));
}

/// Names kinds of layers by the classes of modules, if the manifest has the class of each tensor's
/// module.
void set_kinds(std::vector<TensorMovement>& tensors, const std::optional<log::Manifest>& manifest) {
  underflow::LogFindings log;
  log.manifest = manifest;
  for (const TensorMovement& tensor : tensors) {
    underflow::TensorFindings& of_log = log.tensors.emplace_back();
    of_log.name = tensor.name;
    of_log.role = Role::weight;
  }
  const underflow::Modules modules(log);
  std::vector<std::string> kinds;
  for (const underflow::TensorFindings& tensor : log.tensors) {
    const std::string_view type = modules.class_of(modules.of(tensor));
    if (type.empty()) return;
    kinds.push_back(fmt::format("{}.{}", type, tensor.name.substr(tensor.name.rfind('.') + 1)));
  }
  for (std::size_t i = 0; i < kinds.size(); ++i) tensors[i].kind = std::move(kinds[i]);
}

/// Sums over all tensors, and by kind of layer.
void sum_up(Movement& movement) {
  std::map<std::string, KindMovement> kinds;
  for (const TensorMovement& tensor : movement.tensors) {
    KindMovement& kind = kinds[tensor.kind];
    kind.kind = tensor.kind;
    ++kind.tensors;
    kind += tensor;
    movement.all += tensor;
  }
  for (auto& [name, kind] : kinds) movement.kinds.push_back(std::move(kind));
  std::ranges::stable_sort(movement.kinds, std::greater<>(), &KindMovement::elements);
}

}  // namespace

std::string MovedPass::label(std::size_t step) const {
  return names_.size() == 2 ? names_[step] : fmt::format("{}: step {}", names_[0], steps_[step]);
}

void MovedPass::begin(const std::string& name) {
  names_.push_back(printable(name));
  begins_ = true;
}

void MovedPass::take(const frames::WholeStep& step, const std::string& name) {
  if (begins_ || steps_.back() != step.step) steps_.push_back(step.step);
  begins_ = false;
  if (step.run != nullptr && !manifest_) manifest_ = step.run->manifest();
  const Role role = step.role_of(selection_, name);
  if (role != Role::weight && role != Role::master_weight) return;
  if (!frames::selects(selection_, name) || (step.rank > 0 && !step.is_sharded(role))) return;
  if (!taken_.insert(name).second) return;
  take({role, std::string(underflow::path_of(name))}, {step.tensors, *step.tensors->outline(name)});
}

void MovedPass::take(const frames::WholeStep& step, const frames::ProgressCallback& tell) {
  std::size_t done = 0;
  for (const std::string& name : step.tensors->names()) {
    if (tell) tell(static_cast<double>(done++) / static_cast<double>(step.tensors->size()));
    take(step, name);
  }
  taken_.clear();
}

void MovedPass::take(const Key& key, Place&& place) {
  Tensor& tensor = tensors_[key];
  auto shard = std::ranges::find_if(tensor.shards,
                                    [&](const Shard& one) { return one.steps < steps_.size(); });
  if (shard == tensor.shards.end()) shard = tensor.shards.insert(shard, Shard{place, place});
  const log::NamedTensor &now = place.outline, &before = shard->last.outline;
  if (!tensor.misfit.empty() || shard->steps + 1 != steps_.size()) return;  // fits() reports it
  if (now.shape != before.shape || now.view.dtype != before.view.dtype) {
    tensor.misfit =
        fmt::format("{}: tensor '{}' is {}, expected {} as in {}", label(shard->steps),
                    printable(now.name), outline_text(now), outline_text(before), label(0));
    return;
  }
  if (shard->steps != 0 && !is_master_of_weight(key)) compare(tensor, *shard, place);
  shard->last = std::move(place);
  ++shard->steps;
}

bool MovedPass::is_master_of_weight(const Key& key) const {
  return key.first == Role::master_weight && tensors_.contains({Role::weight, key.second});
}

void MovedPass::compare(Tensor& tensor, Shard& shard, const Place& now) {
  const auto a = shard.last.load(), b = now.load();
  const Dtype copies = optimizer::copy_dtype(a->view.dtype, options_.copies);
  shard.moved.resize((a->view.count + 7) / 8);
  tensor.changed.resize(shard.steps);
  const auto work = [&](std::size_t block) {
    const std::size_t first = block * kBlock, n = std::min(kBlock, a->view.count - first);
    std::vector<std::uint8_t> bits((n + 7) / 8);
    const std::uint64_t changed = optimizer::changed(a->view, b->view, copies, first, n, bits);
    const auto moved = std::span(shard.moved).subspan(first / 8, bits.size());
    std::ranges::transform(moved, bits, moved.begin(), std::bit_or<>());
    return changed;
  };
  frames::in_order<std::uint64_t>((a->view.count + kBlock - 1) / kBlock, 0, work,
                                  [&](std::uint64_t changed) { tensor.changed.back() += changed; });
  if (!options_.bytes) return;
  if (!bytes_) bytes_.emplace();
  add_sent(a->view, b->view, copies, *bytes_);
}

/// Returns true if a tensor's steps can be compared; else adds a note, or throws.
bool MovedPass::fits(const Tensors::value_type& entry, frames::Notes& notes) const {
  const Tensor& tensor = entry.second;
  std::string misfit = tensor.misfit;
  for (const Shard& shard : tensor.shards) {
    if (!misfit.empty() || shard.steps == steps_.size()) continue;
    const log::NamedTensor& last = shard.last.outline;
    misfit = fmt::format("{}: tensor '{}' is missing, expected {}", label(shard.steps),
                         printable(last.name), outline_text(last));
  }
  if (misfit.empty()) return true;
  if (!options_.skip_misfits) {
    throw BadInput(misfit + "; compare one network, or select tensors with --tensor GLOB");
  }
  notes.add(misfit + ": which of its weights move is not counted");
  return false;
}

TensorMovement MovedPass::measure(const Tensors::value_type& entry) {
  static const std::regex number("(^|[./])[0-9]+(?=[./]|$)");
  const auto& [key, tensor] = entry;
  const log::NamedTensor& outline = tensor.shards[0].last.outline;
  TensorMovement out;
  out.name = outline.name;
  out.role = key.first;
  out.kind = std::regex_replace(key.second, number, "$1*");
  out.dtype = outline.view.dtype;
  out.copies = optimizer::copy_dtype(out.dtype, options_.copies);
  for (const Shard& shard : tensor.shards) {
    out.elements += shard.last.outline.view.count;
    out.moved += optimizer::count_bits(shard.moved);
  }
  out.changed = tensor.changed;
  for (std::size_t i = 0; i < out.changed.size(); ++i) {
    if (out.changed[i] != 0) out.last_moved = steps_[i + 1];
  }
  if (options_.stalls && out.frozen() != 0) out.stall = stalls_of(key, out.copies);
  return out;
}

std::optional<Movement> MovedPass::finish(const frames::Progress& progress) && {
  if (steps_.size() < 2) return std::nullopt;
  const bool two = names_.size() == 2;
  for (std::size_t i = 0; two && i < 2; ++i) {
    const std::string name = std::filesystem::path(names_[i]).filename().string();
    steps_[i] = readers::tensors::step_in_name(name).value_or(steps_[i]);
  }
  if (two && steps_[0] >= steps_[1]) steps_ = {0, 1};
  Movement out{names_[0], two ? names_[1] : "", steps_};
  std::vector<log::RawTensor> sets;
  std::uint64_t done = 0;
  for (const auto& entry : tensors_) {
    if (progress) progress(done++, tensors_.size());
    if (is_master_of_weight(entry.first) || !fits(entry, out.notes)) continue;
    out.tensors.push_back(measure(entry));
    const std::vector<Shard>& shards = entry.second.shards;
    for (std::size_t i = 0; i < shards.size() && !options_.set.empty(); ++i) {
      const std::uint64_t moved = optimizer::count_bits(shards[i].moved);
      const std::string part = i == 0 ? "" : fmt::format("#{}", i);
      if (moved == 0) continue;
      sets.push_back(set_tensor(out.tensors.back().name + part, shards[i].moved, moved));
    }
  }
  if (out.tensors.empty()) return std::nullopt;
  set_kinds(out.tensors, manifest_);
  sum_up(out);
  out.bytes = bytes_;
  if (options_.set.empty()) return out;
  log::write_safetensors(options_.set, std::move(sets),
                         {{"format", std::string(name_of(options_.copies))},
                          {"steps", fmt::format("{}", fmt::join(steps_, ","))},
                          {"from", names_.front()},
                          {"to", names_.back()}});
  return out;
}

MovedCounts& MovedCounts::operator+=(const MovedCounts& other) {
  elements += other.elements;
  moved += other.moved;
  changed.resize(other.changed.size());
  std::ranges::transform(changed, other.changed, changed.begin(), std::plus<>());
  last_moved = std::max(last_moved, other.last_moved);
  if (!other.stall) return *this;
  if (!stall) stall.emplace();
  *stall += *other.stall;
  return *this;
}

Movement moved_weights(const std::vector<std::filesystem::path>& logs,
                       const frames::Selection& selection, const MovedOptions& options,
                       const frames::Progress& progress) {
  frames::Selection own = selection;
  own.unnamed_are_weights = true;
  const readers::Logs opened(own);
  for (const auto& log : logs) readers::require_tensors(opened.at(log));
  const std::string name = printable(logs.front().string());
  if (logs.size() == 2 && std::filesystem::equivalent(logs[0], logs[1])) {
    throw BadInput(fmt::format("{}: is named twice, expected two different checkpoints", name));
  }
  MovedPass pass(own, options);
  frames::Notes notes;
  const auto take = [&, only = options.steps](const frames::WholeStep& step) {
    if (only && step.step != only->first && step.step != only->second) return;
    pass.take(step, step.tell);
  };
  const bool two = logs.size() == 2;
  for (const auto& log : logs) {
    const std::size_t before = pass.steps();
    pass.begin(log.string());
    readers::for_each_whole_step(opened.at(log), own, take, notes, progress);
    const std::size_t found = pass.steps() - before;
    if (two ? found == 1 : found >= 2) continue;
    throw BadInput(fmt::format(
        "{}: has whole tensors of {} of the steps, expected {}; {}", printable(log.string()), found,
        two ? "1" : "2 or more",
        two ? "name one step's file or folder" : "name a second checkpoint, or two sampled steps"));
  }
  std::optional<Movement> out = std::move(pass).finish(progress);
  if (!out) {
    throw BadInput(
        fmt::format("{}: holds no weights, expected tensors of the role weight or "
                    "master_weight; name them with --role GLOB=weight",
                    name));
  }
  notes.add_all(out->notes);
  out->notes = std::move(notes);
  return std::move(*out);
}

}  // namespace halfscope::analyzers::weights
