// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <vector>

#include "analyzers/formats/format_fit.hpp"
#include "reports/answer/formats.hpp"
#include "reports/answer/series.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::reports::answer {

using analyzers::underflow::Analysis;
using analyzers::underflow::FormatFit;
using analyzers::underflow::NoiseRatio;
using analyzers::underflow::RecipeFit;
using analyzers::underflow::TensorFindings;

namespace {

/// Returns "12 infinities of skipped steps are left out: ...", or an empty string without any.
std::string skipped_values_text(const Analysis& analysis) {
  std::uint64_t nan = 0, inf = 0;
  for (const TensorFindings& tensor : analysis.tensors()) {
    nan += tensor.whole->skipped_nan;
    inf += tensor.whole->skipped_inf;
  }
  if (nan + inf == 0) return "";
  return fmt::format(
      "{} {} of skipped steps are left out: the loss scale made them, and they decide no format.",
      count_text(nan + inf), nonfinite_names(nan, inf));
}

/// Returns the definition of a fit.
std::string fit_rule_text(double sufficient_snr_db) {
  return fmt::format(
      "A format fits where nothing overflows and the signal-to-quantisation-noise ratio is {:g} dB "
      "or more: the errors, what becomes zero included, hold {} of the values' sum of squares at "
      "most.",
      sufficient_snr_db, share_text(std::pow(10.0, -sufficient_snr_db / 10)));
}

/// The lowest signal-to-noise ratio of a role's tensors in one format; `estimated` if any is.
struct Worst {
  std::optional<double> db;
  bool estimated = false;

