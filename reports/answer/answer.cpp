// SPDX-License-Identifier: Apache-2.0
#include "reports/answer/answer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "reports/answer/findings.hpp"
#include "reports/answer/formats.hpp"
#include "reports/answer/quantised.hpp"
#include "reports/answer/scale.hpp"
#include "reports/answer/text.hpp"
#include "reports/answer/timeline.hpp"

namespace halfscope::reports::answer {

using analyzers::Study;
using analyzers::recommend::Limit;
using analyzers::recommend::Recommendation;
using analyzers::underflow::Share;
using analyzers::underflow::WorstLoss;

namespace {

/// Returns true if the finding is shown before the loss scale: no scale prevents it, or there is no
/// recommended scale and the finding says what happened to the run.
bool leads(const Study& study, const Finding& worst) {
  if (study.advice.may_use && study.verdict.broken.empty())
    return false;  // may_use is answered first
  if (worst.severity == Severity::breaks) return true;
  // Statistics of FP8 come from a run in BF16, which needs no loss scale.
  if (worst.evidence == Evidence::quantised && worst.severity != Severity::note) return true;
  const bool of_the_run =
      worst.evidence == Evidence::overflow || worst.evidence == Evidence::timeline ||
      worst.evidence == Evidence::quantised || worst.evidence == Evidence::policies;
  return of_the_run && !study.advice.static_log2;
}

/// Returns the text of Answer::clear: limited to what the log can show.
std::string clear_text(const analyzers::Study& study) {
  const auto tensors = study.analysis.tensors();
  const bool refused = study.advice.may_use && !study.advice.may_use->yes();
  if (study.advice.no_scale && !tensors.empty() &&
      study.advice.no_scale != analyzers::recommend::NoScale::no_gradients) {
    return "";
  }
  if (refused) return "";
  if (std::ranges::any_of(tensors, [](const auto& tensor) { return tensor.loss_scaled; })) {
    const bool bounds =
        study.advice.underflow_not_identifiable || study.advice.overflow_not_identifiable;
    return fmt::format("Nothing was found that harms training in {}{}.",
                       people_say(study.analysis.target.name),
                       bounds ? ", as far as the log shows" : "");
  }
  if (!tensors.empty()) {
    return "Nothing was found in the tensors of this log. It holds no gradients.";
  }
  const bool none = study.timelines.empty() && study.peaks.empty() && study.quantised.empty();
  return none ? "The log reports no loss scale and no skipped step either." : "";
}

using Kind = Number::Kind;

/// For example "; these hold 0.1 % of the gradients' sum of squares (L2)".
std::string mass_text(const std::optional<MassShare>& mass) {
  if (!mass) return "";
  return fmt::format("; these hold {} of the gradients' sum of squares (L2)",
                     share_range_text(mass->l2.low, mass->l2.high));
}

Number lost_number(const Study& study, std::string title, const Share& share,
                   const std::optional<MassShare>& mass, const std::optional<WorstLoss>& worst) {
  const std::string detail =
      fmt::format("{} of {} nonzero gradient values become zero{}", count_text(share.count),
                  count_text(share.of), share.count.high == 0 ? "" : mass_text(mass));
  if (hidden_by_buckets(study.analysis)) {
    return {Kind::limit, std::move(title), "not identifiable", lost_text(share) + ": " + detail};
  }
  const bool little =
      mass ? is_negligible(*mass, worst, study.advice.asked) : share.count.high == 0;
  return {little ? Kind::kept : Kind::lost, std::move(title), lost_text(share), detail};
}

std::string limit_detail(const Study& study, const Limit& limit) {
  if (limit.skipped_at) return "at least; " + skipped_limit_text(limit);
  const std::string_view what = limit.nan_at         ? "at least; NaN, taken as overflow, in"
                                : limit.censored     ? "at least; an infinity in"
                                : limit.bounded      ? "the largest gradient value, at most:"
                                : limit.from_scalars ? "the largest gradient value of all steps, in"
                                                     : "the largest gradient value:";
  return fmt::format("{} {} at step {}{}", what, code(limit.name), limit.step,
                     study.analysis.logs.size() > 1 ? " of " + code(limit.log) : "");
}

std::string_view use_title(const Study& study) {
  if (default_fine(study)) return "Static loss scale, if you use one";
  if (!study.verdict.broken.empty()) return "Loss scale, by the finite gradients";
  return study.advice.none_needed ? "Loss scale, if you use one" : "Loss scale to use";
}

Number use_number(const Study& study) {
  const Recommendation& advice = study.advice;
  const std::string half = half_parameters_text(advice);
  return {Kind::use, std::string(use_title(study)),
          (advice.overflow_not_identifiable ? "at most " : "") + power_text(*advice.static_log2),
          fmt::format("the largest power of two that keeps {} free below overflow{}{}",
                      plural(static_cast<std::uint64_t>(advice.asked.headroom_bits), "binade"),
                      half.empty() ? "" : ". ", half)};
}

std::vector<Number> numbers(const Study& study) {
  const Recommendation& advice = study.advice;
  if (advice.needs_no_scale()) {
    return {{Kind::use, "Loss scale to use", "none", "FP32's exponent range"}};
  }
  // If training diverges, lost gradients are not the problem.
  if (advice.no_scale == analyzers::recommend::NoScale::diverges) return {};
  std::vector<Number> out;
  if (advice.flushed_at_1.of.high > 0) {
    out.push_back(lost_number(study, "Lost without loss scaling", advice.flushed_at_1,
                              advice.lost_at_1,
                              study.analysis.loss_scale == 1 ? study.worst_lost : std::nullopt));
  }
  if (!advice.static_log2 || !study.verdict.beyond_scales.empty()) return out;
  if (advice.flushed_at_recommended.of.high > 0) {
    out.push_back(lost_number(study, "Lost at loss scale " + power_text(*advice.static_log2),
                              advice.flushed_at_recommended, advice.lost_at_recommended,
                              advice.worst_lost));
    // A share that is known only between bounds is not shown as good.
    if (advice.underflow_not_identifiable) out.back().kind = Kind::limit;
  }
  if (advice.all_steps_censored()) return out;
  out.push_back(use_number(study));
  if (advice.limited_by) {
    out.push_back({Kind::limit, "Limited by", magnitude_text(advice.limited_by->max_abs),
                   limit_detail(study, *advice.limited_by)});
  }
  return out;
}

}  // namespace

std::string_view name_of(Number::Kind kind) {
  switch (kind) {
    case Kind::lost: return "lost";
    case Kind::kept: return "kept";
    case Kind::limit: return "limit";
    case Kind::use: break;
  }
  return "use";
}

std::vector<std::string> Answer::first_lines() const {
  std::vector<std::string> lines;
  if (lead) lines.push_back(lead->title + (lead->action.empty() ? "" : " ") + lead->action);
  if (!scale.empty()) lines.push_back(scale);
  return lines;
}

Answer answer_of(const Study& study, std::string_view framework) {
  Answer out;
  out.findings = findings(study);
  const bool fine = (framework.empty() || framework == "pytorch") && default_fine(study);
  out.scale = scale_sentence(study, fine);
  if (!out.findings.empty() && leads(study, out.findings.front())) {
    out.lead = std::move(out.findings.front());
    out.findings.erase(out.findings.begin());
  }
  if (!out.lead && (out.findings.empty() || out.findings.front().severity == Severity::note)) {
    out.clear = clear_text(study);
  }
  out.numbers = numbers(study);
  if (study.verdict.beyond_scales.empty() && !study.advice.serves_nothing())
    out.snippets = snippets(study);
  out.pastes = keep_pastes(study);
  out.dynamic_first = fine;
  out.details = details(study);
  out.tables = tables(study);
  return out;
}

const Lines& first_lines_of(const Snippet& snippet, const Answer& answer) {
  const bool dynamic =
      answer.dynamic_first && snippet.policy == "torch" && !snippet.dynamic.lines.empty();
  return dynamic ? snippet.dynamic : snippet.first();
}

}  // namespace halfscope::reports::answer
