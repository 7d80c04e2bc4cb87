// SPDX-License-Identifier: Apache-2.0
#include "reports/answer/formats.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "analyzers/formats/format_fit.hpp"
#include "reports/answer/findings.hpp"
#include "reports/answer/series.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::reports::answer {

using analyzers::formats::AmaxHistory;
using analyzers::formats::HistoryChoice;
using analyzers::formats::MxGradients;
using analyzers::underflow::Analysis;
using analyzers::underflow::TensorFindings;

using analyzers::Study;

namespace {

/// For example "amax_history_len=16".
std::string setting_of(const HistoryChoice& choice) {
  return code(fmt::format("amax_history_len={}", choice.length));
}

std::string clipped_text(const HistoryChoice& choice, const AmaxHistory& history) {
  return fmt::format("{} of {}", count_text(choice.clipped_steps), plural(history.steps, "cast"));
}

std::string history_lost_text(const HistoryChoice& choice, const AmaxHistory& history) {
  return share_text(choice.lost(), history.values.high);
}

Row row_of(const HistoryChoice& choice, const AmaxHistory& history, const std::string& setting) {
  const auto share_cell = [&](const Interval& count) {
    return Cell{share_text(count, history.values.high), static_cast<double>(count.high), "",
                count.high == 0};
  };
  return {{{setting, static_cast<double>(choice.length)},
           share_cell(choice.clipped),
           share_cell(choice.flushed),
           {count_text(choice.clipped_steps), static_cast<double>(choice.clipped_steps), "",
            choice.clipped_steps == 0},
           {choice.most_clipped.empty() ? "" : code(choice.most_clipped)}}};
}

/// Returns findings on settings that should differ from the defaults.
std::vector<Finding> delayed_findings(const AmaxHistory& history) {
  std::vector<Finding> found;
  const HistoryChoice& usual = history.at_default();
  if (history.clips()) {
    const HistoryChoice& far = history.with_margin;
    found.push_back(
        {Severity::note,
         fmt::format("FP8 with delayed scaling would clip the largest magnitude in {} at the "
                     "default {}, in {} of them by more than a factor of 2, most often that of {}: "
                     "magnitudes grow faster than the scales follow.",
                     clipped_text(usual, history), setting_of(usual), count_text(far.clipped_steps),
                     code(far.most_clipped)),
         fmt::format("No shorter history clips less. {} clips none: it takes each scale from the "
                     "tensor itself.",
                     code("Float8CurrentScaling"))});
  }
  if (const HistoryChoice* const better = history.better()) {
    found.push_back({Severity::note,
                     fmt::format("FP8 with delayed scaling loses least at {}: {} of the values are "
                                 "clipped or become zero there, and {} at the default {}, which "
                                 "holds on to large magnitudes of steps long past.",
                                 setting_of(*better), history_lost_text(*better, history),
                                 history_lost_text(usual, history), setting_of(usual)),
                     fmt::format("Set {}. It clips the largest magnitude in {}, the default in {}.",
                                 setting_of(*better), clipped_text(*better, history),
                                 count_text(usual.clipped_steps))});
  }
  return found;
}

}  // namespace

