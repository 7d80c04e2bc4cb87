// SPDX-License-Identifier: Apache-2.0
#include "reports/answer/recipes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "reports/answer/findings.hpp"
#include "reports/answer/formats.hpp"
#include "reports/answer/quantised.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::reports::answer {

using analyzers::underflow::Analysis;
using analyzers::underflow::Product;
using analyzers::underflow::RecipeFit;
using analyzers::underflow::TensorFindings;

namespace {

constexpr std::size_t kNamed = 5;

std::string_view name_of(Product product) {
  switch (product) {
    case Product::forward: return "forward";
    case Product::data_gradient: return "data gradient";
    case Product::weight_gradient: return "weight gradient";
    case Product::none: break;
  }
  return "the gradient itself";
}

/// Operands of one requested name, and tensors that its recipes do not allow.
struct Group {
  std::string_view asked;
  std::vector<Operand> operands = {};  ///< much worse than normal first, then by distance below
  std::vector<std::string> left_out = {};
  std::uint64_t in_nan = 0, most_in_nan = 0;  ///< in all tensors, and in one
  std::string with_most_in_nan = {};
};

std::vector<Group> groups(const Analysis& analysis) {
  std::vector<Group> out;
  for (const TensorFindings& tensor : analysis.tensors()) {
    for (const RecipeFit& fit : tensor.whole->recipe_fits) {
      auto group = std::ranges::find(out, fit.asked, &Group::asked);
      if (group == out.end()) {
        group = out.emplace(out.end());
        group->asked = fit.asked;
      }
      if (fit.noise) group->operands.push_back({&tensor, &fit});
      group->in_nan += fit.in_nan_blocks;
      if (fit.in_nan_blocks > group->most_in_nan) {
        group->most_in_nan = fit.in_nan_blocks;
        group->with_most_in_nan = tensor.name;
      }
      if (!fit.not_allowed) continue;
      if (group->left_out.empty() || group->left_out.back() != tensor.name) {
        group->left_out.push_back(tensor.name);
      }
    }
  }
  for (Group& group : out) {
    std::ranges::stable_sort(group.operands, std::ranges::greater{}, [](const Operand& operand) {
      return std::pair(operand.much_worse(), operand.below_normal());
    });
  }
  return out;
}

void add_once(std::vector<std::string>& to, const std::string& name) {
  if (std::ranges::find(to, name) == to.end()) to.push_back(name);
}

/// Layers and tensors with operands that are much worse than normal, worst first.
struct ToKeep {
  std::vector<std::string> layers;       ///< layers with a matrix, if the log has any
  std::vector<std::string> activations;  ///< tensors; other layers read them
};

ToKeep to_keep(const Group& group) {
  std::vector<std::string> with_matrix;
  for (const Operand& operand : group.operands) {
    if (operand.tensor->role == log::Role::weight) add_once(with_matrix, operand.layer());
  }
  ToKeep out;
  for (const Operand& operand : group.operands) {
    if (operand.fit->product == Product::none || !operand.much_worse()) continue;
    const std::string layer = operand.layer();
    if (operand.tensor->role == log::Role::activation) {
      add_once(out.activations, operand.tensor->name);
    } else if (with_matrix.empty() || std::ranges::find(with_matrix, layer) != with_matrix.end()) {
      add_once(out.layers, layer);
    }
  }
  return out;
}

std::string operand_text(const Operand& operand) {
  return fmt::format("{} ({})", code(operand.tensor->name), operand.product());
}

std::string noise_text(const Group& group) {
  const auto [least, most] = std::ranges::minmax_element(group.operands, {}, &Operand::db);
  const std::string out = fmt::format(
      "By {} {} a signal-to-noise ratio of {} to {}. ", code(group.asked),
      plural(group.operands.size(), "operand") + (group.operands.size() == 1 ? " has" : " have"),
      decibels_text(least->db()), decibels_text(most->db()));
  const auto bad = std::ranges::count_if(group.operands, &Operand::much_worse);
  if (bad == 0) return out + "None is much worse than numbers of a normal distribution.";
  const Operand& worst = group.operands.front();
  return out + fmt::format(
                   "{} much worse than numbers of a normal distribution: twice the noise or more, "
                   "or 10 % more zeros. The worst is {}: {} and {} zeros, where those have {} and "
                   "{}.",
                   bad == 1 ? "One is" : count_text(static_cast<std::uint64_t>(bad)) + " are",
                   operand_text(worst), decibels_text(worst.db()),
                   share_text(worst.fit->zero_share()), decibels_text(worst.fit->normal_db),
                   share_text(worst.fit->normal_zero));
}

std::string keep_text(const ToKeep& keep) {
  std::string out;
  if (!keep.layers.empty()) {
    out = fmt::format("Keep in BF16: {}.", listed_code(keep.layers, kNamed));
  }
  if (keep.activations.empty()) return out;
  return out + fmt::format("{}Keep in BF16 the layers that read {}.", out.empty() ? "" : " ",
                           listed_code(keep.activations, kNamed));
}

/// Returns the operands with a bias, the largest first.
std::vector<Operand> biased(const Group& group) {
  std::vector<Operand> out;
  std::ranges::copy_if(group.operands, std::back_inserter(out),
                       [](const Operand& operand) { return operand.fit->biased(); });
  std::ranges::stable_sort(out, std::ranges::greater{},
                           [](const Operand& operand) { return std::abs(operand.fit->bias); });
  return out;
}

std::string bias_cell_text(const RecipeFit& fit) {
  return fmt::format("{:+.4f} ± {:.4f}", fit.bias, fit.bias_error);
}

std::string bias_text(const Group& group) {
  const std::vector<Operand> all = biased(group);
  if (all.empty()) return "";
  return fmt::format(
      "By {} rounding changes the mean magnitude of {} of {}, most in {}: by {} gaps between "
      "neighbouring elements.",
      code(group.asked), count_text(all.size()), plural(group.operands.size(), "operand"),
      operand_text(all.front()), bias_cell_text(*all.front().fit));
}

std::string left_out_text(const Group& group) {
  if (group.left_out.empty()) return "";
  return fmt::format("{} does not allow the sizes of {}: {}. {} left out.", code(group.asked),
                     plural(group.left_out.size(), "tensor"), listed_code(group.left_out, kNamed),
                     group.left_out.size() == 1 ? "It is" : "They are");
}

bool has_several_recipes(const Group& group) {
  return std::ranges::any_of(group.operands, [&](const Operand& operand) {
    return operand.fit->recipe != group.operands.front().fit->recipe;
  });
}

std::string in_nan_text(const Group& group) {
  if (group.in_nan == 0) return "";
  return fmt::format(
      "By {} {} become infinity or NaN, or stand beside one in their block; most are in {}. They "
      "are "
      "in no other number.",
      code(group.asked), plural(group.in_nan, "value"), code(group.with_most_in_nan));
}

Row operand_row(const Operand& operand, bool with_recipe) {
  const RecipeFit& fit = *operand.fit;
  const auto share = [&](std::uint64_t count) {
    const double part = static_cast<double>(count) / static_cast<double>(fit.values);
    return Cell{share_text(count, fit.values), part, count_text(count), count == 0};
  };
  Row row{{{code(operand.tensor->name)},
           {operand.product()},
           {decibels_text(operand.db()), operand.db()},
           {fmt::format("{:+.1f}", -operand.below_normal()), -operand.below_normal()},
           share(fit.flushed_to_zero),
           share(fit.saturated),
           share(fit.at_largest),
           {bias_cell_text(fit), fit.bias, "", !fit.biased()}},
          operand.much_worse()};
  if (with_recipe) row.cells.push_back({std::string(fit.recipe->name)});
  return row;
}

Table table_of(const Group& group) {
  Table table{Evidence::recipes, fmt::format("Operands by {}, worst first", group.asked),
              "Against normal: dB above or below numbers of a normal distribution by the same "
              "recipe. Marked rows are much worse. Bias: mean change of the magnitude, in gaps "
              "between neighbouring elements, with its standard error."};
  table.headings = {"tensor",      "product", "SNR",        "against normal",
                    "become zero", "clipped", "at largest", "bias"};
  const bool several = has_several_recipes(group);
  if (several) table.headings.emplace_back("recipe");
  table.add_rows(group.operands,
                 [&](const Operand& operand) { return operand_row(operand, several); });
  table.all_by = "analyze LOG --recipe NAME --json FILE";
  return table;
}

}  // namespace

