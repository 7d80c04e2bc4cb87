// SPDX-License-Identifier: Apache-2.0
#include "reports/page/formats_html.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analyzers/formats/format_fit.hpp"
#include "reports/answer/formats.hpp"
#include "reports/answer/text.hpp"
#include "reports/page/data_table.hpp"
#include "reports/page/kept.hpp"

namespace halfscope::reports::page {

using analyzers::underflow::Analysis;
using analyzers::underflow::FormatFit;
using analyzers::underflow::NoiseRatio;
using analyzers::underflow::TensorFindings;

namespace {

/// A column of the table: a format, and whether overflow saturates.
struct Column {
  std::string_view format;
  bool saturating;
  friend bool operator==(const Column&, const Column&) = default;
};

const FormatFit* find(const TensorFindings& tensor, const Column& column) {
  for (const FormatFit& fit : tensor.fits) {
    if (fit.format == column.format && fit.saturating == column.saturating) return &fit;
  }
  return nullptr;
}

bool same(const FormatFit& a, const FormatFit& b) {
  return a.best_log2 == b.best_log2 && a.fits_at_1 == b.fits_at_1 &&
         a.fits_at_best == b.fits_at_best && a.at_best == b.at_best && a.at_1 == b.at_1;
}

/// Formats in the order of the fits. A saturating one only where it says something else.
std::vector<Column> columns_of(const Analysis& analysis) {
  std::vector<Column> out;
  for (const TensorFindings& tensor : analysis.tensors()) {
    for (const FormatFit& fit : tensor.fits) {
      const Column column = {fit.format, fit.saturating};
      if (std::find(out.begin(), out.end(), column) != out.end()) continue;
      const FormatFit* plain = find(tensor, {fit.format, false});
      if (fit.saturating && plain && same(*plain, fit)) continue;
      out.push_back(column);
    }
  }
  return out;
}

/// The heading's note says what the number is: signal-to-noise in dB.
std::string decibels(const NoiseRatio& noise) {
  if (noise.exact) return std::isinf(noise.db) ? "exact" : fmt::format("{:.0f}", noise.db);
  const std::string low = fmt::format("{:.0f}", noise.low_db);
  const std::string high =
      std::isinf(noise.high_db) ? "more" : fmt::format("{:.0f}", noise.high_db);
  return "~" + (low == high ? low : low + " to " + high);
}

/// What decides: the share that becomes zero, and the one that overflows.
std::string told(const Classes& classes, std::uint64_t of) {
  std::string out = answer::share_text(classes.flushed_to_zero, of) + " become zero";
  if (classes.overflow.high > 0) {
    out += ", " + answer::share_text(classes.overflow, of) + " overflow";
  }
  return out;
}

Cell fit_cell(const TensorFindings& tensor, const FormatFit* fit) {
  if (!fit || !fit->best_log2) return {"", -1, "", true};
  const std::uint64_t of = tensor.counts.finite_nonzero.high;
  const std::string noise =
      fit->noise_at_best ? " <small>" + decibels(*fit->noise_at_best) + "</small>" : "";
  if (fit->fits_at_1) return {"<span class=\"fits\">fits</span>" + noise, 2};
  const std::string title =
      "At scale 1 " + told(fit->at_1, of) + "; at its own " + told(fit->at_best, of);
  if (fit->fits_at_best) {
    return {fmt::format("at 2^{}{}", *fit->best_log2, noise), 1, title};
  }
  const double flushed =
      of == 0 ? 0
              : static_cast<double>(fit->at_best.flushed_to_zero.high) / static_cast<double>(of);
  return {"<span class=\"lost\">no</span>", -flushed, title};
}

Cell narrowest_cell(const TensorFindings& tensor) {
  const std::optional<analyzers::underflow::Narrowest> narrowest = tensor.narrowest;
  const std::string rest =
      answer::holds_nonfinite(tensor)
          ? fmt::format(" <small class=\"lost\">besides {}</small>",
                        answer::nonfinite_names(tensor.counts.nan.low, tensor.counts.inf.low))
          : "";
  if (!narrowest) return {"none" + rest, std::nullopt, "", true};
  return {answer::people_say(narrowest->format) +
          (narrowest->needs_scale ? " <small>with a scale</small>" : "") + rest};
}

/// One MX format of a tensor.
Cell block_cell(const TensorFindings& tensor, std::string_view element) {
  for (const analyzers::underflow::BlockFit& fit : tensor.block_fits) {
    if (fit.element != element || !fit.noise) continue;
    return {
        decibels(*fit.noise), fit.noise->low_db,
        fmt::format("{} of {} become zero, {} saturate", answer::count_text(fit.flushed_to_zero),
                    answer::count_text(fit.values), answer::count_text(fit.saturated))};
  }
  return {"", -1000, "", true};
}

/// "MXFP8 E4M3".
std::string block_heading(std::string_view element) {
  const NamedFormat* format = find_format(element);
  return fmt::format("MXFP{} {}", format ? format->format.width : 0, answer::people_say(element));
}

std::vector<std::string_view> elements_of(const std::vector<const TensorFindings*>& tensors) {
  std::vector<std::string_view> out;
  for (const TensorFindings* tensor : tensors) {
    for (const analyzers::underflow::BlockFit& fit : tensor->block_fits) {
      if (std::find(out.begin(), out.end(), fit.element) == out.end()) out.push_back(fit.element);
    }
  }
  return out;
}

/// What does not fit narrow formats comes first.
int bits_of(const TensorFindings& tensor) {
  const auto narrowest = tensor.narrowest;
  const NamedFormat* format = narrowest ? find_format(narrowest->format) : nullptr;
  return format ? 2 * format->format.width + (narrowest->needs_scale ? 1 : 0) : 1000;
}

}  // namespace

std::string formats_html(const Analysis& analysis) {
  std::vector<const TensorFindings*> tensors;
  for (const TensorFindings& tensor : analysis.tensors()) {
    if (!tensor.fits.empty()) tensors.push_back(&tensor);
  }
  if (tensors.empty()) return "";
  std::vector<std::pair<int, const TensorFindings*>> ranked;
  for (const TensorFindings* tensor : tensors) ranked.emplace_back(bits_of(*tensor), tensor);
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  const std::size_t left_out = ranked.size() - std::min(ranked.size(), kMostTensors);
  ranked.resize(ranked.size() - left_out);
  const std::vector<Column> columns = columns_of(analysis);
  const std::vector<std::string_view> elements = elements_of(tensors);
  std::vector<std::string> headings = {"tensor"};
  if (analysis.logs.size() > 1) headings.push_back("log");
  headings.push_back("narrowest that serves");
  for (const Column& column : columns) {
    headings.push_back(answer::people_say(column.format) +
                       (column.saturating ? " saturating" : ""));
  }
  for (const auto element : elements) headings.push_back(block_heading(element));
  std::vector<Row> rows;
  for (const auto& [bits, tensor] : ranked) {
    Row row{{{breakable_name(tensor->name)}}};
    if (analysis.logs.size() > 1) row.cells.push_back({answer::html_name(tensor->log)});
    row.cells.push_back(narrowest_cell(*tensor));
    for (const Column& column : columns) {
      row.cells.push_back(fit_cell(*tensor, find(*tensor, column)));
    }
    for (const auto element : elements) row.cells.push_back(block_cell(*tensor, element));
    rows.push_back(std::move(row));
  }
  return data_table("Formats, tensor by tensor", headings, rows, left_out);
}

}  // namespace halfscope::reports::page
