// SPDX-License-Identifier: Apache-2.0
#include "reports/answer/formats_section.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "analyzers/formats/format_fit.hpp"
#include "reports/answer/formats.hpp"
#include "reports/answer/formats_words.hpp"
#include "reports/answer/marks.hpp"
#include "reports/answer/series.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::reports::answer {

using analyzers::underflow::Analysis;
using analyzers::underflow::FormatFit;
using analyzers::underflow::NoiseRatio;
using analyzers::underflow::TensorFindings;

namespace {

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
using Key = std::tuple<log::Role, int, std::string, bool>;

/// Returns the tensors by role and narrowest format.
std::map<Key, Tensors> group(const Analysis& analysis) {
  std::map<Key, Tensors> groups;
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

Row narrowest_row(const Analysis& analysis, const Key& key, const Tensors& tensors) {
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
  for (const std::string_view element : analyzers::formats::kMxElements) {
    add([element](const TensorFindings& t) {
      const auto& fits = t.whole->block_fits;
      const auto fit = std::ranges::find(fits, element, &analyzers::underflow::BlockFit::element);
      return fit == fits.end() ? std::nullopt : fit->noise;
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
  for (const std::string_view element : analyzers::formats::kMxElements) {
    table.headings.push_back(mx_name(element));
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
  const std::string log = analysis.logs.size() > 1 ? code(history.log) + ": " : "";
  for (const std::string& text : delayed_sentences(history)) to.sentences.push_back(log + text);
  to.tables.push_back(delayed_table(history));
  to.tables.back().title = log + to.tables.back().title;
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

}  // namespace halfscope::reports::answer
