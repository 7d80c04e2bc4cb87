// SPDX-License-Identifier: Apache-2.0
#include "reports/answer/quantised.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "reports/answer/findings.hpp"
#include "reports/answer/series.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::reports::answer {

using analyzers::formats::AtStep;
using analyzers::formats::kClipLimit;
using analyzers::formats::kKeepLimit;
using analyzers::formats::kUnderflowLimits;
using analyzers::formats::LayerLoss;
using analyzers::formats::QuantisedLog;
using analyzers::formats::QuantisedTensor;
using analyzers::formats::QuantisedUnderflow;
using analyzers::formats::RecipeLoss;
using analyzers::frames::Recipe;

namespace {

/// For example "0.5 %" or "2 %".
std::string limit_text(std::size_t limit) {
  return fmt::format("{:g} %", 100 * kUnderflowLimits[limit]);
}

/// Returns "5.89 %", or "below 0.0001 %" if the log printed 0.0000. A share below a limit has more
/// digits if it would otherwise read as the limit.
std::string printed_share(const AtStep& share) {
  if (share.low <= 0) return "below 0.0001 %";
  const std::string text = share_text(share.middle());
  const bool seems_at_limit = std::ranges::any_of(kUnderflowLimits, [&](double limit) {
    return share.high < limit && text == share_text(limit);
  });
  return seems_at_limit ? fmt::format("{:.4f} %", 100 * share.middle()) : text;
}

/// Returns the formats of the judged recipes: "FP8", "FP8 and NVFP4".
std::string format_text(const QuantisedLog& log) {
  std::set<std::string_view> names;
  for (const RecipeLoss& recipe : log.recipes) {
    const bool sure_fp8 = recipe.recipe == Recipe::fp8_delayed_scaling;
    if (recipe.judged) names.insert(sure_fp8 ? "FP8" : people_say(recipe.recipe));
  }
  return fmt::format("{}", fmt::join(names, " and "));
}

std::string_view plural_of(std::string_view tensor) {
  if (tensor == "activation") return "activations";
  if (tensor == "weight") return "weights";
  if (tensor == "output") return "outputs";
  return tensor == "gradient" || tensor == "dgrad" || tensor == "wgrad" ? "gradients" : "values";
}

/// Returns the kinds of tensors that lose too much: "gradients or weights".
std::string kinds_text(const QuantisedLog& log) {
  std::set<std::string_view> kinds;
  for (const LayerLoss& layer : log.layers) {
    for (const std::size_t tensor : layer.lasting) {
      kinds.insert(plural_of(log.tensors[tensor].tensor));
    }
  }
  return fmt::format("{}", fmt::join(kinds, " or "));
}

/// For example "5.89 % of `x` at step 7".
std::string most_text(const QuantisedTensor& tensor, const AtStep& share) {
  return fmt::format("{} of {} at step {}", printed_share(share), code(tensor.name()), share.step);
}

/// Returns the largest loss among these layers. Precondition: `layers` is not empty.
std::string most_text(const QuantisedLog& log, const std::vector<const LayerLoss*>& layers) {
  const QuantisedTensor& tensor = log.tensors[log.worst_of(layers)->worst];
  return most_text(tensor, tensor.underflow->largest);
}

/// Returns ", 2 % or more since step 450" if the worst layer's loss began late and lasts; else
/// empty.
std::string since_text(const QuantisedLog& log, const std::vector<const LayerLoss*>& layers) {
  const QuantisedUnderflow& worst = log.underflow_of(*log.worst_of(layers));
  const auto& since = worst.since[kKeepLimit];
  if (!since || worst.at_end[kKeepLimit] == worst.steps) return "";
  return fmt::format(", {} or more since step {}", limit_text(kKeepLimit), *since);
}

bool has_fine_scales(const QuantisedLog& log) {
  return std::ranges::any_of(log.recipes, [](const RecipeLoss& recipe) {
    return recipe.judged && (recipe.recipe == Recipe::mxfp8 || recipe.recipe == Recipe::nvfp4 ||
                             recipe.recipe == Recipe::fp8_block_scaling);
  });
}

Finding no_shares() {
  return {Severity::note,
          "This log has statistics of quantised tensors but no " + code("underflows%") +
              ", so what became zero is unknown.",
          "Add " + code("underflows%") + " to the stats of LogFp8TensorStats."};
}

Finding nothing_lost(const QuantisedLog& log) {
  std::vector<const LayerLoss*> all;
  for (const LayerLoss& layer : log.layers) all.push_back(&layer);
  return {Severity::note,
          fmt::format("Of {}, none loses {} or more of a tensor to underflow in {} for more than a "
                      "few steps: the most is {}.",
                      plural(log.layers.size(), "layer"), limit_text(kKeepLimit), format_text(log),
                      most_text(log, all)),
          "No layer needs BF16 because of underflow."};
}

/// Returns how many layers clip, of all layers with judged tensors.
std::string clipping_text(const QuantisedLog& log) {
  std::set<std::string_view> layers;
  for (const QuantisedTensor& tensor : log.tensors) {
    if (tensor.judged) layers.insert(tensor.layer);
  }
  return fmt::format("{} of {}", count_text(log.clipping_layers()), plural(layers.size(), "layer"));
}

std::string limits_sentence(const QuantisedLog& log) {
  std::string text;
  for (std::size_t i = 0; i < kUnderflowLimits.size(); ++i) {
    const std::size_t layers = log.lasting_at(i);
    text += fmt::format("{}{} {} {}", i == 0 ? "" : ", ", count_text(layers),
                        layers == 1 ? "loses" : "lose", limit_text(i));
    if (i > 0) continue;
    text += fmt::format(" or more of a tensor for more than a few of {}",
                        plural(log.steps, "recorded step"));
  }
  return fmt::format("Of {}, {}. Shares are of all elements of the tensor.",
                     plural(log.layers.size(), "layer"), text);
}

std::string brief_sentence(const QuantisedLog& log) {
  std::vector<const LayerLoss*> brief = log.briefly();
  std::erase_if(brief, [&](const LayerLoss* layer) {
    return log.underflow_of(*layer).steps_above[kKeepLimit] == 0;
  });
  if (brief.empty()) return "";
  return fmt::format(
      "{} {} {} at a few steps only, the most with {}. This alone is no reason for "
      "BF16.",
      plural(brief.size(), "layer"), brief.size() == 1 ? "reaches" : "reach",
      limit_text(kKeepLimit), most_text(log, brief));
}

/// Returns a sentence on losses at the first steps, which do not count. Empty if there are none.
std::string first_sentence(const QuantisedLog& log) {
  const QuantisedTensor* most = nullptr;
  for (const QuantisedTensor& tensor : log.tensors) {
    if (!tensor.judged || !tensor.underflow || !tensor.underflow->at_first) continue;
    const double before = most == nullptr ? 0 : most->underflow->at_first->high;
    if (tensor.underflow->at_first->high > before) most = &tensor;
  }
  if (most == nullptr) return "";
  const auto layers = std::ranges::count_if(log.layers, &LayerLoss::at_first);
  return fmt::format(
      "The first recorded steps do not count if lower ones follow, since delayed scaling has no "
      "history there: {} {} {} or more, the most {}.",
      plural(static_cast<std::uint64_t>(layers), "layer"), layers == 1 ? "loses" : "lose",
      limit_text(kKeepLimit), most_text(*most, *most->underflow->at_first));
}

std::string assumed_sentence(const QuantisedLog& log) {
  for (const RecipeLoss& recipe : log.recipes) {
    const bool named = recipe.recipe == Recipe::mxfp8 ||
                       recipe.recipe == Recipe::fp8_block_scaling ||
                       recipe.recipe == Recipe::fp8_current_scaling;
    if (!recipe.judged || !named) continue;
    return fmt::format(
        "The log does not say if the run trained with {} or only measured it. It is "
        "assumed that it did.",
        people_say(recipe.recipe));
  }
  return "";
}

Cell at_cell(const AtStep& share) {
  return {printed_share(share), share.middle(), fmt::format("step {}", share.step),
          share.high <= 0};
}

Cell number_cell(const std::optional<AtStep>& value) {
  if (!value) return {"", -1, "", true};
  return {value->low <= 0 ? "below 0.0001" : fmt::format("{:.4g}", value->middle()),
          value->middle(), fmt::format("step {}", value->step)};
}

std::string variant_text(const QuantisedTensor& tensor) {
  return fmt::format("{}{}", people_say(tensor.recipe), tensor.columnwise ? ", columnwise" : "");
}

Row row_of(const QuantisedTensor& tensor) {
  const QuantisedUnderflow& u = *tensor.underflow;
  const auto since = u.since[kKeepLimit];
  return {
      {{code(tensor.name())},
       {variant_text(tensor)},
       at_cell(u.largest),
       {std::to_string(u.largest.step), static_cast<double>(u.largest.step)},
       at_cell({u.last.step, u.median_low, u.median_high}),
       at_cell(u.last),
       {fmt::format("{} of {}", count_text(u.steps_above[kKeepLimit]), count_text(u.steps)),
        static_cast<double>(u.steps_above[kKeepLimit]), "", u.steps_above[kKeepLimit] == 0},
       since ? Cell{std::to_string(*since), static_cast<double>(*since)} : Cell{"", -1, "", true},
       number_cell(tensor.scale_inv_least),
       number_cell(tensor.scale_inv_most),
       number_cell(tensor.mse_largest)}};
}

Table tensors_table(const QuantisedLog& log) {
  Table table{Evidence::quantised, "Underflow of quantised tensors, worst first"};
  table.headings = {"tensor",
                    "format",
                    "most lost",
                    "at step",
                    "median",
                    "last",
                    "steps at " + limit_text(kKeepLimit),
                    "since",
                    "least scale_inv",
                    "most scale_inv",
                    "largest mse"};
  table.narrow = 8;
  std::vector<const QuantisedTensor*> order;
  for (const QuantisedTensor& tensor : log.tensors) {
    if (tensor.underflow) order.push_back(&tensor);
  }
  std::ranges::stable_sort(order, [](const QuantisedTensor* a, const QuantisedTensor* b) {
    if (a->judged != b->judged) return a->judged;
    return lost_more(*a, *b);
  });
  table.add_rows(order, [](const QuantisedTensor* tensor) { return row_of(*tensor); });
  return table;
}

/// Returns one row for each recipe, with the run's marked. Empty if the log has only one.
Table recipes_table(const QuantisedLog& log) {
  Table table{Evidence::quantised, "The same tensors in other formats"};
  if (log.recipes.size() < 2) return table;
  table.headings = {"format", "layers", "layers at " + limit_text(kKeepLimit), "most lost", "of"};
  for (const RecipeLoss& recipe : log.recipes) {
    const QuantisedTensor& worst = log.tensors[recipe.worst];
    table.rows.push_back({{{std::string(people_say(recipe.recipe))},
                           {count_text(recipe.layers), static_cast<double>(recipe.layers)},
                           {count_text(recipe.to_keep), static_cast<double>(recipe.to_keep)},
                           at_cell(worst.underflow->largest),
                           {code(worst.name())}},
                          recipe.judged});
  }
  return table;
}

Finding main_finding(const QuantisedLog& log) {
  if (log.layers.empty()) return no_shares();
  const std::vector<const LayerLoss*> keep = log.to_keep();
  if (keep.empty()) return nothing_lost(log);
  const bool serious =
      std::ranges::any_of(keep, [](const auto* l) { return l->limits == kUnderflowLimits.size(); });
  Finding finding{serious ? Severity::serious : Severity::warning, "", ""};
  finding.title = fmt::format("{} of {} {} {} or more of {} {} to underflow in {}, the most {}{}.",
                              count_text(keep.size()), plural(log.layers.size(), "layer"),
                              keep.size() == 1 ? "loses" : "lose", limit_text(kKeepLimit),
                              keep.size() == 1 ? "its" : "their", kinds_text(log), format_text(log),
                              most_text(log, keep), since_text(log, keep));
  constexpr std::size_t kModel = 8;  // below this number of layers, "most of them" means little
  finding.action = log.layers.size() >= kModel && 2 * keep.size() > log.layers.size()
                       ? fmt::format("That is most of them: train in BF16{}.",
                                     has_fine_scales(log) ? "" : ", or with finer scales (MXFP8)")
                   : keep.size() == 1 ? "Keep this layer in BF16."
                                      : "Keep these layers in BF16.";
  return finding;
}

std::optional<Finding> clipped_finding(const QuantisedLog& log) {
  const QuantisedTensor* most = log.most_clipped();
  if (most == nullptr) return std::nullopt;
  return Finding{
      Severity::warning,
      fmt::format("{} {} {} or more of a tensor to the largest value of its format, the most {} "
                  "of {} at step {}.",
                  clipping_text(log), log.clipping_layers() == 1 ? "clips" : "clip",
                  limit_text(kClipLimit), printed_share(*most->overflow), code(most->name()),
                  most->overflow->step),
      "Use current scaling, or a larger margin of delayed scaling."};
}

/// Returns the main finding about a log, then the one on clipped elements if there is one.
std::vector<Finding> findings_of(const QuantisedLog& log) {
  std::vector<Finding> all = {main_finding(log)};
  if (auto clipped = clipped_finding(log)) all.push_back(std::move(*clipped));
  return all;
}

Section section_of(const QuantisedLog& log, const std::string& prefix) {
  Section section;
  section.title = prefix + (prefix.empty() ? "Underflow in FP8" : "underflow in FP8");
  for (const Finding& finding : findings_of(log)) section.sentences.push_back(text_of(finding));
  if (log.layers.empty()) return section;
  for (const std::string& sentence :
       {limits_sentence(log), brief_sentence(log), first_sentence(log), assumed_sentence(log)}) {
    if (!sentence.empty()) section.sentences.push_back(sentence);
  }
  section.pastes = keep_pastes(log);
  section.add(tensors_table(log));
  section.add(recipes_table(log));
  return section;
}

}  // namespace