std::string people_say(std::string_view format) {
  if (format == "binary16") return "FP16";
  if (format == "binary32") return "FP32";
  if (format == "binary64") return "FP64";
  if (format == "bfloat16") return "BF16";
  std::string out(format);
  std::transform(out.begin(), out.end(), out.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
  return out;
}

std::string format_name(const Analysis& analysis) { return people_say(analysis.target.name); }

std::string people_say(Dtype dtype) {
  switch (dtype) {
    case Dtype::f16: return "FP16";
    case Dtype::bf16: return "BF16";
    case Dtype::f32: return "FP32";
    case Dtype::f64: return "FP64";
    case Dtype::f8_e4m3: return "FP8 (E4M3)";
    case Dtype::f8_e5m2: return "FP8 (E5M2)";
  }
  return "";
}

const analyzers::underflow::FormatFit* find_fit(const TensorFindings& tensor,
                                                std::string_view format, bool saturating) {
  const auto at = std::ranges::find_if(tensor.whole->fits, [&](const auto& fit) {
    return fit.format == format && fit.saturating == saturating;
  });
  return at == tensor.whole->fits.end() ? nullptr : &*at;
}

std::string mx_name(const block::Recipe& recipe) {
  return fmt::format("MXFP{} {}", block::width_of(recipe.element),
                     people_say(block::name_of(recipe.element)));
}

std::string computed_text(const analyzers::underflow::TensorFindings& t) {
  const Dtype dtype = t.suspected_fp16
                          ? Dtype::f16
                          : t.computed_dtype.value_or(t.source_dtype.value_or(Dtype::f32));
  return people_say(dtype);
}

std::string nonfinite_names(std::uint64_t nan, std::uint64_t inf) {
  return inf == 0 ? "NaN" : nan == 0 ? "infinities" : "NaN and infinities";
}

FitSums fit_sums(const Analysis& analysis) {
  FitSums out;
  for (const TensorFindings& tensor : analysis.tensors()) {
    if (tensor.whole->fits.empty() || tensor.counts.finite_nonzero.high == 0) continue;
    ++out.tensors;
    if (holds_nonfinite(tensor)) {
      ++out.nonfinite;
      continue;
    }
    const auto narrowest = tensor.whole->narrowest;
    const NamedFormat* format = narrowest ? find_format(narrowest->format) : nullptr;
    const int width = format ? format->format.width : 64;
    if (width <= 8) ++out.eight_bits;
    if (width <= 8 && !narrowest->needs_scale) ++out.eight_bits_as_is;
    if (width > 16) ++out.wider_than_16;
  }
  return out;
}

OwnScales own_scales(const Tensors& tensors, std::string_view format, Subnormals subnormals) {
  OwnScales out;
  for (const TensorFindings* t : tensors) {
    const analyzers::underflow::FormatFit* const fit = find_fit(*t, format);
    if (fit == nullptr || !fit->best_log2) continue;
    ++out.tensors;
    out.fit += fit->fits_at_best ? 1 : 0;
    out.lowest = std::min(out.lowest.value_or(*fit->best_log2), *fit->best_log2);
    out.highest = std::max(out.highest.value_or(*fit->best_log2), *fit->best_log2);
    out.zero += t->classes_at(*fit, subnormals, *fit->best_log2).flushed_to_zero;
    out.zero_at_1 += t->classes_at(*fit, subnormals, 0).flushed_to_zero;
    out.values += t->counts.finite_nonzero.high;
  }
  return out;
}

std::optional<EachScaled> each_scaled(const Analysis& analysis) {
  const auto& target = analysis.target;
  if (target.format.width != 8) return std::nullopt;
  const Tensors tensors = all_tensors(analysis);
  EachScaled out = {own_scales(tensors, target.name, target.subnormals),
                    own_scales(counted_of(tensors), target.name, target.subnormals)};
  return out.all.tensors == 0 ? std::nullopt : std::optional(out);
}

std::vector<std::string> delayed_sentences(const AmaxHistory& history) {
  std::vector<std::string> out;
  for (const Finding& finding : delayed_findings(history)) out.push_back(text_of(finding));
  if (!out.empty()) return out;
  const HistoryChoice& usual = history.at_default();
  return {fmt::format(
      "FP8 with delayed scaling can keep the default {}: it clips the largest magnitude in {} ({} "
      "with {}), and {} of the values become zero. No other length loses much less.",
      setting_of(usual), clipped_text(usual, history),
      count_text(history.with_margin.clipped_steps), code("margin=1"),
      share_text(usual.flushed, history.values.high))};
}

Table delayed_table(const AmaxHistory& history) {
  Table table{
      Evidence::formats, "FP8 with delayed scaling, by the length of the history",
      "Transformer Engine's rule, replayed over the recorded largest magnitudes: activations and "
      "weights in E4M3, gradients in E5M2, one cast a tensor and step after its first. A length "
      "beyond the log's gives what the default gives."};
  table.headings = {"amax_history_len", "clipped", "become zero", "casts that clip the largest",
                    "most often"};
  const HistoryChoice* const better = history.better();
  for (const HistoryChoice& choice : history.choices) {
    table.rows.push_back(row_of(choice, history, std::to_string(choice.length)));
    table.rows.back().marked = &choice == (better != nullptr ? better : &history.at_default());
  }
  const HistoryChoice& with_margin = history.with_margin;
  table.rows.push_back(
      row_of(with_margin, history, fmt::format("{}, margin=1", with_margin.length)));
  return table;
}

std::string mx_gradients_text(const MxGradients& found) {
  const std::string gradients = plural(found.tensors, "gradient");
  const std::string medians =
      fmt::format("the medians are {} in E4M3 and {} in E5M2", decibels_text(found.e4m3_db),
                  decibels_text(found.e5m2_db));
  if (found.e5m2_better == 0) {
    return fmt::format("In MXFP8 blocks E4M3 keeps more than E5M2 in {} of {}, E5M2 in none: {}.",
                       count_text(found.e4m3_better), gradients, medians);
  }
  return fmt::format(
      "In MXFP8 blocks E4M3 keeps more than E5M2 in {} of {}, E5M2 in {}: {}. E5M2 gains most in "
      "{}, {}.",
      count_text(found.e4m3_better), gradients, count_text(found.e5m2_better), medians,
      code(found.most_for_e5m2), decibels_text(found.gained_db));
}

void find_wide_tensors(const analyzers::Study& study, std::vector<Finding>& to) {
  const FitSums sums = fit_sums(study.analysis);
  if (sums.wider_than_16 == 0) return;
  to.push_back({Severity::warning,
                fmt::format("{} of {} fit no 16-bit format, whatever the scale.",
                            count_text(sums.wider_than_16), plural(sums.tensors, "tensor")),
                "Keep them in FP32."});
}

void find_delayed_scaling(const analyzers::Study& study, std::vector<Finding>& to) {
  for (const AmaxHistory& history : study.amax_histories) {
    for (Finding& finding : delayed_findings(history)) {
      finding.title = log_prefix(study.analysis, history.log) + finding.title;
      to.push_back(std::move(finding));
    }
  }
}

/// MXFP8's recipe uses E4M3 for all tensors, so only a preference for E5M2 needs an action.
void find_mx_gradients(const analyzers::Study& study, std::vector<Finding>& to) {
  const auto& mx = study.mx_gradients;
  if (!mx || mx->e5m2_better <= mx->e4m3_better) return;
  to.push_back({Severity::note, mx_gradients_text(*mx),
                fmt::format("Set {}, which has E5M2 for gradients.",
                            code("MXFP8BlockScaling(fp8_format=Format.HYBRID)"))});
}

}  // namespace halfscope::reports::answer