std::string Operand::layer() const {
  std::string name = tensor->name;
  if (log::role_in_name(name)) name.erase(0, name.find('/') + 1);
  for (const std::string_view end : {".weight", ".input", ".output"}) {
    if (name.ends_with(end)) name.resize(name.size() - end.size());
  }
  return name;
}

std::string Operand::product() const {
  const bool both = fit->product == Product::forward && tensor->role != log::Role::activation &&
                    fit->recipe->block.rows == fit->recipe->block.columns;
  return std::string(name_of(fit->product)) + (both ? ", data gradient" : "");
}

bool Operand::much_worse() const {
  return below_normal() >= kMuchBelowDb || fit->zero_share() >= fit->normal_zero + kMuchMoreZero;
}

std::vector<Operand> operands(const Analysis& analysis) {
  std::vector<Operand> out;
  for (const Group& group : groups(analysis)) {
    out.insert(out.end(), group.operands.begin(), group.operands.end());
  }
  return out;
}

Section recipes_section(const analyzers::Findings& found) {
  Section section{"Recipes of block formats"};
  for (const Group& group : groups(found.analysis)) {
    const auto say = [&](const std::string& text) {
      if (!text.empty()) section.sentences.push_back(text);
    };
    if (!group.operands.empty()) {
      const ToKeep keep = to_keep(group);
      const std::string advice = keep_text(keep);
      say(noise_text(group) + (advice.empty() ? "" : " " + advice));
      for (PasteLines& paste : recipe_pastes(keep.layers, *group.operands.front().fit->recipe)) {
        paste.label = fmt::format("{}: {}", group.asked, paste.label);
        section.pastes.push_back(std::move(paste));
      }
      say(bias_text(group));
      section.tables.push_back(table_of(group));
    }
    say(in_nan_text(group));
    say(left_out_text(group));
  }
  return section.sentences.empty() ? Section{} : section;
}

