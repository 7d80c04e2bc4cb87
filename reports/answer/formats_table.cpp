// SPDX-License-Identifier: Apache-2.0
#include "reports/answer/formats_section.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analyzers/formats/format_fit.hpp"
#include "reports/answer/formats.hpp"
#include "reports/answer/marks.hpp"
#include "reports/answer/series.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::reports::answer {

using analyzers::underflow::Analysis;
using analyzers::underflow::FormatFit;
using analyzers::underflow::NoiseRatio;
using analyzers::underflow::TensorFindings;

namespace {

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
Cell block_cell(const TensorFindings& tensor, std::string_view element) {
  for (const analyzers::underflow::BlockFit& fit : tensor.whole->block_fits) {
    if (fit.element != element || !fit.noise) continue;
    return {decibels(*fit.noise), fit.noise->low_db,
            fmt::format("{} of {} become zero, {} saturate", count_text(fit.flushed_to_zero),
                        count_text(fit.values), count_text(fit.saturated))};
  }
  return {"", kNoNumber, "", true};
}

std::vector<std::string_view> elements_of(const Tensors& tensors) {
  std::vector<std::string_view> out;
  for (const TensorFindings* tensor : tensors) {
    for (const analyzers::underflow::BlockFit& fit : tensor->whole->block_fits) {
      if (std::find(out.begin(), out.end(), fit.element) == out.end()) out.push_back(fit.element);
    }
  }
  return out;
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

Table formats_table(const Analysis& analysis) {
  Table table{Evidence::formats, "Formats, tensor by tensor",
              "In brackets the signal-to-noise ratio in dB. NaN and infinities are left out: no "
              "format cures them."};
  Tensors tensors = tested(analysis);
  const std::vector<FormatColumn> columns = columns_of(analysis);
  const std::vector<std::string_view> elements = elements_of(tensors);
  const bool several_logs = analysis.logs.size() > 1;
  table.left_out = tensors.size() - std::min(tensors.size(), kMostRows);
  tensors.resize(tensors.size() - table.left_out);
  table.all_by = "analyze LOG --formats --json FILE";
  table.headings = {"tensor"};
  if (several_logs) table.headings.emplace_back("log");
  table.headings.emplace_back("narrowest that serves");
  for (const FormatColumn& column : columns) {
    table.headings.push_back(people_say(column.format) + (column.saturating ? " saturating" : ""));
  }
  for (const auto element : elements) table.headings.push_back(mx_name(element));
  for (const TensorFindings* tensor : tensors) {
    Row row{{{code(tensor->name)}}};
    if (several_logs) row.cells.push_back({code(*tensor->log)});
    row.cells.push_back(narrowest_cell(*tensor));
    for (const FormatColumn& column : columns) {
      const FormatFit* const fit = find_fit(*tensor, column.format, column.saturating);
      row.cells.push_back(fit_cell(*tensor, fit, analysis.target.subnormals));
    }
    for (const auto element : elements) row.cells.push_back(block_cell(*tensor, element));
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace halfscope::reports::answer
