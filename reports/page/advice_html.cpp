// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "reports/answer/cure_words.hpp"
#include "reports/answer/no_scale.hpp"
#include "reports/answer/skip_words.hpp"
#include "reports/answer/text.hpp"
#include "reports/page/data_table.hpp"
#include "reports/page/evidence.hpp"

namespace halfscope::reports::page {

using analyzers::recommend::Recommendation;

namespace {

/// What writes all of a recommendation.
constexpr std::string_view kAll = "recommend LOG --json FILE";

double share(const Interval& count, const Interval& of) {
  return of.high == 0 ? 0 : static_cast<double>(count.high) / static_cast<double>(of.high);
}

std::string share_html(const Interval& count, const Interval& of) {
  return answer::html_escape(
      of.exact() ? answer::share_text(count, of.low)
                 : answer::share_range_text(analyzers::underflow::Share{count, of}.low(),
                                            analyzers::underflow::Share{count, of}.high()));
}

Cell share_cell(const Interval& count, const Interval& of) {
  return {share_html(count, of), share(count, of),
          answer::count_text(count) + " of " + answer::count_text(of), count.high == 0};
}

Cell bounds_cell(const Bounds& bounds) {
  return {answer::html_escape(answer::share_range_text(bounds.low, bounds.high)), bounds.high, "",
          bounds.high == 0};
}

std::string headed(const char* title, const std::string& note, const std::string& body = "") {
  return fmt::format("<h3>{}</h3>\n<p class=\"note\">{}</p>\n{}", title, note, body);
}

std::string scales_text(const analyzers::recommend::LayerScale& layer) {
  if (layer.lowest_log2 && layer.highest_log2 && *layer.lowest_log2 > *layer.highest_log2) {
    return fmt::format("none: needs 2^{}, allows 2^{}", *layer.lowest_log2, *layer.highest_log2);
  }
  if (layer.lowest_log2 && layer.highest_log2) {
    return fmt::format("2^{} to 2^{}", *layer.lowest_log2, *layer.highest_log2);
  }
  if (layer.highest_log2) return fmt::format("up to 2^{}", *layer.highest_log2);
  return layer.lowest_log2 ? fmt::format("from 2^{}", *layer.lowest_log2) : "none";
}

std::string per_layer_html(const Recommendation& advice) {
  if (advice.per_layer.empty()) return "";
  std::vector<std::string> headings = {"layer", "scales that serve it", "to zero at the one scale",
                                       "to zero at its own"};
  bool als = false;
  for (const auto& layer : advice.per_layer) als = als || layer.als.has_value();
  if (als) headings.push_back("adaptive factor");
  std::vector<Row> rows;
  for (const auto& layer : advice.per_layer) {
    Row row{{{breakable_name(layer.layer)},
             {scales_text(layer), static_cast<double>(layer.lowest_log2.value_or(-1000))},
             share_cell(layer.flushed_at_static, layer.of),
             share_cell(layer.flushed_at_own, layer.of)}};
    if (als) {
      row.cells.push_back(layer.als ? Cell{fmt::format("{:.4g}", *layer.als), *layer.als}
                                    : Cell{"", -1, "", true});
    }
    rows.push_back(std::move(row));
  }
  return headed("A scale for each layer", "No single scale serves every tensor.",
                data_table("A scale for each layer", headings, rows, 0, kAll));
}

std::string keep_html(const Recommendation& advice) {
  if (advice.keep_in_fp32.empty()) return "";
  std::vector<Row> rows;
  for (const auto& keep : advice.keep_in_fp32) {
    rows.push_back(
        {{{breakable_name(keep.name)},
          {answer::html_name(answer::name_of(keep.kind))},
          {answer::html_name(answer::why_text(keep, advice))},
          keep.binades_gained > 0
              ? Cell{fmt::format(
                         "+{}",
                         answer::plural(static_cast<std::uint64_t>(keep.binades_gained), "binade")),
                     static_cast<double>(keep.binades_gained),
                     keep.highest_log2_without
                         ? "The rest would allow " + answer::power_text(*keep.highest_log2_without)
                         : ""}
              : Cell{"", 0, "", true}}});
  }
  return headed(
      "Keep in FP32", "Tensors and operations that do better there.",
      data_table("Keep in FP32", {"what", "kind", "why", "the scale can rise by"}, rows, 0, kAll));
}

std::string dynamic_html(const Recommendation& advice) {
  if (advice.dynamic.empty()) return "";
  const analyzers::recommend::DynamicAdvice& d = advice.dynamic.front();
  const std::string text = answer::settings_text(d) + ". " + answer::replayed_text(d) + ". ";
  return headed("Dynamic loss scaling", answer::html_name(text + answer::why_settings_text(d)));
}

std::string ranks_html(const Recommendation& advice) {
  if (!advice.ranks) return "";
  const analyzers::recommend::RankSum& r = *advice.ranks;
  std::string text = fmt::format(
      "{}: dividing before the sum turns {} of the gradient values to zero, {} without the "
      "division. Dividing after leaves {:.1f} binades below overflow for the largest possible sum",
      r.from_ranks ? fmt::format("From the tables of {}",
                                 answer::plural(static_cast<std::uint64_t>(r.ranks), "rank"))
                   : fmt::format("If {} summed in FP16",
                                 answer::plural(static_cast<std::uint64_t>(r.ranks), "rank")),
      share_html(r.flushed_before, r.of), share_html(r.flushed_alone, r.of), r.headroom_after);
  text += r.highest_after_log2 ? fmt::format("; no sum can overflow up to a scale of {}.",
                                             answer::power_text(*r.highest_after_log2))
                               : std::string(".");
  return headed("Sums over data-parallel ranks", text);
}

std::string footprint_html(const Recommendation& advice) {
  if (!advice.footprint) return "";
  const analyzers::recommend::Footprint& f = *advice.footprint;
  std::string out;
  if (f.bytes_fp32 > 0) {
    out = headed(
        "Memory",
        fmt::format("{} weights and {} activations of a {}: {} in FP32, {} in FP16, {} "
                    "in FP16 with FP32 master weights.",
                    answer::count_text(f.weights), answer::count_text(f.activations),
                    f.microbatches > 1 ? "microbatch" : "step", answer::bytes_text(f.bytes_fp32),
                    answer::bytes_text(f.bytes_fp16), answer::bytes_text(f.bytes_mixed)));
  }
  if (f.not_multiples_of_8.empty()) return out;
  std::vector<Row> rows;
  for (const auto& odd : f.not_multiples_of_8) {
    rows.push_back({{{breakable_name(odd.name)},
                     {answer::extents_text(odd.shape)},
                     {answer::html_name(answer::why_text(odd))}}});
  }
  return out + headed("Dimensions that are no multiple of 8",
                      "Tensor Cores may fall back to slower kernels there.",
                      data_table("Dimensions that are no multiple of 8",
                                 {"tensor", "shape", "what is odd"}, rows));
}

}  // namespace

std::string scale_evidence_html(const Recommendation& advice) {
  if (advice.scales.empty()) return "";
  std::vector<Row> rows;
  std::uint64_t steps = 0;
  const std::string title =
      advice.no_step_held() ? "Scales around the upper bound" : "Scales around the recommended one";
  const std::string word = fmt::format(" <small>{}</small>", answer::advised_word(advice));
  for (const analyzers::recommend::ScaleEvidence& scale : advice.scales) {
    const bool chosen = scale.log2_scale == advice.static_log2;
    steps = std::max(steps, scale.skip.steps);
    rows.push_back(
        {{{answer::power_text(scale.log2_scale) + (chosen ? word : ""),
           static_cast<double>(scale.log2_scale)},
          share_cell(scale.flushed, scale.of),
          bounds_cell(scale.lost.l1),
          bounds_cell(scale.lost.l2),
          {answer::count_text(scale.overflow_steps), static_cast<double>(scale.overflow_steps.high),
           "", scale.overflow_steps.high == 0},
          {answer::html_escape(answer::chance_text(scale.skip)), scale.skip.high,
           answer::overflowing_text(scale.skip)}},
         chosen});
  }
  return headed(
      title.c_str(),
      fmt::format("Chance of a skipped step from {}, by counting alone: it assumes nothing of the "
                  "magnitudes (95 %).",
                  answer::plural(steps, "recorded step")),
      data_table(title,
                 {"loss scale", "to zero", "of their magnitude", "of their squares",
                  "steps that overflow", "chance of a skipped step"},
                 rows));
}

std::string advice_html(const Recommendation& advice) {
  return per_layer_html(advice) + keep_html(advice) + dynamic_html(advice) + ranks_html(advice) +
         footprint_html(advice);
}

}  // namespace halfscope::reports::page
