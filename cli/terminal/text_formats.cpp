// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal/text_formats.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "analyzers/formats/format_fit.hpp"
#include "halfscope/log/error.hpp"
#include "reports/answer/formats.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::cli::terminal {
namespace {

using analyzers::underflow::Analysis;
using analyzers::underflow::FormatFit;
using analyzers::underflow::NoiseRatio;
using analyzers::underflow::TensorFindings;
using reports::answer::plural;

/// Tensors of one role that the same format serves.
struct Group {
  std::vector<const TensorFindings*> tensors;
  std::optional<int> lowest, highest;  ///< log2 of their own scales
};

const FormatFit* find_fit(const TensorFindings& t, std::string_view format) {
  for (const FormatFit& fit : t.fits) {
    if (fit.format == format && !fit.saturating) return &fit;
  }
  return nullptr;
}

/// By role, then width and name of the format, then whether it needs a scale.
using Key = std::tuple<log::Role, int, std::string, bool>;

std::map<Key, Group> group(const Analysis& analysis) {
  std::map<Key, Group> groups;
  for (const TensorFindings& t : analysis.tensors()) {
    const auto narrow = t.narrowest;
    if (!narrow) continue;
    const int width = find_format(narrow->format)->format.width;
    Group& g = groups[{t.role, width, std::string(narrow->format), narrow->needs_scale}];
    g.tensors.push_back(&t);
    const FormatFit* fit = find_fit(t, narrow->format);
    if (!narrow->needs_scale || fit == nullptr || !fit->best_log2) continue;
    g.lowest = std::min(g.lowest.value_or(*fit->best_log2), *fit->best_log2);
    g.highest = std::max(g.highest.value_or(*fit->best_log2), *fit->best_log2);
  }
  return groups;
}

std::string names(const Group& g) {
  std::vector<std::string> names;
  for (const TensorFindings* t : g.tensors) names.push_back(t->name);
  return reports::answer::listed_names(names, 3);
}

std::string scales(const Group& g) {
  if (!g.lowest) return "as it is";
  if (*g.lowest == *g.highest) return fmt::format("at 2^{}", *g.lowest);
  return fmt::format("at 2^{} to 2^{}", *g.lowest, *g.highest);
}

std::string groups_text(const Analysis& analysis, double enough_db) {
  std::string text = reports::answer::wrapped_text(
      "Narrowest format that fits, unscaled or with a power-of-two scale per "
      "tensor. " +
          reports::answer::fit_rule_text(enough_db),
      100, 0);
  for (const auto& [key, g] : group(analysis)) {
    const auto& [role, width, format, needs_scale] = key;
    text += fmt::format("  {:<16} {:<9} {:<18} {:>11}  {}\n", log::name_of(role), format, scales(g),
                        plural(g.tensors.size(), "tensor"), names(g));
  }
  const std::string left_out = reports::answer::left_out_text(analysis);
  return left_out.empty() ? text : text + left_out + "\n";
}

/// The lowest noise ratio of a role's tensors in one format, and whether any is an estimate.
struct Worst {
  std::optional<double> db;
  bool estimated = false;

  void add(const std::optional<NoiseRatio>& noise) {
    if (!noise) return;
    db = std::min(db.value_or(noise->db), noise->db);
    estimated = estimated || !noise->exact;
  }
  std::string text() const {
    if (!db) return "-";
    if (std::isinf(*db)) return "exact";
    return fmt::format("{}{:.0f}", estimated ? "~" : "", *db);
  }
};

std::string noise_row(const Analysis& analysis, log::Role role) {
  std::string row = fmt::format("  {:<16}", log::name_of(role));
  for (const std::string_view format : analyzers::formats::kFitFormats) {
    Worst worst;
    for (const TensorFindings& t : analysis.tensors()) {
      const FormatFit* fit = t.role == role ? find_fit(t, format) : nullptr;
      if (fit != nullptr) worst.add(fit->noise_at_best);
    }
    row += fmt::format(" {:>8}", worst.text());
  }
  for (std::size_t i = 0; i < analyzers::formats::kMxElements.size(); ++i) {
    Worst worst;
    for (const TensorFindings& t : analysis.tensors()) {
      if (t.role == role && !t.block_fits.empty()) worst.add(t.block_fits[i].noise);
    }
    row += fmt::format(" {:>8}", worst.text());
  }
  return row + "\n";
}

std::string noise_text(const Analysis& analysis) {
  std::string text =
      "\nSignal-to-quantisation-noise ratio, 10 log10(sum x^2 / sum (rounded x - x)^2) in dB: "
      "higher "
      "is\nbetter, 6 dB are one bit. For the noisiest tensor of each role, at its best scale (~: "
      "partly estimated\nfrom histograms; exact: nothing is rounded; MX: blocks of 32):\n";
  text += fmt::format("  {:<16}", "");
  for (const std::string_view format : analyzers::formats::kFitFormats)
    text += fmt::format(" {:>8}", format);
  for (const std::string_view element : analyzers::formats::kMxElements) {
    text += fmt::format(" {:>8}", fmt::format("mx {}", element));
  }
  text += "\n";
  std::vector<log::Role> roles;
  for (const TensorFindings& t : analysis.tensors()) {
    if (std::find(roles.begin(), roles.end(), t.role) == roles.end()) roles.push_back(t.role);
  }
  std::sort(roles.begin(), roles.end());
  for (const log::Role role : roles) text += noise_row(analysis, role);
  return text;
}

/// How much the flushed gradients weigh; empty without gradients.
std::string mass_text(const analyzers::Findings& found) {
  const Analysis& analysis = found.analysis;
  Interval flushed;
  std::uint64_t n = 0;
  for (const TensorFindings& t : analysis.tensors()) {
    if (!t.counted) continue;
    flushed += t.counts.classes.flushed_to_zero;
    n += t.counts.finite_nonzero.high;
  }
  if (!found.lost || flushed.high == 0) return "";
  const MassShare& lost = *found.lost;
  // Worth a "but": many values that weigh little.
  constexpr double kMany = 0.001;
  const double share = static_cast<double>(flushed.low) / static_cast<double>(n);
  const bool weigh_little = share >= kMany && lost.l1.high < share / 2;
  return fmt::format(
      "\nThe gradients that become zero in {} at loss scale {} are {} of the values,\n"
      "{} {} of the sum of magnitudes (L1) and {} of the sum of squares (L2).\n",
      analysis.target.name, reports::answer::scale_text(analysis.loss_scale),
      reports::answer::share_text(flushed, n), weigh_little ? "but" : "and",
      reports::answer::share_range_text(lost.l1.low, lost.l1.high),
      reports::answer::share_range_text(lost.l2.low, lost.l2.high));
}

}  // namespace

std::string formats_text(const analyzers::Findings& found) {
  const Analysis& analysis = found.analysis;
  const bool any = std::any_of(analysis.tensors().begin(), analysis.tensors().end(),
                               [](const auto& t) { return !t.fits.empty(); });
  if (!any) return "";
  return groups_text(analysis, found.enough_db) + noise_text(analysis) + mass_text(found);
}

}  // namespace halfscope::cli::terminal
