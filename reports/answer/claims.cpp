// SPDX-License-Identifier: Apache-2.0
// Findings on FP32 tensors that hold only numbers of a narrower format, and on 16-bit weights that
// never move.
#include "reports/answer/claims.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "reports/answer/findings.hpp"
#include "reports/answer/formats.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::reports::answer {

using analyzers::Study;
using analyzers::weights::Claim;
using analyzers::weights::Movement;
using analyzers::weights::NarrowTensors;

namespace {

/// Words for tensors of one kind: weights, master weights, or state of any kind, the last row.
struct Words {
  std::string_view kind, tensors, fault, note, cure;
};
constexpr Words kWords[] = {
    {"weight", "FP32 weights ({0})", "they were rounded", ": they were loaded from such numbers",
     "Keep the weights in FP32 from step to step; small updates are lost each time that 16-bit "
     "weights are copied back."},
    {"master_weight", "FP32 master weights ({0})", "the masters were lost",
     ": they were loaded from such numbers",
     "Save the FP32 master weights in the checkpoint, and load them at a resume; masters made from "
     "16-bit weights lose all smaller updates so far."},
    {"", "{0} of optimizer state ({1})", "they were rounded",
     "; a healthy optimizer may hold such values",
     "Save and load the optimizer's state in FP32: convert no state_dict of an optimizer, and "
     "create the optimizer after the model has its dtype."}};

/// Tensors of one log that hold only numbers of one format, all faults or none.
struct Held {
  std::string log;
  const Words* words = nullptr;
  std::vector<std::string> kinds;
  NarrowTensors all;  ///< `values` and `zero` are those of second moments
};

std::vector<Held> held_of(const std::vector<Claim>& claims) {
  std::vector<Held> all;
  for (const Claim& claim : claims) {
    const Words* words = kWords;
    while (!words->kind.empty() && words->kind != claim.kind) ++words;
    for (const NarrowTensors& narrow : claim.narrow) {
      auto at = std::ranges::find_if(all, [&](const Held& h) {
        return h.log == claim.log && h.words == words && h.all.format == narrow.format &&
               h.all.is_fault == narrow.is_fault;
      });
      if (at == all.end()) {
        at = all.insert(at, {claim.log, words, {}, narrow});
        at->all.names.clear();
        at->all.values = at->all.zero = 0;
      }
      NarrowTensors& sum = at->all;
      at->kinds.push_back(claim.kind);
      sum.names.insert(sum.names.end(), narrow.names.begin(), narrow.names.end());
      sum.first_step = std::min(sum.first_step, narrow.first_step);
      if (claim.kind != "exp_avg_sq") continue;
      sum.values += narrow.values;
      sum.zero += narrow.zero;
    }
  }
  return all;
}

/// Returns the sentence on a fault, or on tensors without one.
std::string held_text(const Held& held) {
  const NarrowTensors& all = held.all;
  const std::string format = people_say(all.format), list = listed_code(held.kinds, 4),
                    count = plural(all.names.size(), "tensor"),
                    tensors = fmt::format(fmt::runtime(held.words->tensors), count, list);
  if (!all.is_fault) {
    return fmt::format("{} hold only {} numbers at step {}{}.", tensors, format, all.first_step,
                       held.words->note);
  }
  std::string text =
      fmt::format("{} are held in FP32, but every value is a {} number from step {} on: {}.",
                  tensors, format, all.first_step, held.words->fault);
  if (all.zero == 0) return text;
  return text + fmt::format(" {} of {} second moments are 0.", count_text(all.zero),
                            count_text(all.values));
}

/// Returns the shares of values that are numbers of the narrow formats, beside those of chance.
Table shares_table(const std::vector<Claim>& claims) {
  Table table{Evidence::weights, "Values that are also numbers of a narrower format"};
  table.note =
      "Shares of the finite nonzero values in FP32, over all sampled steps. By chance they "
      "are 2^-16 (0.0015 %) for BF16, 2^-13 (0.012 %) for FP16 and 2^-20 for E4M3.";
  table.headings = {"tensors", "log", "number", "values", "BF16", "FP16", "FP8 (E4M3)"};
  table.add_rows(claims, [](const Claim& claim) -> Row {
    const auto& [total, zero, values, exact, constant] = claim.counts;
    return {{{code(claim.kind)},
             {code(claim.log)},
             count_cell(claim.tensors),
             count_cell(values),
             share_cell(exact[1], values),
             share_cell(exact[2], values),
             share_cell(exact[0], values)}};
  });
  return table;
}

/// Returns true for weights without a copy in more than 16 bits.
bool is_narrow(const analyzers::weights::TensorMovement& tensor) {
  return format_of(tensor.dtype).width <= 16;
}

/// Returns the kinds of layers whose 16-bit weights all have gradients, but never moved.
std::vector<std::string> still_kinds(const Study& study, const Movement& movement) {
  const auto path = [](const std::string& name) { return name.substr(name.find('/') + 1); };
  std::set<std::string> trained, moving, still;
  for (const auto& t : study.analysis.tensors()) {
    const bool has = t.role == log::Role::weight_grad && t.counts.finite_nonzero.high > 0;
    if (t.log == movement.log && has) trained.insert(path(t.name));
  }
  for (const auto& tensor : movement.tensors) {
    if (!is_narrow(tensor)) continue;
    const bool stays = tensor.moved == 0 && trained.contains(path(tensor.name));
    (stays ? still : moving).insert(tensor.kind);
  }
  std::vector<std::string> kinds;
  std::ranges::set_difference(still, moving, std::back_inserter(kinds));
  return kinds;
}

}  // namespace

