// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "reports/answer/comparison.hpp"
#include "reports/answer/formats.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::reports::answer {

using analyzers::compare::AffectedTensors;
using analyzers::compare::Change;
using analyzers::compare::Comparison;
using analyzers::compare::RunTotals;

namespace {

std::string steps_text(const AffectedTensors& trouble) {
  if (trouble.steps == 1) return fmt::format("at step {}", trouble.first_step);
  return fmt::format("at {} recorded, {} to {}", plural(trouble.steps, "step"), trouble.first_step,
                     trouble.last_step);
}

/// Returns true if NaN or infinities occur in the loss or in tensors that are not gradients. In
/// gradients alone they are what a loss scaler skips.
bool is_broken(const RunTotals& run) {
  return (run.non_finite && run.non_finite->not_loss_scaled != 0) || run.loss_non_finite;
}

/// For example "NaN or infinity in 44 of 52 tensors, at 7 steps recorded, 140 to 199".
std::string broken_text(const RunTotals& run) {
  std::string out;
  if (run.non_finite) {
    out = fmt::format("NaN or infinity in {} of {}, {}", count_text(run.non_finite->tensors),
                      plural(run.tensors, "tensor"), steps_text(*run.non_finite));
  }
  if (run.loss_non_finite) {
    out += fmt::format("{}loss not finite from step {} on", out.empty() ? "" : "; ",
                       *run.loss_non_finite);
  }
  return out;
}

std::string overflow_text(const RunTotals& run) {
  if (!run.overflow) return "none";
  return fmt::format("{} in {}, {}, most in {}",
                     count_text(run.overflow->values) +
                         (run.overflow->values == Interval(1) ? " value" : " values"),
                     plural(run.overflow->tensors, "tensor"), steps_text(*run.overflow),
                     code(run.overflow->most));
}

std::string overflow_sentence(const Comparison& c) {
  const RunTotals &a = c.runs.a, &b = c.runs.b;
  if (!a.overflow && !b.overflow) {
    const bool none = a.not_finite_all.high == 0 && b.not_finite_all.high == 0;
    return none && !a.non_finite && !b.non_finite
               ? "No value is NaN, infinite or overflows in either."
               : "";
  }
  return fmt::format("Overflow of {}: {} in A; {} in B.", c.target.name, overflow_text(a),
                     overflow_text(b));
}

/// Returns a sentence on NaN or infinities in gradients alone, which a loss scaler skips.
std::string gradients_sentence(const RunTotals& run, std::string_view name) {
  if (!run.non_finite || is_broken(run)) return "";
  return fmt::format("{} has NaN or infinity in gradients alone, {} ({} skipped).", name,
                     steps_text(*run.non_finite), count_text(run.skipped.size()));
}

std::string underflow_sentence(const Comparison& c) {
  const bool bounds = !c.runs.a.lost.exact() || !c.runs.b.lost.exact();
  const bool zeros = c.zeros_tell && bounds;
  const auto lost = [&](const RunTotals& run) {
    return share_text(zeros ? run.lost_to_zero() : run.likely_lost, run.gradients.total);
  };
  const std::string numbers = fmt::format("{}{} in A, {} in B", zeros ? "with true zeros " : "",
                                          lost(c.runs.a), lost(c.runs.b));
  switch (c.underflow) {
    case Change::less: return "B loses fewer gradient values to zero: " + numbers + ".";
    case Change::more: return "B loses more gradient values to zero: " + numbers + ".";
    case Change::same: return "Both lose as many gradient values to zero: " + numbers + ".";
    case Change::similar:
      return "No real difference in gradient values lost to zero: " + numbers + ".";
    case Change::unknown: break;
  }
  if (c.gradients == 0) return "The runs have no gradients in common.";
  return "The runs do not show whether B loses more gradient values to zero: " + numbers + ".";
}

std::string dtype_text(std::optional<Dtype> dtype) {
  return dtype ? people_say(*dtype) : "a wider format";
}

/// Returns the sentence for two runs if only one computed in the target format.
std::string cost_sentence(const Comparison& c) {
  const bool b_is_narrow = c.runs.b.in_target;
  const RunTotals& narrow = b_is_narrow ? c.runs.b : c.runs.a;
  const RunTotals& wide = b_is_narrow ? c.runs.a : c.runs.b;
  // BF16 has fewer bits than FP16, so only its range is an advantage of the run in BF16.
  const std::string_view part = wide.computed == Dtype::bf16 ? "'s range" : "";
  return fmt::format(
      "{} computed in {}, {} in {}: {} lost nothing to {}{}, and each is judged by what "
      "it did. ",
      b_is_narrow ? "B" : "A", dtype_text(narrow.computed), b_is_narrow ? "A" : "B",
      dtype_text(wide.computed), b_is_narrow ? "A" : "B", people_say(c.target.name), part);
}

/// The runs with zero gradients that are most likely not underflow.
struct FarZeros {
  bool in_a = false, in_b = false;
  int smallest_log2 = 0;
  bool any() const { return in_a || in_b; }
};

FarZeros far_zeros(const Comparison& c) {
  FarZeros out;
  for (const analyzers::compare::ComparedTensor& t : c.tensors) {
    const bool a = t.far.a && t.lost.a.high != t.likely_lost.a.high;
    const bool b = t.far.b && t.lost.b.high != t.likely_lost.b.high;
    if (!t.loss_scaled || (!a && !b)) continue;
    out.smallest_log2 =
        out.any() ? std::min(out.smallest_log2, *t.smallest_log2) : *t.smallest_log2;
    out.in_a = out.in_a || a;
    out.in_b = out.in_b || b;
  }
  return out;
}

/// Returns the formats of the weights to which each run adds its updates.
std::string kept_sentence(const Comparison& c) {
  const auto kept = [](const RunTotals& run) {
    const int bits = run.kept ? format_of(*run.kept).precision : 0;
    return dtype_text(run.kept) + (bits == 0 ? "" : fmt::format(" ({} significant bits)", bits));
  };
  return fmt::format(" A keeps its weights in {}, B in {}.", kept(c.runs.a), kept(c.runs.b));
}

/// Returns a sentence on zero updates that the verdict ignores; empty if their shares are similar.
std::string zero_updates_sentence(const Comparison& c) {
  const UpdateCounts &a = c.updates->a, &b = c.updates->b;
  if (c.runs.a.zero_updates_hide || c.runs.b.zero_updates_hide) return "";
  if (c.zero_updates != Change::less && c.zero_updates != Change::more) return "";
  return fmt::format(
      "Updates that are exactly zero: {} in A, {} in B; underflow did not make them, and no "
      "verdict rests on them.",
      share_text(a.zero, a.pairs), share_text(b.zero, b.pairs));
}

std::string lost_updates_sentence(const Comparison& c) {
  if (c.ineffective_updates != Change::less && c.ineffective_updates != Change::more) return "";
  const RunTotals &a = c.runs.a, &b = c.runs.b;
  std::string out = fmt::format("{} weight updates are lost: {} in A, {} in B",
                                c.ineffective_updates == Change::less ? "Fewer" : "More",
                                share_text(a.ineffective_updates, c.updates->a.pairs),
                                share_text(b.ineffective_updates, c.updates->b.pairs));
  if (a.ineffective_updates + b.ineffective_updates != a.lost_updates + b.lost_updates) {
    out += ", with zero updates that the other run does not have";
  }
  return out + "." + (c.own_updates ? kept_sentence(c) : "");
}

std::string loss_sentence(const Comparison& c) {
  if (!c.last_loss) return "";
  return fmt::format("Loss at step {}: {} in A, {} in B.", c.last_loss->step,
                     loss_text(c.last_loss->a), loss_text(c.last_loss->b));
}

/// Returns which of two unbroken runs is better.
std::string better_text(const Comparison& c) {
  std::vector<Change> changes = {c.not_finite};
  if (c.gradients != 0) changes.push_back(c.underflow);
  if (c.updates) changes.push_back(c.ineffective_updates);
  const auto any = [&](Change change) {
    return std::ranges::find(changes, change) != changes.end();
  };
  if (any(Change::more) && any(Change::less)) {
    return "B is better in one thing and worse in another.";
  }
  if (any(Change::more)) return "B is worse.";
  if (any(Change::less)) return "B is better.";
  if (any(Change::unknown)) return "The runs do not show whether B is better.";
  const auto noisy = [](const analyzers::compare::ComparedTensor& t) {
    return (t.stored.a && t.stored.a->noise != 0) || (t.stored.b && t.stored.b->noise != 0);
  };
  if (std::ranges::any_of(c.tensors, noisy))
    return "A and B differ by the loss of storage as codes.";
  return "No real difference between A and B.";
}

}  // namespace

