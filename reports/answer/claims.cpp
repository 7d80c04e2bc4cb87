// SPDX-License-Identifier: Apache-2.0
// Findings on FP32 tensors that hold only numbers of a narrower format, and on 16-bit weights that
// never move.
#include "reports/answer/claims.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "reports/answer/findings.hpp"
#include "reports/answer/formats.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::reports::answer {

using analyzers::Study;
using analyzers::weights::Claim;
using analyzers::weights::HeldAs;
using analyzers::weights::Movement;
using analyzers::weights::NarrowTensors;

namespace {

constexpr std::string_view kWeight = "weight", kMaster = "master_weight", kSecond = "exp_avg_sq";

/// Tensors of one log with the same format and reason: weights, masters, or state of any kind.
struct Held {
  std::string log;
  std::string group;               ///< "weight", "master_weight"; empty for optimizer state
  std::vector<std::string> kinds;  ///< kinds of optimizer state
  NarrowTensors all;               ///< `values` and `zero` are those of second moments
};

std::vector<Held> held_of(const std::vector<Claim>& claims) {
  std::vector<Held> all;
  for (const Claim& claim : claims) {
    const bool is_weight = claim.kind == kWeight || claim.kind == kMaster;
    const std::string group = is_weight ? claim.kind : "";
    for (const NarrowTensors& narrow : claim.narrow) {
      auto at = std::ranges::find_if(all, [&](const Held& h) {
        return h.log == claim.log && h.group == group && h.all.format == narrow.format &&
               h.all.held == narrow.held;
      });
      if (at == all.end()) {
        at = all.insert(at, {claim.log, group, {}, narrow});
        at->all.names.clear();
        at->all.values = at->all.zero = 0;
      }
      NarrowTensors& sum = at->all;
      at->kinds.push_back(claim.kind);
      sum.names.insert(sum.names.end(), narrow.names.begin(), narrow.names.end());
      sum.first_step = std::min(sum.first_step, narrow.first_step);
      sum.last_step = std::max(sum.last_step, narrow.last_step);
      if (claim.kind != kSecond) continue;
      sum.values += narrow.values;
      sum.zero += narrow.zero;
    }
  }
  return all;
}

/// Returns "2 tensors of optimizer state (`exp_avg`, `exp_avg_sq`)", "FP32 weights (3 tensors)".
std::string held_tensors_text(const Held& held) {
  const std::string count = plural(held.all.names.size(), "tensor");
  if (held.group == kWeight) return fmt::format("FP32 weights ({})", count);
  if (held.group == kMaster) return fmt::format("FP32 master weights ({})", count);
  return fmt::format("{} of optimizer state ({})", count, listed_code(held.kinds, 4));
}

std::string fault_text(const Held& held) {
  const std::string format = people_say(held.all.format), tensors = held_tensors_text(held);
  const std::int64_t step = held.all.first_step;
  const bool became = held.all.held == HeldAs::became;
  if (held.group == kMaster && became) {
    return fmt::format(
        "Masters were lost: from step {} on, every FP32 master weight equals its {} "
        "copy ({}).",
        step, format, plural(held.all.names.size(), "tensor"));
  }
  std::string text =
      held.group.empty()
          ? fmt::format(
                "{} are held in FP32, but every value is a {} number from step {} on: they "
                "were rounded.",
                tensors, format, step)
          : fmt::format("{} {} hold only {} numbers{}.", became ? "From step" : "All",
                        became ? fmt::format("{} on, {}", step, tensors) : tensors, format,
                        became ? ", and did not before: they were rounded"
                               : fmt::format(" although they change, from step {} to {}: each step "
                                             "rounds them",
                                             step, held.all.last_step));
  if (held.all.zero > 0) {
    text += fmt::format(" {} of {} second moments are 0.", count_text(held.all.zero),
                        count_text(held.all.values));
  }
  return text;
}

std::string fault_cure(const Held& held) {
  if (held.group == kMaster) {
    return "Save the FP32 master weights in the checkpoint, and load them at a resume; masters "
           "made from 16-bit weights lose all smaller updates so far.";
  }
  if (held.group == kWeight) {
    return "Keep the weights in FP32 from step to step; small updates are lost each time that "
           "16-bit weights are copied back.";
  }
  return "Save and load the optimizer's state in FP32: convert no state_dict of an optimizer, and "
         "create the optimizer after the model has its dtype.";
}

/// Returns the sentence on tensors without a fault.
std::string note_text(const Held& held) {
  const std::string format = people_say(held.all.format), tensors = held_tensors_text(held);
  const std::string what =
      fmt::format("{} hold only {} numbers at step {}", tensors, format, held.all.first_step);
  if (held.all.held == HeldAs::loaded) return what + ": they were loaded from such numbers.";
  if (held.all.held == HeldAs::gradient) return what + ", as their gradients do.";
  return what + ": a healthy optimizer may hold such values, so this log does not decide it.";
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
             {count_text(claim.tensors), static_cast<double>(claim.tensors)},
             {count_text(values), static_cast<double>(values)},
             share_cell(exact[1], values),
             share_cell(exact[2], values),
             share_cell(exact[0], values)}};
  });
  return table;
}

