// SPDX-License-Identifier: Apache-2.0
#include "analyzers/updates/pairs.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <stdexcept>

namespace halfscope::analyzers::updates {

using frames::Message;
using frames::Notes;
using frames::Option;
using frames::ProgressCallback;
using frames::Selection;
using frames::WholeStep;
using underflow::UpdateSource;

namespace {

using log::printable;
using log::Role;

/// Returns what two tensors of a pair share: the name after the role. If --role sets the role: the
/// part that its wildcards match, so that --role '*_w=weight' --role '*_u=update' pairs them.
std::string key_of(const Selection& selection, const std::string& name) {
  if (log::role_in_name(name)) return name.substr(name.find('/') + 1);
  for (const auto& [glob, role] : selection.roles) {
    if (!frames::matches(glob, name)) continue;
    const std::size_t before = std::min(glob.find_first_of("*?[\\"), glob.size());
    if (before == glob.size()) return "";
    const std::size_t last = glob.find_last_of("*?]\\");
    const std::size_t after = glob.size() - 1 - last;
    return before + after <= name.size() ? name.substr(before, name.size() - before - after) : name;
  }
  return name;
}

/// The step's tensors by role and key.
class Names {
 public:
  Names(const WholeStep& step, const Selection& selection) {
    for (std::string& name : step.tensors->names()) {
      const Role role = step.role_of(selection, name);
      const auto key = std::pair(role, key_of(selection, name));
      if (!names_.emplace(key, std::move(name)).second) ambiguous_.insert(key);
    }
  }

  /// Returns the tensor of this role and key; "" if there is none, or several.
  std::string find(Role role, const std::string& key) const {
    const auto found = names_.find({role, key});
    if (found == names_.end() || ambiguous_.contains(found->first)) return "";
    return found->second;
  }

  bool has(Role role) const {
    const auto found = names_.lower_bound({role, ""});
    return found != names_.end() && found->first.first == role;
  }

  /// Calls visit(role, key, name) for each selected weight: of a weight and its master weight, for
  /// the preferred one. For ranks other than 0, only sharded weights are visited.
  template <class Visit>
  void for_each_weight(const WholeStep& step, const Selection& selection, Role preferred,
                       const Visit& visit) const {
    for (const auto& [role_and_key, name] : names_) {
      const auto& [role, key] = role_and_key;
      if (role != Role::weight && role != Role::master_weight) continue;
      if (role != preferred && !find(preferred, key).empty()) continue;
      if (!frames::selects(selection, name) || (step.rank > 0 && !step.is_sharded(role))) continue;
      if (!find(role, key).empty()) visit(role, key, name);
    }
  }

 private:
  std::map<std::pair<Role, std::string>, std::string> names_;
  std::set<std::pair<Role, std::string>> ambiguous_;
};

bool names_an_optimizer(const WholeStep& step) {
  return step.run != nullptr && step.run->manifest().about->contains("optimizer");
}

std::optional<std::vector<std::uint64_t>> shape_of(const WholeStep& step, const std::string& name) {
  auto known = name.empty() ? std::nullopt : step.tensors->outline(name);
  return known ? std::optional(std::move(known->shape)) : std::nullopt;
}

/// Finds the other tensors of one weight in a step. Tensors of another shape are not used; they are
/// collected for a note.
class Partners {
 public:
  Partners(const WholeStep& step, const Names& names, Role weight, const std::string& key)
      : step_(step), names_(names), weight_(weight), key_(key) {
    if (const auto shape = shape_of(step, names.find(weight, key))) shape_ = *shape;
  }

  /// Returns the tensor's name; "" if there is none of the weight's shape. Sharded tensors belong
  /// only to sharded weights, since each rank has a part of both.
  std::string find(Role role) { return of_same_shape(named(role, key_)); }
  std::string state(const char* name) { return of_same_shape(named_state(name)); }
  /// Returns the name of the optimizer's step counter: one number, whatever the weight's shape.
  std::string counter() const { return named_state("step"); }

