// SPDX-License-Identifier: Apache-2.0
#include "analyzers/weights/moved.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <regex>
#include <tuple>
#include <utility>

#include "analyzers/frames/elements.hpp"
#include "analyzers/readers/samples.hpp"
#include "analyzers/readers/tensors/names.hpp"
#include "analyzers/readers/tensors/open.hpp"
#include "analyzers/underflow/modules.hpp"
#include "analyzers/weights/sent.hpp"
#include "analyzers/weights/stall.hpp"
#include "halfscope/optimizer/changed.hpp"

namespace halfscope::analyzers::weights {

using log::BadInput;
using log::printable;
using log::Role;

namespace {

/// A tensor, or a shard of it, at one step: its file, and its outline without values.
struct Place {
  const log::OpenPath* file = nullptr;
  log::NamedTensor tensor;
};
/// Role, path after the role, rank, and number among the equal names of a step.
using Key = std::tuple<Role, std::string, int, std::size_t>;
using PlacesOfSteps = std::vector<std::optional<Place>>;
using TensorPointer = std::shared_ptr<const log::NamedTensor>;

Key partner_of(Key key, Role role) {
  std::get<Role>(key) = role;
  return key;
}

/// Returns a path with "*" for every number: "layers.*.norm.weight".
std::string pattern_of(std::string_view path) {
  static const std::regex number("(^|[./])[0-9]+(?=[./]|$)");
  return std::regex_replace(std::string(path), number, "$1*");
}

/// Names kinds of layers by the classes of modules, if the manifest has the network's text.
void set_kinds(std::vector<TensorMovement>& tensors, const std::optional<log::Manifest>& manifest) {
  underflow::LogFindings log;
  log.manifest = manifest;
  for (const TensorMovement& tensor : tensors) {
    underflow::TensorFindings& of_log = log.tensors.emplace_back();
    of_log.name = tensor.name;
    of_log.role = Role::weight;
  }
  const underflow::Modules modules(log);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::string_view type = modules.class_of(modules.of(log.tensors[i]));
    const std::string_view path = underflow::path_of(tensors[i].name);
    tensors[i].kind = type.empty() ? pattern_of(path)
                                   : fmt::format("{}.{}", type, path.substr(path.rfind('.') + 1));
  }
}

/// Returns the steps of two checkpoints: those that they or their names say if these ascend, else 0
/// and 1.
std::vector<std::int64_t> steps_of_two(const std::string& a, const std::string& b,
                                       const std::vector<std::int64_t>& found) {
  const auto step = [&](const std::string& path, std::int64_t said) {
    const std::string name = std::filesystem::path(path).filename().string();
    return said != 0 ? said : readers::tensors::step_in_name(name).value_or(0);
  };
  const std::int64_t first = step(a, found[0]), second = step(b, found[1]);
  return first < second ? std::vector{first, second} : std::vector<std::int64_t>{0, 1};
}

}  // namespace

struct MovedPass::State {
  const frames::Selection& selection;
  std::vector<std::int64_t> steps = {};
  std::size_t first_of_log = 0;  ///< index of the first step since begin()
  std::string name = {}, other = {};
  std::optional<log::OpenPath> log = {};
  std::optional<log::Manifest> manifest = {};
  std::deque<log::OpenPath> files = {};
  std::map<Key, PlacesOfSteps> tensors = {};
  std::map<Key, std::size_t> turns = {};  ///< counts names in the current step
  std::map<const log::OpenPath*, std::shared_ptr<const log::TensorFile>> open = {};

  std::size_t last() const { return steps.size() - 1; }
  /// Returns what messages call a step.
  std::string label(std::size_t i) const {
    if (other.empty()) return fmt::format("{}: step {}", name, steps[i]);
    return i == 0 ? name : other;
  }
  TensorPointer load(const Key& key, std::size_t step);
  std::vector<std::pair<Key, std::string>> weights(bool skip_misfits, frames::Notes& notes) const;
  MovedCounts compare(const Key& key, Dtype copies, bool with_stalls,
                      std::vector<std::uint8_t>& moved, std::optional<SentBytes>& sent);
  std::string misfit_of(const std::string& name, const PlacesOfSteps& places) const;
  std::optional<StallInputs> stalls_of(const Key& key, std::vector<TensorPointer>& held,
                                       Dtype copies);
};