std::string_view people_say(Recipe recipe) {
  switch (recipe) {
    case Recipe::own: break;
    case Recipe::fp8_delayed_scaling: return "FP8 delayed scaling";
    case Recipe::fp8_current_scaling: return "FP8 current scaling";
    case Recipe::fp8_block_scaling: return "FP8 block scaling";
    case Recipe::mxfp8: return "MXFP8";
    case Recipe::nvfp4: return "NVFP4";
  }
  return "FP8";
}

std::vector<Section> quantised_sections(const analyzers::Findings& found) {
  std::vector<Section> sections;
  for (const QuantisedLog& log : found.quantised) {
    sections.push_back(section_of(log, log_prefix(found.analysis, log.log)));
  }
  return sections;
}

std::string quantised_digest(const analyzers::Findings& found) {
  std::size_t keep = 0, layers = 0;
  for (const QuantisedLog& log : found.quantised) {
    keep += log.to_keep().size();
    layers += log.layers.size();
  }
  return fmt::format("{} of {} at {} or more", count_text(keep), plural(layers, "layer"),
                     limit_text(kKeepLimit));
}

std::string map_title(const QuantisedTensor& tensor) {
  const std::string_view what = tensor.tensor.empty() ? "tensors" : plural_of(tensor.tensor);
  const bool exact = what == "gradients" && tensor.tensor != "gradient";
  return fmt::format(
      "{}{}{}{}", what, exact ? fmt::format(" ({})", tensor.tensor) : "",
      tensor.recipe == Recipe::own ? "" : fmt::format(" in {}", people_say(tensor.recipe)),
      tensor.columnwise ? ", columnwise" : "");
}

void find_quantised_losses(const analyzers::Study& study, std::vector<Finding>& to) {
  for (const QuantisedLog& log : study.quantised) {
    for (Finding& finding : findings_of(log)) {
      finding.title = log_prefix(study.analysis, log.log) + finding.title;
      to.push_back(std::move(finding));
    }
  }
}

}  // namespace halfscope::reports::answer
