// SPDX-License-Identifier: Apache-2.0
#include "reports/answer/formats_words.hpp"

#include <fmt/format.h>

#include <cmath>

#include "reports/answer/marks.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::reports::answer {

using analyzers::formats::AmaxHistory;
using analyzers::formats::HistoryChoice;
using analyzers::formats::MxGradients;

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

std::string decibels(double db) { return std::isinf(db) ? "exact" : fmt::format("{:.1f} dB", db); }

}  // namespace

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
                     code("Float8CurrentScaling")),
         Evidence::formats});
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
                                 count_text(usual.clipped_steps)),
                     Evidence::formats});
  }
  return found;
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
  const std::string medians = fmt::format("the medians are {} in E4M3 and {} in E5M2",
                                          decibels(found.e4m3_db), decibels(found.e5m2_db));
  if (found.e5m2_better == 0) {
    return fmt::format("In MXFP8 blocks E4M3 keeps more than E5M2 in {} of {}, E5M2 in none: {}.",
                       count_text(found.e4m3_better), gradients, medians);
  }
  return fmt::format(
      "In MXFP8 blocks E4M3 keeps more than E5M2 in {} of {}, E5M2 in {}: {}. E5M2 gains most in "
      "{}, {}.",
      count_text(found.e4m3_better), gradients, count_text(found.e5m2_better), medians,
      code(found.most_for_e5m2), decibels(found.gained_db));
}

}  // namespace halfscope::reports::answer