/// Sums over weights in 16 bits or fewer, which have no more exact copy.
struct Frozen {
  std::uint64_t elements = 0, frozen = 0, lost = 0;
  std::optional<Dtype> dtype;
  std::vector<std::string>
      kinds;  ///< kinds of layers that have gradients, and no weight that moved
};

/// Returns a tensor's name without its role.
std::string path_of(const std::string& name) { return name.substr(name.find('/') + 1); }

/// Returns the paths of a log's parameters with a nonzero gradient.
std::set<std::string> trained_in(const Study& study, const std::string& log) {
  std::set<std::string> paths;
  for (const auto& t : study.analysis.tensors()) {
    if (t.log == log && t.role == log::Role::weight_grad && t.counts.finite_nonzero.high > 0) {
      paths.insert(path_of(t.name));
    }
  }
  return paths;
}

Frozen frozen_of(const Study& study, const Movement& movement) {
  Frozen sum;
  std::set<std::string> moving, still;
  const std::set<std::string> trained = trained_in(study, movement.log);
  for (const auto& tensor : movement.tensors) {
    if (format_of(tensor.dtype).width > 16) continue;
    sum.dtype = tensor.dtype;
    sum.elements += tensor.elements;
    sum.frozen += tensor.frozen();
    if (tensor.stall) sum.lost += tensor.stall->lost;
    const bool stays = tensor.moved == 0 && trained.contains(path_of(tensor.name));
    (stays ? still : moving).insert(tensor.kind);
  }
  std::ranges::set_difference(still, moving, std::back_inserter(sum.kinds));
  return sum;
}

}  // namespace

std::vector<Finding> claim_findings(const std::vector<Claim>& claims) {
  std::vector<Finding> all;
  for (const Held& held : held_of(claims)) {
    if (!is_fault(held.all.held)) continue;
    all.push_back({Severity::serious, fault_text(held), fault_cure(held)});
  }
  return all;
}

Section claims_section(const std::vector<Claim>& claims) {
  Section section{"FP32 tensors that hold fewer bits"};
  for (const Finding& finding : claim_findings(claims))
    section.sentences.push_back(text_of(finding));
  for (const Held& held : held_of(claims)) {
    if (!is_fault(held.all.held)) section.sentences.push_back(note_text(held));
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
    if (is_fault(held.all.held)) faults += held.all.names.size();
  }
  std::string text = elements == 0 ? "" : share_text(frozen, elements) + " never moved";
  if (faults > 0) {
    text += (text.empty() ? "" : "; ") + plural(faults, "FP32 tensor") + " rounded to fewer bits";
  }
  return text;
}

void find_rounded_state(const Study& study, std::vector<Finding>& to) {
  std::ranges::move(claim_findings(study.claims), std::back_inserter(to));
}

void find_frozen_weights(const Study& study, std::vector<Finding>& to) {
  for (const Movement& movement : study.movements) {
    const Frozen sum = frozen_of(study, movement);
    const double share = static_cast<double>(sum.lost) /
                         static_cast<double>(std::max<std::uint64_t>(1, sum.elements));
    const bool loses = sum.lost > 0 && share >= study.advice.asked.negligible_share;
    if (!loses && sum.kinds.empty()) continue;
    const std::string format = people_say(*sum.dtype);
    std::string title = fmt::format("{} of the {} {} weights never moved over steps {} to {}",
                                    share_text(sum.frozen, sum.elements), count_text(sum.elements),
                                    format, movement.steps.front(), movement.steps.back());
    if (!sum.kinds.empty())
      title += fmt::format(", among them all of {}", listed_code(sum.kinds, 4));
    title += loses ? fmt::format(": the updates of {} of them are lost at every step.",
                                 count_text(sum.lost))
                   : ".";
    std::string action = "Keep FP32 master weights.";
    if (std::ranges::any_of(
            sum.kinds, [](const std::string& k) { return k.find("orm") != std::string::npos; })) {
      action += fmt::format(
          " A weight of 1, as in norms, becomes smaller in {} only if its update exceeds 2^-{}.",
          format, format_of(*sum.dtype).precision + 1);
    }
    const bool serious = loses && share >= study.advice.asked.serious_share;
    to.push_back({serious ? Severity::serious : Severity::warning, title, action});
  }
}

}  // namespace halfscope::reports::answer