  void add(const std::optional<NoiseRatio>& noise) {
    if (!noise) return;
    db = std::min(db.value_or(noise->db), noise->db);
    estimated = estimated || !noise->exact;
  }
  Cell cell() const {
    if (!db) return {"", -1000, "", true};
    if (std::isinf(*db)) return {"exact", 1e4};
    return {fmt::format("{}{:.0f}", estimated ? "~" : "", *db), *db};
  }
};

/// Role, width of the format, its name, and whether it needs a scale.
using GroupKey = std::tuple<log::Role, int, std::string, bool>;

/// Returns the tensors by role and narrowest format.
std::map<GroupKey, Tensors> group(const Analysis& analysis) {
  std::map<GroupKey, Tensors> groups;
  for (const TensorFindings& t : analysis.tensors()) {
    const auto narrow = t.whole->narrowest;
    if (!narrow) continue;
    const int width = find_format(narrow->format)->format.width;
    groups[{t.role, width, std::string(narrow->format), narrow->needs_scale}].push_back(&t);
  }
  return groups;
}

std::string scales_of(const OwnScales& own) {
  if (!own.lowest) return "";
  if (*own.lowest == *own.highest) return fmt::format("2^{}", *own.lowest);
  return fmt::format("2^{} to 2^{}", *own.lowest, *own.highest);
}

Row narrowest_row(const Analysis& analysis, const GroupKey& key, const Tensors& tensors) {
  constexpr std::size_t kNamed = 3;
  const auto& [role, width, format, needs_scale] = key;
  const OwnScales own = own_scales(tensors, format, analysis.target.subnormals);
  std::vector<std::string> names;
  Worst worst;
  for (const TensorFindings* t : tensors) {
    names.push_back(t->name);
    if (const FormatFit* const fit = find_fit(*t, format)) worst.add(fit->noise_at_best);
  }
  const auto share = [&](const Interval& count) {
    return Cell{own.tensors == 0 ? "" : share_text(count, own.values),
                static_cast<double>(count.high)};
  };
  return {{{std::string(name_of(role))},
           {people_say(format)},
           {needs_scale ? "needs one" : "fits as it is"},
           share(own.zero_at_1),
           {scales_of(own)},
           share(own.zero),
           worst.cell(),
           {count_text(names.size()), static_cast<double>(names.size())},
           {listed_code(names, kNamed)}}};
}

Table narrowest_table(const Analysis& analysis) {
  Table table{Evidence::formats, "Narrowest format by role",
              "The best scale is each tensor's own power of two, the largest at which nothing "
              "overflows. Values may become zero and a tensor fit all the same: they hold little "
              "of its sum of squares. dB: of the noisiest tensor, at its best scale."};
  table.headings = {"role", "format",  "scale", "become zero as it is", "best scale", "become zero",
                    "dB",   "tensors", "which"};
  for (const auto& [key, tensors] : group(analysis)) {
    table.rows.push_back(narrowest_row(analysis, key, tensors));
  }
  return table;
}

/// Returns the result for a tensor in one of kMxRecipes; null if there is none.
const RecipeFit* mx_fit(const TensorFindings& tensor, std::string_view recipe) {
  const auto& fits = tensor.whole->mx_fits;
  const auto fit = std::ranges::find(fits, recipe, &RecipeFit::asked);
  return fit == fits.end() ? nullptr : &*fit;
}

Row noise_row(const Analysis& analysis, log::Role role) {
  Row row{{{std::string(name_of(role))}}};
  const auto add = [&](const auto& noise_of) {
    Worst worst;
    for (const TensorFindings& t : analysis.tensors()) {
      if (t.role == role) worst.add(noise_of(t));
    }
    row.cells.push_back(worst.cell());
  };
  for (const std::string_view format : analyzers::formats::kFitFormats) {
    add([format](const TensorFindings& t) {
      const FormatFit* const fit = find_fit(t, format);
      return fit == nullptr ? std::nullopt : fit->noise_at_best;
    });
  }
  for (const std::string_view recipe : analyzers::formats::kMxRecipes) {
    add([recipe](const TensorFindings& t) {
      const RecipeFit* const fit = mx_fit(t, recipe);
      return fit == nullptr ? std::nullopt : fit->noise;
    });
  }
  return row;
}

Table noise_table(const Analysis& analysis) {
  Table table{
      Evidence::formats, "Signal-to-quantisation-noise ratio by role, in dB",
      "10 log10(sum x^2 / sum (rounded x - x)^2): higher is better, 6 dB are one bit. "
      "Each number is of the role's noisiest tensor, at its best scale. ~: partly estimated "
      "from histograms; exact: nothing is rounded; MX: blocks of 32."};
  table.headings = {"role"};
  for (const std::string_view format : analyzers::formats::kFitFormats) {
    table.headings.push_back(people_say(format));
  }
  for (const std::string_view recipe : analyzers::formats::kMxRecipes) {
    table.headings.push_back(mx_name(block::recipe_named(recipe)));
  }
  for (const log::Role role : roles_in(analysis)) table.rows.push_back(noise_row(analysis, role));
  return table;
}

/// Returns how much the flushed gradients weigh. Empty if no gradient is flushed.
std::string mass_text(const analyzers::Findings& found) {
  const Analysis& analysis = found.analysis;
  Interval flushed;
  std::uint64_t n = 0;
  for (const TensorFindings* t : counted_of(all_tensors(analysis))) {
    flushed += t->counts.classes.flushed_to_zero;
    n += t->counts.finite_nonzero.high;
  }
  if (!found.lost || flushed.high == 0) return "";
  return fmt::format(
      "The gradients that become zero in {} at loss scale {} are {} of the values, {} of the sum "
      "of magnitudes (L1) and {} of the sum of squares (L2).",
      people_say(analysis.target.name), scale_text(analysis.loss_scale), share_text(flushed, n),
      share_range_text(found.lost->l1.low, found.lost->l1.high),
      share_range_text(found.lost->l2.low, found.lost->l2.high));
}

void add_delayed(const analyzers::formats::AmaxHistory& history, const Analysis& analysis,
                 Section& to) {
  const std::string log = log_prefix(analysis, history.log);
  for (const std::string& text : delayed_sentences(history)) to.sentences.push_back(log + text);
  to.tables.push_back(delayed_table(history));
  to.tables.back().title = log + to.tables.back().title;
}

/// Sort key of cells without a number: less than any number.
constexpr double kNoNumber = -1000;

/// A column of the table: a format, with saturation or infinities at overflow.
struct FormatColumn {
  std::string_view format;
  bool saturating;
  friend bool operator==(const FormatColumn&, const FormatColumn&) = default;
};

/// Returns true if both formats fit the tensor equally.
bool same(const FormatFit& a, const FormatFit& b) {
  return a.fits_at_1 == b.fits_at_1 && a.fits_at_best == b.fits_at_best;
}

/// Returns the columns in the order of the fits. A saturating one is omitted if it changes nothing.
std::vector<FormatColumn> columns_of(const Analysis& analysis) {
  std::vector<FormatColumn> out;
  for (const TensorFindings& tensor : analysis.tensors()) {
    for (const FormatFit& fit : tensor.whole->fits) {
      const FormatColumn column = {fit.format, fit.saturating};
      if (std::find(out.begin(), out.end(), column) != out.end()) continue;
      const FormatFit* plain = find_fit(tensor, fit.format);
      if (fit.saturating && plain && same(*plain, fit)) continue;
      out.push_back(column);
    }
  }
  return out;
}

/// Returns a signal-to-noise ratio in dB, without the unit.
std::string decibels(const NoiseRatio& noise) {
  if (noise.exact) return std::isinf(noise.db) ? "exact" : fmt::format("{:.0f}", noise.db);
  if (std::isinf(noise.low_db)) return "~exact";
  const std::string low = fmt::format("{:.0f}", noise.low_db);
  const std::string high =
      std::isinf(noise.high_db) ? "more" : fmt::format("{:.0f}", noise.high_db);
  return "~" + (low == high ? low : low + " to " + high);
}

/// Returns the share that becomes zero, and the share that overflows if any does.
std::string classes_text(const Classes& classes, std::uint64_t of) {
  std::string out = share_text(classes.flushed_to_zero, of) + " become zero";
  if (classes.overflow.high > 0) {
    out += ", " + share_text(classes.overflow, of) + " overflow";
  }
  return out;
}

Cell fit_cell(const TensorFindings& tensor, const FormatFit* fit, Subnormals subnormals) {
  if (!fit || !fit->best_log2) return {"", kNoNumber, "", true};
  const std::uint64_t of = tensor.counts.finite_nonzero.high;
  const std::string noise =
      fit->noise_at_best ? fmt::format(" ({})", decibels(*fit->noise_at_best)) : "";
  if (fit->fits_at_1) return {"fits" + noise, 2};
  const auto classes_at = [&](int k) { return tensor.classes_at(*fit, subnormals, k); };
  const Classes at_best = classes_at(*fit->best_log2);
  const std::string more =
      "At scale 1 " + classes_text(classes_at(0), of) + "; at its own " + classes_text(at_best, of);
  if (fit->fits_at_best) return {fmt::format("at 2^{}{}", *fit->best_log2, noise), 1, more};
  const double flushed =
      of == 0 ? 0 : static_cast<double>(at_best.flushed_to_zero.high) / static_cast<double>(of);
  return {"no", -flushed, more};
}

Cell narrowest_cell(const TensorFindings& tensor) {
  const std::optional<analyzers::underflow::Narrowest> narrowest = tensor.whole->narrowest;
  const std::string rest =
      holds_nonfinite(tensor)
          ? ", besides " + nonfinite_names(tensor.counts.nan.low, tensor.counts.inf.low)
          : "";
  if (!narrowest) return {"none" + rest, std::nullopt, "", true};
  return {people_say(narrowest->format) + (narrowest->needs_scale ? " with a scale" : "") + rest};
}

/// Returns the result of one MX format for a tensor.
Cell block_cell(const TensorFindings& tensor, std::string_view recipe) {
  const RecipeFit* const fit = mx_fit(tensor, recipe);
  if (fit == nullptr || !fit->noise) return {"", kNoNumber, "", true};
  return {decibels(*fit->noise), fit->noise->low_db,
          fmt::format("{} of {} become zero, {} saturate", count_text(fit->flushed_to_zero),
                      count_text(fit->values), count_text(fit->saturated))};
}

/// Returns a sort key that is larger for wider formats, and for formats that need a scale.
int bits_of(const TensorFindings& tensor) {
  const auto narrowest = tensor.whole->narrowest;
  const NamedFormat* format = narrowest ? find_format(narrowest->format) : nullptr;
  return format ? 2 * format->format.width + (narrowest->needs_scale ? 1 : 0) : 1000;
}

/// Returns the tested tensors; those that fit no narrow format are first.
Tensors tested(const Analysis& analysis) {
  Tensors tensors = all_tensors(analysis);
  std::erase_if(tensors, [](const TensorFindings* tensor) { return tensor->whole->fits.empty(); });
  std::ranges::stable_sort(tensors, std::ranges::greater{},
                           [](const TensorFindings* tensor) { return bits_of(*tensor); });
  return tensors;
}

}  // namespace