/// Returns null if the tensor is not in the step.
TensorPointer MovedPass::State::load(const Key& key, std::size_t step) {
  constexpr std::size_t kMostOpen = 256;
  const auto found = tensors.find(key);
  if (found == tensors.end() || step >= found->second.size() || !found->second[step]) return {};
  const Place& place = *found->second[step];
  if (open.size() > kMostOpen && !open.contains(place.file)) open.clear();
  auto& file = open[place.file];
  if (!file) file = readers::tensors::open_tensor_file(*place.file, selection.read_as);
  // An NPY file holds one tensor, whatever its folder calls it.
  const bool npy = file->size() == 1 && !file->outline(place.tensor.name);
  const auto tensor = file->tensor(npy ? file->names().front() : place.tensor.name);
  return {tensor.get(), [tensor, file](const auto*) {}};  // keeps the file open
}

/// Returns why a tensor cannot be compared over all steps; empty if it can.
std::string MovedPass::State::misfit_of(const std::string& weight,
                                        const PlacesOfSteps& places) const {
  const auto first = std::ranges::find_if(places, [](const auto& place) { return !!place; });
  const log::NamedTensor& wanted = (*first)->tensor;
  const std::string where = label(static_cast<std::size_t>(first - places.begin()));
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const bool there = i < places.size() && places[i];
    const log::NamedTensor* const found = there ? &places[i]->tensor : nullptr;
    if (there && found->shape == wanted.shape && found->view.dtype == wanted.view.dtype) continue;
    const auto text = [](const log::NamedTensor& tensor) {
      return fmt::format("{} in {}", log::shape_text(tensor.shape), name_of(tensor.view.dtype));
    };
    return fmt::format("{}: tensor '{}' {}, expected {} as in {}", label(i), printable(weight),
                       there ? "is " + text(*found) : "is missing", text(wanted), where);
  }
  return "";
}

/// Returns what the updates of weights that never moved are known from.
std::optional<StallInputs> MovedPass::State::stalls_of(const Key& key,
                                                       std::vector<TensorPointer>& held,
                                                       Dtype copies) {
  const TensorPointer weight = load(key, last());
  const auto use = [&](RateSource source, TensorPointer first, const TensorPointer& value) {
    const auto fits = [&](const auto& t) { return t && t->view.count == weight->view.count; };
    if (!fits(first) || !fits(value)) return std::optional<StallInputs>();
    held = {first, value};
    return std::optional(StallInputs{source, format_of(copies), first->view, value->view,
                                     static_cast<double>(steps[last()] - steps[0])});
  };
  if (format_of(weight->view.dtype).width > 16) {
    return use(RateSource::values, load(key, 0), weight);
  }
  const Key master = partner_of(key, Role::master_weight);
  auto found = use(RateSource::master, load(master, 0), load(master, last()));
  return found ? found
               : use(RateSource::update, load(partner_of(key, Role::update), last()), weight);
}

