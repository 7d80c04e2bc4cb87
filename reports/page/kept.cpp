// SPDX-License-Identifier: Apache-2.0
#include "reports/page/kept.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "reports/answer/peaks_words.hpp"
#include "reports/answer/table.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::reports::page {

using analyzers::underflow::Analysis;
using analyzers::underflow::TensorFindings;

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

}  // namespace halfscope::reports::page