std::string comparison_verdict(const Comparison& c) {
  const bool a = is_broken(c.runs.a), b = is_broken(c.runs.b);
  if (a && b) {
    return fmt::format("Both runs are broken. A: {}. B: {}.", broken_text(c.runs.a),
                       broken_text(c.runs.b));
  }
  if (a) return fmt::format("A is broken: {}.", broken_text(c.runs.a));
  if (b) return fmt::format("B is broken: {}.", broken_text(c.runs.b));
  return (c.own_format ? cost_sentence(c) : "") + better_text(c);
}

std::vector<std::string> comparison_reasons(const Comparison& c) {
  std::vector<std::string> out = {overflow_sentence(c), gradients_sentence(c.runs.a, "A"),
                                  gradients_sentence(c.runs.b, "B"), underflow_sentence(c)};
  if (c.updates) {
    out.insert(out.end(), {lost_updates_sentence(c), zero_updates_sentence(c)});
  }
  out.push_back(loss_sentence(c));
  std::erase(out, "");
  return out;
}

std::string counted_for_text(const Comparison& c) {
  const std::string chosen =
      c.format_of_runs
          ? fmt::format(" (which a run computed in; {} asks about FP16)", code("--format fp16"))
          : "";
  const std::string scale = c.loss_scale
                                ? fmt::format("at loss scale {}", scale_text(*c.loss_scale))
                                : "each at its own loss scale";
  return fmt::format("In {}{}, {}.", c.target.name, chosen, scale);
}