Section formats_section(const analyzers::Findings& found) {
  const Analysis& analysis = found.analysis;
  const bool any =
      std::ranges::any_of(analysis.tensors(), [](const auto& t) { return !t.whole->fits.empty(); });
  if (!any) return {};
  Section section{"Which formats fit", {fit_rule_text(found.sufficient_snr_db)}};
  for (std::string text : {skipped_values_text(analysis), mass_text(found)}) {
    if (!text.empty()) section.sentences.push_back(std::move(text));
  }
  section.tables = {narrowest_table(analysis), noise_table(analysis)};
  if (found.mx_gradients) section.sentences.push_back(mx_gradients_text(*found.mx_gradients));
  for (const auto& history : found.amax_histories) add_delayed(history, analysis, section);
  std::erase_if(section.tables, &Table::empty);
  return section;
}

std::string formats_digest(const Analysis& analysis) {
  const FitSums sums = fit_sums(analysis);
  std::string digest = fmt::format("{} of {} fit 8 bits", count_text(sums.eight_bits),
                                   plural(sums.tensors, "tensor"));
  if (sums.nonfinite == 0) return digest;
  return digest + fmt::format("; {} NaN or infinity", sums.nonfinite == 1
                                                          ? "1 holds"
                                                          : count_text(sums.nonfinite) + " hold");
}