std::string recipes_digest(const Analysis& analysis) {
  std::string out;
  for (const Group& group : groups(analysis)) {
    if (group.operands.empty()) continue;
    const auto bad = std::ranges::count_if(group.operands, &Operand::much_worse);
    out += fmt::format("{}{}: {} of {} much worse than normal", out.empty() ? "" : "; ",
                       group.asked, bad, plural(group.operands.size(), "operand"));
  }
  return out;
}

void find_recipe_noise(const analyzers::Study& study, std::vector<Finding>& to) {
  for (const Group& group : groups(study.analysis)) {
    const std::string keep = keep_text(to_keep(group));
    if (!keep.empty()) to.push_back({Severity::warning, noise_text(group), keep});
  }
}

void find_recipe_bias(const analyzers::Study& study, std::vector<Finding>& to) {
  for (const Group& group : groups(study.analysis)) {
    const std::vector<Operand> all = biased(group);
    if (all.empty()) continue;
    const bool random = all.front().fit->recipe->rounding == block::ElementRounding::random;
    to.push_back({Severity::note, bias_text(group),
                  random ? "It rounds at random: values beyond the largest element are cut."
                         : "Stochastic rounding has no bias, apart from values beyond the largest "
                           "element."});
  }
}

}  // namespace halfscope::reports::answer