namespace {

constexpr std::size_t kBlock = std::size_t{1} << 16;  ///< elements of one task

/// Compares two steps of a tensor, and sets the bits of weights that move. Then counts the stalls
/// of those that never did, if asked to.
std::uint64_t compare_pair(const TensorView& a, const TensorView& b, Dtype copies,
                           std::span<std::uint8_t> moved, const std::optional<StallInputs>& inputs,
                           std::optional<Stall>& stall) {
  using Result = std::pair<std::uint64_t, Stall>;
  std::uint64_t changed = 0;
  const auto work = [&](std::size_t block) {
    const std::size_t first = block * kBlock, n = std::min(kBlock, a.count - first);
    std::array<std::uint8_t, kBlock / 8> bits;
    const std::span<std::uint8_t> own(bits.data(), (n + 7) / 8);
    const std::span<std::uint8_t> all = moved.subspan(first / 8, own.size());
    Result result(optimizer::changed(a, b, copies, first, n, own), Stall{});
    std::ranges::transform(all, own, all.begin(), std::bit_or<>());
    if (inputs) result.second.source = inputs->source;
    if (inputs) count_stalls(*inputs, first, n, all, result.second);
    return result;
  };
  const auto join = [&](const Result& result) {
    changed += result.first;
    if (result.second.weights() == 0) return;
    if (!stall) stall.emplace();
    *stall += result.second;
  };
  frames::in_order<Result>((a.count + kBlock - 1) / kBlock, 0, work, join);
  return changed;
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

void write_set(const Movement& movement, const MovedOptions& options,
               std::vector<log::RawTensor>&& sets) {
  log::write_safetensors(options.set, std::move(sets),
                         {{"format", std::string(name_of(options.copies))},
                          {"steps", fmt::format("{}", fmt::join(movement.steps, ","))},
                          {"from", movement.log},
                          {"to", movement.other.empty() ? movement.log : movement.other}});
}

}  // namespace

/// Returns the weights, and the master weights that have no weight, with their names.
std::vector<std::pair<Key, std::string>> MovedPass::State::weights(bool skip_misfits,
                                                                   frames::Notes& notes) const {
  std::vector<std::pair<Key, std::string>> out;
  for (const auto& [key, places] : tensors) {
    const Role role = std::get<Role>(key);
    const bool has_weight = tensors.contains(partner_of(key, Role::weight));
    if (role != Role::weight && (role != Role::master_weight || has_weight)) continue;
    const auto first = std::ranges::find_if(places, [](const auto& place) { return !!place; });
    const std::string& weight = (*first)->tensor.name;
    const std::string misfit = misfit_of(weight, places);
    if (misfit.empty()) {
      out.emplace_back(key, weight);
    } else if (skip_misfits) {
      notes.add(misfit + ": which of its weights move is not counted");
    } else {
      throw BadInput(misfit + "; compare one network, or select tensors with --tensor GLOB");
    }
  }
  return out;
}

/// Compares one tensor over all steps, and sets the bits of weights that move.
MovedCounts MovedPass::State::compare(const Key& key, Dtype copies, bool with_stalls,
                                      std::vector<std::uint8_t>& moved,
                                      std::optional<SentBytes>& sent) {
  TensorPointer before = load(key, 0);
  MovedCounts out{.elements = before->view.count};
  moved.resize((before->view.count + 7) / 8);
  std::vector<TensorPointer> held;
  std::optional<StallInputs> stalls;
  for (std::size_t i = 0; i < last(); ++i) {
    const TensorPointer after = load(key, i + 1);
    if (with_stalls && i + 1 == last()) stalls = stalls_of(key, held, copies);
    out.changed.push_back(
        compare_pair(before->view, after->view, copies, moved, stalls, out.stall));
    if (out.changed.back() != 0) out.last_moved = steps[i + 1];
    if (sent) add_sent(before->view, after->view, copies, *sent);
    before = after;
  }
  out.moved = optimizer::count_bits(moved);
  return out;
}

MovedPass::MovedPass(const frames::Selection& selection)
    : state_(std::make_unique<State>(State{selection})) {}
MovedPass::~MovedPass() = default;
MovedPass::MovedPass(MovedPass&&) noexcept = default;

void MovedPass::begin(const std::string& name, const readers::Log& log) {
  (state_->steps.empty() ? state_->name : state_->other) = printable(name);
  state_->log = log.opened();
  state_->first_of_log = state_->steps.size();
}

std::size_t MovedPass::steps() const { return state_->steps.size() - state_->first_of_log; }

void MovedPass::take(const frames::WholeStep& step) {
  State& s = *state_;
  if (steps() == 0 || s.steps.back() != step.step) {
    s.steps.push_back(step.step);
    s.turns.clear();
  }
  if (step.run != nullptr && !s.manifest) s.manifest = step.run->manifest();
  for (const std::string& name : step.tensors->names()) {
    const Role role = step.role_of(s.selection, name);
    if (role != Role::weight && role != Role::master_weight && role != Role::update) continue;
    if (!frames::selects(s.selection, name) || (step.rank > 0 && !step.is_sharded(role))) continue;
    Key key{role, underflow::path_of(name), step.rank, 0};
    std::get<std::size_t>(key) = s.turns[key]++;
    const auto file = step.file_of ? step.file_of(name) : step.file;
    if (s.files.empty() || s.files.back().path != file) s.files.push_back(s.log->at(file));
    PlacesOfSteps& places = s.tensors[key];
    places.resize(s.steps.size());
    places.back() = Place{&s.files.back(), *step.tensors->outline(name)};
  }
}

std::optional<Movement> MovedPass::finish(const MovedOptions& options,
                                          const frames::Progress& progress) {
  const std::unique_ptr<State> s = std::move(state_);
  state_ = std::make_unique<State>(State{s->selection});
  if (s->steps.size() < 2) return std::nullopt;
  if (!s->other.empty()) s->steps = steps_of_two(s->name, s->other, s->steps);
  Movement out{s->name, s->other, s->steps};
  const auto weights = s->weights(options.skip_misfits, out.notes);
  if (weights.empty()) return std::nullopt;
  std::uint64_t done = 0, all = 0;
  for (const auto& [key, name] : weights) all += s->tensors.at(key).front()->tensor.view.bytes();
  if (options.bytes) out.bytes.emplace();
  std::vector<log::RawTensor> sets;
  for (const auto& [key, name] : weights) {
    if (out.tensors.empty() || out.tensors.back().name != name) {
      TensorMovement& added = out.tensors.emplace_back();
      added.name = name;
      added.role = std::get<Role>(key);
      added.dtype = s->tensors.at(key).front()->tensor.view.dtype;
      added.copies = optimizer::copy_dtype(added.dtype, options.copies);
    }
    TensorMovement& tensor = out.tensors.back();
    std::vector<std::uint8_t> moved;
    const MovedCounts counts = s->compare(key, tensor.copies, options.stalls, moved, out.bytes);
    tensor += counts;
    const std::string part = tensor.shards == 0 ? "" : fmt::format("#{}", tensor.shards);
    ++tensor.shards;
    if (!options.set.empty() && counts.moved != 0) {
      sets.push_back(set_tensor(name + part, moved, counts.moved));
    }
    if (progress) progress(done += s->tensors.at(key).front()->tensor.view.bytes(), all);
  }
  set_kinds(out.tensors, s->manifest);
  sum_up(out);
  if (!options.set.empty()) write_set(out, options, std::move(sets));
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

namespace {

/// Visits the steps that are asked for, of one log or of two checkpoints.
void take_logs(MovedPass& pass, const std::vector<std::filesystem::path>& logs,
               const frames::Selection& selection, const MovedOptions& options,
               frames::Notes& notes) {
  const readers::Logs opened(selection);
  const auto& only = options.steps;
  const auto take = [&](const frames::WholeStep& step) {
    if (!only || step.step == only->first || step.step == only->second) pass.take(step);
  };
  const bool two = logs.size() == 2;
  for (const auto& log : logs) {
    pass.begin(log.string(), opened.at(log));
    readers::for_each_whole_step(opened.at(log), selection, take, notes);
    if (two ? pass.steps() == 1 : pass.steps() >= 2) continue;
    throw BadInput(fmt::format(
        "{}: has whole tensors of {} of the steps, expected {}; {}", printable(log.string()),
        pass.steps(), two ? "1" : "2 or more",
        two ? "name one step's file or folder" : "name a second checkpoint, or two sampled steps"));
  }
}

}  // namespace

Movement moved_weights(const std::vector<std::filesystem::path>& logs,
                       const frames::Selection& selection, const MovedOptions& options,
                       const frames::Progress& progress) {
  frames::Selection own = selection;
  own.unnamed_are_weights = true;
  const std::string name = printable(logs.front().string());
  std::error_code ignored;
  if (logs.size() == 2 && std::filesystem::equivalent(logs[0], logs[1], ignored)) {
    throw BadInput(fmt::format("{}: is named twice, expected two different checkpoints", name));
  }
  MovedPass pass(own);
  frames::Notes notes;
  take_logs(pass, logs, own, options, notes);
  std::optional<Movement> out = pass.finish(options, progress);
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