Table formats_table(const Analysis& analysis) {
  Table table{Evidence::formats, "Formats, tensor by tensor",
              "In brackets the signal-to-noise ratio in dB. NaN and infinities are left out: no "
              "format cures them."};
  const Tensors tensors = tested(analysis);
  const std::vector<FormatColumn> columns = columns_of(analysis);
  const bool any_mx = std::ranges::any_of(
      tensors, [](const auto* tensor) { return !tensor->whole->mx_fits.empty(); });
  const std::span<const std::string_view> recipes(
      analyzers::formats::kMxRecipes.data(), any_mx ? analyzers::formats::kMxRecipes.size() : 0);
  const bool several_logs = analysis.logs.size() > 1;
  table.all_by = "analyze LOG --formats --json FILE";
  table.headings = {"tensor"};
  if (several_logs) table.headings.emplace_back("log");
  table.headings.emplace_back("narrowest that serves");
  for (const FormatColumn& column : columns) {
    table.headings.push_back(people_say(column.format) + (column.saturating ? " saturating" : ""));
  }
  for (const std::string_view recipe : recipes) {
    table.headings.push_back(mx_name(block::recipe_named(recipe)));
  }
  table.add_rows(tensors, [&](const TensorFindings* tensor) {
    Row row{{{code(tensor->name)}}};
    if (several_logs) row.cells.push_back({code(*tensor->log)});
    row.cells.push_back(narrowest_cell(*tensor));
    for (const FormatColumn& column : columns) {
      const FormatFit* const fit = find_fit(*tensor, column.format, column.saturating);
      row.cells.push_back(fit_cell(*tensor, fit, analysis.target.subnormals));
    }
    for (const std::string_view recipe : recipes) row.cells.push_back(block_cell(*tensor, recipe));
    return row;
  });
  return table;
}

}  // namespace halfscope::reports::answer
