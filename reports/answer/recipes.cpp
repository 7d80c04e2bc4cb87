// SPDX-License-Identifier: Apache-2.0
#include "reports/answer/recipes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

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

std::string decibels(double db) { return std::isinf(db) ? "exact" : fmt::format("{:.1f} dB", db); }

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
  std::vector<Operand> operands;  ///< farthest below normal numbers first
  std::vector<std::string> left_out;
};

std::vector<Group> groups(const Analysis& analysis) {
  std::vector<Group> out;
  for (const TensorFindings& tensor : analysis.tensors()) {
    for (const RecipeFit& fit : tensor.whole->recipe_fits) {
      auto group = std::ranges::find(out, fit.asked, &Group::asked);
      if (group == out.end()) group = out.insert(out.end(), {fit.asked, {}, {}});
      if (fit.noise) group->operands.push_back({&tensor, &fit});
      if (!fit.not_allowed) continue;
      if (group->left_out.empty() || group->left_out.back() != tensor.name) {
        group->left_out.push_back(tensor.name);
      }
    }
  }
  for (Group& group : out) {
    std::ranges::stable_sort(group.operands, std::ranges::greater{}, &Operand::below_normal);
  }
  return out;
}

/// Returns the layers with an operand of a product that is much below normal numbers, worst first.
std::vector<std::string> layers_to_keep(const Group& group) {
  std::vector<std::string> out;
  for (const Operand& operand : group.operands) {
    const bool multiplied = operand.fit->product != Product::none;
    if (!multiplied || operand.below_normal() < kMuchBelowDb) continue;
    const std::string layer = operand.layer();
    if (std::ranges::find(out, layer) == out.end()) out.push_back(layer);
  }
  return out;
}

std::string operand_text(const Operand& operand) {
  return fmt::format("{} ({})", code(operand.tensor->name), operand.product());
}

std::string noise_text(const Group& group) {
  const auto [least, most] = std::ranges::minmax_element(group.operands, {}, &Operand::db);
  const std::vector<std::string> layers = layers_to_keep(group);
  const Operand& worst = group.operands.front();
  std::string out = fmt::format(
      "By {} {} a signal-to-noise ratio of {} to {}. ", code(group.asked),
      plural(group.operands.size(), "operand") + (group.operands.size() == 1 ? " has" : " have"),
      decibels(least->db()), decibels(most->db()));
  if (layers.empty()) return out + "No layer has twice the noise of normal numbers.";
  return out +
         fmt::format(
             "{} at least twice the noise of normal numbers: {}. The worst operand is {}: {}, "
             "normal numbers have {}.",
             plural(layers.size(), "layer") + (layers.size() == 1 ? " has" : " have"),
             listed_code(layers, kNamed), operand_text(worst), decibels(worst.db()),
             decibels(worst.db() + worst.below_normal()));
}

/// Returns the operands with a bias of more than ten standard errors, the largest first.
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
      "By {} rounding changes the mean magnitude of {} of {} by more than ten standard errors, "
      "most "
      "in {}: by {} gaps between elements.",
      code(group.asked), count_text(all.size()), plural(group.operands.size(), "operand"),
      operand_text(all.front()), bias_cell_text(*all.front().fit));
}

std::string left_out_text(const Group& group) {
  if (group.left_out.empty()) return "";
  return fmt::format("{} does not allow the sizes of {}: {}. {} left out.", code(group.asked),
                     plural(group.left_out.size(), "tensor"), listed_code(group.left_out, kNamed),
                     group.left_out.size() == 1 ? "It is" : "They are");
}

Row operand_row(const Operand& operand) {
  const RecipeFit& fit = *operand.fit;
  const auto share = [&](std::uint64_t count) {
    const double part = static_cast<double>(count) / static_cast<double>(fit.values);
    return Cell{share_text(count, fit.values), part, count_text(count), count == 0};
  };
  return {{{code(operand.tensor->name)},
           {operand.product()},
           {std::string(fit.recipe->name)},
           {decibels(operand.db()), operand.db()},
           {fmt::format("{:+.1f}", -operand.below_normal()), -operand.below_normal()},
           share(fit.flushed_to_zero),
           share(fit.saturated),
           share(fit.at_largest),
           {bias_cell_text(fit), fit.bias, "", !fit.biased()}},
          operand.below_normal() >= kMuchBelowDb};
}

Table table_of(const Group& group) {
  Table table{Evidence::recipes, fmt::format("Operands by {}, noisiest first", group.asked),
              "Against normal numbers: dB above or below what the recipe has for them. Bias: mean "
              "change of the magnitude, in gaps between elements, with its standard error; grey if "
              "chance may explain it."};
  table.headings = {"tensor",      "product", "recipe",     "SNR", "against normal",
                    "become zero", "clipped", "at largest", "bias"};
  table.add_rows(group.operands, operand_row);
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

double Operand::below_normal() const { return fit->normal_db - db(); }

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
      say(noise_text(group));
      for (PasteLines& paste : recipe_pastes(layers_to_keep(group))) {
        paste.label = fmt::format("{}: {}", group.asked, paste.label);
        section.pastes.push_back(std::move(paste));
      }
      say(bias_text(group));
      section.tables.push_back(table_of(group));
    }
    say(left_out_text(group));
  }
  return section.sentences.empty() ? Section{} : section;
}

std::string recipes_digest(const Analysis& analysis) {
  std::string out;
  for (const Group& group : groups(analysis)) {
    if (group.operands.empty()) continue;
    const std::size_t keep = layers_to_keep(group).size();
    out += fmt::format("{}{}: {} to keep in BF16", out.empty() ? "" : "; ", group.asked,
                       keep == 0 ? "no layer" : plural(keep, "layer"));
  }
  return out;
}

void find_recipe_noise(const analyzers::Study& study, std::vector<Finding>& to) {
  for (const Group& group : groups(study.analysis)) {
    if (layers_to_keep(group).empty()) continue;
    to.push_back({Severity::warning, noise_text(group), "Keep these layers in BF16."});
  }
}

void find_recipe_bias(const analyzers::Study& study, std::vector<Finding>& to) {
  for (const Group& group : groups(study.analysis)) {
    const std::string text = bias_text(group);
    if (text.empty()) continue;
    to.push_back({Severity::note, text,
                  "Stochastic rounding has no bias, apart from clipped values; a random Hadamard "
                  "transform makes it smaller."});
  }
}

}  // namespace halfscope::reports::answer