std::string far_text(const Comparison& c) {
  const FarZeros far = far_zeros(c);
  if (!far.any()) return "";
  const RunTotals& run = far.in_b ? c.runs.b : c.runs.a;
  return fmt::format(
      "Zeros of {} are most likely no underflow: {} flushes what is below 2^{}, and the smallest "
      "nonzero gradient recorded is 2^{} or more. No verdict rests on them.",
      far.in_a && far.in_b ? "A and B"
      : far.in_a           ? "A"
                           : "B",
      dtype_text(run.computed),
      analyzers::compare::flushed_below_log2(format_of(run.computed.value_or(Dtype::bf16))),
      far.smallest_log2);
}

std::string happened_text(const Comparison& c) {
  if (!c.runs.a.underflow_identifiable || c.runs.b.underflow_identifiable) return "";
  if (far_zeros(c).in_b) return "";
  return fmt::format(
      "B was computed in {} and A in {}: at one step of one model, new zeros are underflow that "
      "happened.",
      dtype_text(c.runs.b.computed), dtype_text(c.runs.a.computed));
}

std::string parting_text(const Comparison& c) {
  const analyzers::compare::FirstDifferences& p = c.parting;
  if (p.losses == 0) return "";
  std::string out;
  if (!p.first_other) {
    out = fmt::format("Losses are the same at {} that both have.",
                      p.losses == 1 ? "the step" : "all " + plural(p.losses, "step"));
  } else if (p.far_at_first) {
    out = fmt::format(
        "Losses differ by more than 1 % at step {} already, the first that both have: more than "
        "rounding, if both start from the same weights and data.",
        *p.first_far);
  } else {
    out = p.same_until
              ? fmt::format("Losses are the same up to step {}; they differ first at step {}",
                            *p.same_until, *p.first_other)
              : fmt::format("Losses differ at step {} already, the first that both have",
                            *p.first_other);
    out += p.first_far
               ? fmt::format(
                     ", and by more than 1 % first at step {}: runs that differ only in rounding "
                     "diverge after some steps; from there on compare distributions, not steps.",
                     *p.first_far)
               : ", never by more than 1 %.";
  }
  if (p.first_other_scale && !p.other_scale_at_first) {
    out += fmt::format(" Loss scales differ first at step {}.", *p.first_other_scale);
  }
  return out;
}

std::string lost_note(const Comparison& c) {
  if (c.own_format) {
    return fmt::format(
        "Lost to zero: of tensors computed in {}, what it flushed: the zeros that the "
        "other run does not have. Tensors computed in a wider format lost nothing.",
        people_say(c.target.name));
  }
  std::string out = fmt::format("Lost to zero: what {} flushes", c.target.name);
  if (!c.runs.a.underflow_identifiable || !c.runs.b.underflow_identifiable) {
    out +=
        "; in a run whose values were computed in " +
        dtype_text(c.runs.b.underflow_identifiable ? c.runs.a.computed : c.runs.b.computed) +
        ", which holds as zeros what it flushed, also the zeros that the other run does not have";
  }
  return out + ". Other zeros are no loss.";
}

}  // namespace halfscope::reports::answer
