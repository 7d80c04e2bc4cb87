// SPDX-License-Identifier: Apache-2.0
#include "cli/text_cures.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "halfscope/log/error.hpp"
#include "reports/text.hpp"

namespace halfscope::cli {
namespace {

using analyzers::Footprint;
using analyzers::LayerScale;
using analyzers::Recommendation;
using log::printable;

constexpr std::size_t kShown = 6;  // entries of a list; the JSON has all

std::string more_text(std::size_t count) {
  return count <= kShown ? "" : fmt::format("  and {} more: --json -\n", count - kShown);
}

std::string keep_text(const Recommendation& advice) {
  if (advice.keep_in_fp32.empty()) return "";
  std::string text = "Keep in FP32:\n";
  for (std::size_t i = 0; i < std::min(kShown, advice.keep_in_fp32.size()); ++i) {
    const analyzers::KeepInFp32& keep = advice.keep_in_fp32[i];
    text += fmt::format("  {} ({}): {}", printable(keep.name), keep.kind, printable(keep.why));
    if (keep.binades_gained > 0) {
      text +=
          fmt::format("; without it the scale can rise by {} to {}",
                      reports::plural(static_cast<std::uint64_t>(keep.binades_gained), "binade"),
                      reports::power_text(*keep.highest_log2_without));
    }
    text += "\n";
  }
  return text + more_text(advice.keep_in_fp32.size());
}

std::string power(std::optional<int> log2) { return log2 ? fmt::format("2^{}", *log2) : "none"; }

/// Layers by what the single scale flushes of them, most first.
std::string layers_text(const Recommendation& advice) {
  if (advice.per_layer.empty()) return "";
  std::vector<const LayerScale*> order;
  for (const LayerScale& layer : advice.per_layer) order.push_back(&layer);
  const auto share = [](const LayerScale& layer) {
    return layer.of.high == 0 ? 0
                              : static_cast<double>(layer.flushed_at_static.high) /
                                    static_cast<double>(layer.of.high);
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](const auto* a, const auto* b) { return share(*a) > share(*b); });
  std::string text = fmt::format(
      "No single scale serves every layer. Scales of their own:\n"
      "  {:>10} {:>10} {:>16} {:>16}  layer\n",
      "lowest", "highest", "zero at one", "zero at highest");
  for (std::size_t i = 0; i < std::min(kShown, order.size()); ++i) {
    const LayerScale& layer = *order[i];
    text += fmt::format(
        "  {:>10} {:>10} {:>16} {:>16}  {}\n", power(layer.lowest_log2), power(layer.highest_log2),
        reports::share_text(layer.flushed_at_static, layer.of.high),
        reports::share_text(layer.flushed_at_own, layer.of.high), printable(layer.layer));
  }
  return text + more_text(order.size());
}

std::string bytes_text(std::uint64_t bytes) {
  constexpr std::string_view kUnits[] = {"B", "kB", "MB", "GB", "TB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 999.5 && unit + 1 < std::size(kUnits)) {
    value /= 1000;
    ++unit;
  }
  return fmt::format("{:.3g} {}", value, kUnits[unit]);
}

std::string footprint_text(const Footprint& f) {
  std::string text = fmt::format(
      "Memory of weights and activations: {} in FP32, {} in FP16, {} with FP32 master weights.\n",
      bytes_text(f.bytes_fp32), bytes_text(f.bytes_fp16), bytes_text(f.bytes_mixed));
  if (f.not_multiples_of_8.empty()) return text;
  text += "Tensor Cores want extents that are multiples of 8: ";
  for (std::size_t i = 0; i < std::min(kShown, f.not_multiples_of_8.size()); ++i) {
    const Footprint::Odd& odd = f.not_multiples_of_8[i];
    text += fmt::format("{}{} has {}", i == 0 ? "" : "; ", printable(odd.name),
                        odd.why.substr(0, odd.why.find(':')));
  }
  if (f.not_multiples_of_8.size() > kShown) {
    text += fmt::format("; and {} more", f.not_multiples_of_8.size() - kShown);
  }
  return text + ".\n";
}

}  // namespace

std::string cures_text(const Recommendation& advice) {
  return keep_text(advice) + layers_text(advice) +
         (advice.footprint ? footprint_text(*advice.footprint) : "");
}

}  // namespace halfscope::cli
