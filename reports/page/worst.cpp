// SPDX-License-Identifier: Apache-2.0
#include "reports/page/worst.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "reports/answer/scale.hpp"
#include "reports/answer/section.hpp"
#include "reports/answer/series.hpp"
#include "reports/answer/tensors.hpp"
#include "reports/answer/text.hpp"
#include "reports/page/html.hpp"

namespace halfscope::reports::page {

using analyzers::recommend::Recommendation;
using analyzers::underflow::Analysis;
using analyzers::underflow::TensorFindings;

namespace {

std::string number_cell(double key, std::string_view text) {
  return fmt::format("<td data-v=\"{}\">{}</td>", sort_key(key), text);
}

/// Returns a cell with a share, and its count as the tooltip.
std::string share_cell(const Classes& classes, Interval Classes::*part, const Interval& of) {
  const Interval& count = classes.*part;
  const std::string text = answer::html_escape(answer::class_share_text(classes, part, of));
  if (count.high == 0) return fmt::format("<td data-v=\"0\" class=\"nil\">{}</td>", text);
  return fmt::format("<td data-v=\"{}\" title=\"{} of {}\">{}</td>",
                     sort_key(answer::class_share(classes, part, of).high),
                     answer::count_text(count), answer::count_text(of), text);
}

/// Returns a cell with the share that becomes zero; if wide buckets hide it, with its bounds.
std::string zero_cell(const TensorFindings& tensor, const Classes& classes) {
  const Interval of = tensor.counts.finite_nonzero;
  if (!tensor.hidden_by_buckets) return share_cell(classes, &Classes::flushed_to_zero, of);
  const Bounds share = answer::class_share(classes, &Classes::flushed_to_zero, of);
  return fmt::format("<td data-v=\"{}\" title=\"{}\">not identifiable ({})</td>",
                     sort_key(share.high), answer::html_escape(answer::zeros_doubt(tensor)),
                     answer::html_escape(answer::share_range_text(share.low, share.high)));
}

std::string class_cells(const TensorFindings& tensor, const Classes& classes) {
  const Interval of = tensor.counts.finite_nonzero;
  return zero_cell(tensor, classes) + share_cell(classes, &Classes::subnormal, of) +
         share_cell(classes, &Classes::overflow, of);
}

std::string row(const Analysis& analysis, const Recommendation& advice,
                const TensorFindings& tensor, std::size_t index) {
  const Interval of = tensor.counts.finite_nonzero;
  std::string out = fmt::format(
      "<tr data-tensor=\"{}\" data-kinds=\"{}{}\"><th scope=\"row\"><button>{}"
      "</button>{}</th>",
      index, name_of(tensor.role), tensor.loss_scaled ? " gradients" : "",
      breakable_name(tensor.name),
      tensor.role_source == analyzers::frames::RoleSource::name
          ? ""
          : fmt::format(" <small>{}</small>", name_of(tensor.role)));
  if (analysis.logs.size() > 1) out += "<td>" + answer::html_name(*tensor.log) + "</td>";
  out += number_cell(static_cast<double>(of.high), answer::count_text(of));
  out += class_cells(tensor, tensor.counts.classes);
  if (advice.static_log2 && tensor.loss_scaled) {
    out += class_cells(tensor, tensor.classes_at(analysis.target, *advice.static_log2));
  } else if (advice.static_log2) {
    out += "<td class=\"nil\">not scaled</td><td></td><td></td>";
  }
  out += number_cell(tensor.max_abs.value_or(0), answer::largest_text(tensor));
  out += number_cell(static_cast<double>(tensor.counts.zero.high),
                     answer::count_text(tensor.counts.zero));
  out += number_cell(static_cast<double>(answer::nonfinite_values(tensor).high),
                     tensor.counts.nonfinite_known
                         ? answer::count_text(answer::nonfinite_values(tensor))
                         : "not known");
  return out + "</tr>\n";
}

std::string heading(std::string_view text) {
  return fmt::format("<th scope=\"col\"><button type=\"button\">{}</button></th>", text);
}

std::string headings(const Analysis& analysis, const Recommendation& advice) {
  const bool logs = analysis.logs.size() > 1;
  std::string out =
      fmt::format("<thead><tr class=\"groups\"><td colspan=\"{}\"></td>", logs ? 3 : 2);
  out += fmt::format("<th scope=\"colgroup\" colspan=\"3\">at scale {}</th>",
                     answer::scale_text(analysis.loss_scale));
  if (advice.static_log2) {
    out += fmt::format("<th scope=\"colgroup\" colspan=\"3\" class=\"advised\">at {} {}</th>",
                       answer::advised_word(advice), answer::power_text(*advice.static_log2));
  }
  out += "<td colspan=\"3\"></td></tr>\n<tr>" + heading("tensor");
  if (logs) out += heading("log");
  out += heading("nonzero values");
  out += heading("to zero") + heading("subnormal") + heading("overflow");
  if (advice.static_log2) out += heading("to zero") + heading("subnormal") + heading("overflow");
  return out + heading("largest") + heading("zeros") + heading("NaN, inf") + "</tr></thead>\n";
}

}  // namespace

answer::Tensors kept_tensors(const Analysis& analysis) {
  if (analysis.tensors().size() <= kMostTensors) return answer::all_tensors(analysis);
  answer::Tensors out = answer::worst_first(analysis);
  out.resize(kMostTensors);
  std::ranges::sort(
      out, {}, [&](const TensorFindings* tensor) { return analysis.tensors().index_of(*tensor); });
  return out;
}

exports::Part kept_part(const analyzers::Findings& found) {
  exports::Part out = {kept_tensors(found.analysis), found.peaks};
  if (out.peaks.size() > kMostTensors) {
    out.peaks = answer::peaks_by_harm(std::move(out.peaks));
    out.peaks.resize(kMostTensors);
  }
  return out;
}

nlohmann::ordered_json kept_recommendation(const analyzers::Study& study) {
  nlohmann::ordered_json out = exports::to_json(study);
  std::vector<std::pair<std::string, std::size_t>> left_out;
  for (auto field = out.begin(); field != out.end(); ++field) {
    if (!field.value().is_array() || field.value().size() <= kMostTensors) continue;
    auto& list = field.value().get_ref<nlohmann::ordered_json::array_t&>();
    if (field.key() == "headroom") {  // null (unknown) sorts before any number
      std::ranges::stable_sort(list, {}, [](const auto& entry) { return entry.at("bits"); });
    }
    left_out.emplace_back(field.key() + "_left_out", list.size() - kMostTensors);
    list.resize(kMostTensors);
  }
  for (const auto& [name, count] : left_out) out[name] = count;
  return out;
}

std::string kept_text(const Analysis& analysis) {
  const std::size_t all = analysis.tensors().size();
  if (all <= kMostTensors) return "";
  return fmt::format(" (worst {} of {})", answer::count_text(kMostTensors),
                     answer::plural(all, "tensor"));
}

std::string left_out_note(std::size_t left_out, std::string_view command) {
  if (left_out == 0) return "";
  return fmt::format(
      "<p class=\"note left-out\">{}</p>\n",
      answer::left_out_text(left_out, fmt::format("<code>halfscope {}</code>", command)));
}

std::string worst_table_html(const Analysis& analysis, const Recommendation& advice) {
  std::string out =
      "<table class=\"data\" id=\"worst\">\n" + headings(analysis, advice) + "<tbody>\n";
  const answer::Tensors kept = kept_tensors(analysis);
  std::unordered_map<const TensorFindings*, std::size_t> indices;
  for (std::size_t i = 0; i < kept.size(); ++i) indices[kept[i]] = i;
  answer::Tensors order = answer::worst_first(analysis);
  order.resize(kept.size());
  for (const TensorFindings* tensor : order) {
    out += row(analysis, advice, *tensor, indices.at(tensor));
  }
  return out + "</tbody></table>\n";
}

std::size_t worst_tensor(const Analysis& analysis) {
  const answer::Tensors order = answer::worst_first(analysis);
  if (order.empty()) return 0;
  const auto counted = std::ranges::find_if(order, &TensorFindings::loss_scaled);
  const answer::Tensors kept = kept_tensors(analysis);
  const auto at = std::ranges::find(kept, counted == order.end() ? order.front() : *counted);
  return at == kept.end() ? 0 : static_cast<std::size_t>(at - kept.begin());
}

std::string kind_options_html(const Analysis& analysis) {
  const bool loss_scaled =
      std::any_of(analysis.tensors().begin(), analysis.tensors().end(),
                  [](const TensorFindings& tensor) { return tensor.loss_scaled; });
  std::string out = loss_scaled ? "<option value=\"gradients\">gradients</option>" : "";
  out += "<option value=\"\">all</option>";
  for (const log::Role role : answer::roles_in(analysis)) {
    out += fmt::format("<option value=\"{0}\">{0}</option>", name_of(role));
  }
  return out;
}

std::string tensor_options_html(const Analysis& analysis) {
  std::string out, group;
  const answer::Tensors kept = kept_tensors(analysis);
  for (std::size_t i = 0; i < kept.size(); ++i) {
    const TensorFindings& tensor = *kept[i];
    std::string label(name_of(tensor.role));
    if (analysis.logs.size() > 1) label = *tensor.log + ": " + label;
    if (i == 0 || label != group) {
      if (i > 0) out += "</optgroup>\n";
      out += fmt::format("<optgroup label=\"{}\">\n", answer::html_name(label));
      group = label;
    }
    out += fmt::format("<option value=\"{}\">{}</option>\n", i, answer::html_name(tensor.name));
  }
  return out.empty() ? out : out + "</optgroup>\n";
}

}  // namespace halfscope::reports::page
