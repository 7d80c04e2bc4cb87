// SPDX-License-Identifier: Apache-2.0
#include "cli/text_policies.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "halfscope/log/error.hpp"
#include "reports/policy_words.hpp"
#include "reports/text.hpp"

namespace halfscope::cli {
namespace {

namespace text = reports;
using analyzers::PolicyStudy;
using analyzers::Trace;
using log::printable;

std::string row(const Trace& trace, const PolicyStudy& study, std::string_view names) {
  if (!trace.unavailable.empty()) {
    return fmt::format("  {:<55}{}\n", "unavailable: " + trace.unavailable, names);
  }
  return fmt::format("  {:>16}  {:>18}  {:>19}  {:<16} {}\n", text::skipped_text(trace),
                     text::flushed_text(trace), text::scales_text(trace),
                     text::end_text(trace, study.series), names);
}

/// "torch, apex, keras2"
std::string names_of(const PolicyStudy& study, const std::vector<std::size_t>& group) {
  std::string names;
  for (const std::size_t i : group) {
    names += (names.empty() ? "" : ", ") + text::trace_name(study.traces[i]);
  }
  return names;
}

std::string table(const PolicyStudy& study) {
  std::string out = fmt::format("  {:>16}  {:>18}  {:>19}  {:<16} {}\n", "skipped",
                                "flushed (worst)", "scale", "in the end", "policy");
  if (study.recorded) out += row(*study.recorded, study, "the run itself");
  if (study.fixed) {
    out += row(*study.fixed, study,
               fmt::format("the recommended static scale, {}",
                           text::scale_text(study.fixed->scale_at(0))));
  }
  for (const auto& group : analyzers::alike(study)) {
    out += row(study.traces[group.front()], study, names_of(study, group));
  }
  return out + "\n";
}

std::string heading(const PolicyStudy& study) {
  const analyzers::StepSeries& s = study.series;
  std::string out = fmt::format("{}: {}", printable(s.log), text::plural(s.steps.size(), "step"));
  if (!s.from_magnitudes && !s.steps.empty()) {
    out += fmt::format(", {} to {}", s.steps.front(), s.steps.back());
    out += s.flushed.empty() ? ", none with tables"
                             : fmt::format(", {} with tables", s.flushed.size());
  }
  return out +
         ".\nReplayed open loop: gradients are taken as recorded, whatever a policy would have "
         "made of the weights.\n\n";
}

std::string paragraphs(const PolicyStudy& study, double target_underflow) {
  std::string out = text::check_text(study);
  if (study.tuned) out += text::tuned_text(*study.tuned, target_underflow);
  if (!study.traps.empty()) out += "\nBeware:\n";
  for (const auto& [names, trap] : text::traps_text(study)) {
    out += fmt::format("  {}: {}\n", names, printable(trap));
  }
  return out;
}

std::string value_text(const policy::Policy& policy) {
  const std::string all = policy::text_of(policy);
  const std::size_t comma = all.find(',');
  return comma == std::string::npos ? "(no settings)" : all.substr(comma + 1);
}

}  // namespace

std::string policies_text(const PolicyStudy& study, double target_underflow) {
  return heading(study) + text::best_text(study) + "\n" + table(study) +
         paragraphs(study, target_underflow);
}

std::string catalogue_text() {
  std::string out;
  for (const policy::Policy& p : policy::all()) {
    const policy::Info& info = policy::info_of(p);
    out += fmt::format("{}: {}\n  {}\n", info.name, info.framework, value_text(p));
    if (!info.quirk.empty()) out += fmt::format("  {}\n", info.quirk);
    out += fmt::format("  source: {}\n\n", info.source);
  }
  return out + "Use one as --policy NAME, or with settings as --policy NAME,KEY=VALUE,...\n";
}

}  // namespace halfscope::cli