  /// Adds a note about tensors of another shape; `instead` says what is done without them.
  void note_others(const std::string& instead, Notes& notes) const {
    if (others_.empty()) return;
    std::string found;
    for (const auto& [name, shape] : others_) {
      found += fmt::format("{}'{}' has {}", found.empty() ? "" : ", ", printable(name),
                           log::shape_text(shape));
    }
    notes.add(
        fmt::format("{} has shape {}, but {}: a weight and the tensors of its update "
                    "need the same shape, so {}; use ",
                    log::place_text(printable(step_.log.string()), names_.find(weight_, key_)),
                    log::shape_text(shape_), found, instead) +
        Option::role + " to name tensors");
  }

 private:
  std::string named(Role role, const std::string& key) const {
    return step_.is_sharded(weight_) == step_.is_sharded(role) ? names_.find(role, key) : "";
  }
  std::string named_state(const char* name) const {
    return named(Role::optimizer_state, std::string(name) + "/" + key_);
  }
  std::string of_same_shape(std::string name) {
    const auto shape = shape_of(step_, name);
    if (!shape) return "";
    if (*shape == shape_) return name;
    others_.emplace(std::move(name), *shape);
    return "";
  }

  const WholeStep& step_;
  const Names& names_;
  Role weight_;
  const std::string& key_;
  std::vector<std::uint64_t> shape_;
  std::map<std::string, std::vector<std::uint64_t>> others_;
};

bool is_rate(double lr) { return std::isfinite(lr) && std::isfinite(static_cast<float>(lr)); }

/// Returns the optimizer with a learning rate; plain SGD if the log names none and the user sets
/// --lr. Empty if the update cannot be recomputed.
std::optional<Optimizer> usable_optimizer(const WholeStep& step, const Selection& selection,
                                          const std::string& key, Notes& notes) {
  std::optional<Optimizer> optimizer = optimizer_of(step, key);
  if (!optimizer && !names_an_optimizer(step) && selection.learning_rate) optimizer.emplace();
  if (!optimizer) return std::nullopt;
  if (!optimizer->rate) optimizer->rate = selection.learning_rate;
  if (optimizer->rate && is_rate(*optimizer->rate)) return optimizer;
  notes.add(
      fmt::format(
          "{}: step {}: {}, so updates cannot be computed from gradients or optimizer state",
          printable(step.log.string()), step.step,
          optimizer->rate ? "the learning rate is not finite" : "no learning rate is recorded") +
      (optimizer->rate ? "" : "; give it with " + Message(Option::lr, "X")));
  return std::nullopt;
}

/// Returns true if moments of a pair have less than 32 bits.
bool is_narrow(const WholeStep& step, const PairNames& pair) {
  for (const std::string* name : {&pair.momentum_buffer, &pair.exp_avg, &pair.exp_avg_sq}) {
    if (name->empty()) continue;
    if (format_of(step.tensors->outline(*name)->view.dtype).width < 32) return true;
  }
  return false;
}

/// Fills in the names of the state that the optimizer needs; returns false if some is missing.
bool take_state(Partners& partners, PairNames& pair) {
  const Optimizer& o = *pair.optimizer;
  const bool needs_gradient = !o.is_adam() && (o.momentum == 0 || o.nesterov);
  if (needs_gradient) pair.partner = partners.find(Role::weight_grad);
  if (needs_gradient && pair.partner.empty()) return false;
  if (!o.is_adam()) {
    if (o.has_buffer()) pair.momentum_buffer = partners.state("momentum_buffer");
    return !o.has_buffer() || !pair.momentum_buffer.empty();
  }
  pair.exp_avg = partners.state("exp_avg");
  pair.exp_avg_sq = partners.state(o.amsgrad ? "max_exp_avg_sq" : "exp_avg_sq");
  pair.step = partners.counter();
  return !pair.exp_avg.empty() && !pair.exp_avg_sq.empty();
}

void note_assumed(const WholeStep& step, const Optimizer& optimizer, Notes& notes) {
  if (optimizer.assumed.empty()) return;
  notes.add(
      fmt::format("{}: does not give all settings of the optimizer, so updates are recomputed with "
                  "PyTorch's defaults, {}; set others in run.json under optimizer.param_groups",
                  printable(step.log.string()), fmt::join(optimizer.assumed, ", ")));
}

std::optional<PairNames> pair_of_optimizer(const WholeStep& step, const Selection& selection,
                                           Partners& partners, const std::string& key,
                                           const std::string& weight, Notes& notes) {
  PairNames pair;
  pair.weight = weight;
  pair.optimizer = usable_optimizer(step, selection, key, notes);
  if (!pair.optimizer || !take_state(partners, pair)) return std::nullopt;
  const bool stateless = !pair.optimizer->is_adam() && !pair.optimizer->has_buffer();
  pair.source = stateless ? UpdateSource::gradient : UpdateSource::optimizer_state;
  note_assumed(step, *pair.optimizer, notes);
  return pair;
}

std::optional<PairNames> best_pair(const WholeStep& step, const Selection& selection,
                                   Partners& partners, const std::string& key,
                                   const std::string& weight, Notes& notes) {
  PairNames pair;
  pair.weight = weight;
  pair.partner = partners.find(Role::update);
  if (!pair.partner.empty()) return pair;
  if (was_skipped(step)) return std::nullopt;
  auto computed = pair_of_optimizer(step, selection, partners, key, weight, notes);
  const bool rounded = computed && computed->optimizer->is_adam() && is_narrow(step, *computed);
  if (computed && !rounded) return computed;
  if (rounded) {
    notes.add(fmt::format("{}: Adam's state is held in 16 bits: updates are not recomputed from it",
                          printable(step.log.string())));
  }
  pair.source = UpdateSource::difference;
  pair.partner = partners.find(Role::weight_after);
  return pair.partner.empty() ? std::nullopt : std::optional(pair);
}

std::optional<PairNames> pair_of(const WholeStep& step, const Selection& selection,
                                 const Names& names, Role role, const std::string& key,
                                 const std::string& weight, Notes& notes) {
  Partners partners(step, names, role, key);
  auto pair = best_pair(step, selection, partners, key, weight, notes);
  partners.note_others(
      pair ? fmt::format("updates are taken from source '{}'", underflow::name_of(pair->source))
           : std::string("no update is known"),
      notes);
  return pair;
}

}  // namespace

bool was_skipped(const WholeStep& step) {
  const auto found = step.metadata.find("found_inf");
  if (found != step.metadata.end()) return found->second == "1";
  return step.scalars != nullptr && step.scalars->found_inf.value_or(false);
}

std::vector<PairNames> pairs_of(const WholeStep& step, const Selection& selection, Notes& notes) {
  const Names names(step, selection);
  std::vector<PairNames> pairs;
  names.for_each_weight(step, selection, Role::weight, [&](Role role, auto& key, auto& name) {
    auto pair = pair_of(step, selection, names, role, key, name, notes);
    if (pair) pairs.push_back(std::move(*pair));
  });
  return pairs;
}

std::vector<PairNames> optimizer_pairs_of(const WholeStep& step, const Selection& selection,
                                          Notes& notes) {
  std::vector<PairNames> pairs;
  if (was_skipped(step)) return pairs;
  const Names names(step, selection);
  const auto add = [&](Role role, const std::string& key, const std::string& name) {
    Partners partners(step, names, role, key);
    if (names.has(Role::weight_grad) && partners.find(Role::weight_grad).empty())
      return;  // no step
    auto pair = pair_of_optimizer(step, selection, partners, key, name, notes);
    if (pair && pair->optimizer->row->stores_once && is_narrow(step, *pair)) {
      notes.add(
          fmt::format("{}: the optimizer's state is held in 16 bits, and fused kernels compute "
                      "the weights from it before it is rounded: no step can be forecast",
                      printable(step.log.string())));
    } else if (pair) {
      pairs.push_back(std::move(*pair));
    }
  };
  names.for_each_weight(step, selection, Role::master_weight, add);
  return pairs;
}

}  // namespace halfscope::analyzers::updates