Section claims_section(const std::vector<Claim>& claims) {
  Section section{"FP32 tensors that hold fewer bits"};
  for (const Held& held : held_of(claims)) {
    const std::string cure = held.all.is_fault ? " " + std::string(held.words->cure) : "";
    section.sentences.push_back(held_text(held) + cure);
  }
  if (!section.sentences.empty()) section.add(shares_table(claims));
  return section;
}

std::string strip_text(const analyzers::weights::KindMovement& kind) {
  if (kind.frozen() == 0) return fmt::format("all {} moved", count_text(kind.elements));
  return fmt::format("{} never moved ({} of {})", share_text(kind.frozen(), kind.elements),
                     count_text(kind.frozen()), count_text(kind.elements));
}

std::string strips_title(const Movement& movement, bool with_log) {
  return fmt::format(
      "{}Weights whose {} copies moved from step {} to {}, by kind of layer",
      with_log ? log::printable(movement.log) + ": " : "",
      movement.tensors.empty() ? "16-bit" : people_say(movement.tensors.front().copies),
      movement.steps.front(), movement.steps.back());
}

std::string weights_digest(const Study& study) {
  std::uint64_t frozen = 0, elements = 0, faults = 0;
  for (const Movement& movement : study.movements) {
    frozen += movement.all.frozen();
    elements += movement.all.elements;
  }
  for (const Held& held : held_of(study.claims)) {
    if (held.all.is_fault) faults += held.all.names.size();
  }
  std::string text = elements == 0 ? "" : share_text(frozen, elements) + " never moved";
  if (faults > 0) {
    text += (text.empty() ? "" : "; ") + plural(faults, "FP32 tensor") + " rounded to fewer bits";
  }
  return text;
}

void find_rounded_state(const Study& study, std::vector<Finding>& to) {
  for (const Held& held : held_of(study.claims)) {
    if (!held.all.is_fault) continue;
    to.push_back({Severity::serious, held_text(held), std::string(held.words->cure)});
  }
}

void find_frozen_weights(const Study& study, std::vector<Finding>& to) {
  for (const Movement& movement : study.movements) {
    std::uint64_t elements = 0, frozen = 0;
    std::optional<Dtype> dtype;
    for (const auto& tensor : movement.tensors) {
      if (!is_narrow(tensor)) continue;
      dtype = tensor.dtype;
      elements += tensor.elements;
      frozen += tensor.frozen();
    }
    const std::vector<std::string> kinds = still_kinds(study, movement);
    if (kinds.empty()) continue;  // else `dtype` is known
    const std::string format = people_say(*dtype);
    const std::string title = fmt::format(
        "{} of the {} {} weights never moved over steps {} to {}, among them all of {}.",
        share_text(frozen, elements), count_text(elements), format, movement.steps.front(),
        movement.steps.back(), listed_code(kinds, 4));
    std::string action = "Keep FP32 master weights.";
    if (std::ranges::any_of(kinds, [](auto& kind) { return kind.find("orm") != kind.npos; })) {
      action += fmt::format(
          " A weight of 1, as in norms, becomes smaller in {} only if its update exceeds 2^-{}.",
          format, format_of(*dtype).precision + 1);
    }
    to.push_back({Severity::warning, title, action});
  }
}

}  // namespace halfscope::reports::answer
