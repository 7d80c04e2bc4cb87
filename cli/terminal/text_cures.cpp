// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal/text_cures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "halfscope/log/error.hpp"
#include "reports/answer/cure_words.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::cli::terminal {

using analyzers::recommend::KeepInFp32;

namespace {

using analyzers::recommend::Footprint;
using analyzers::recommend::LayerScale;
using analyzers::recommend::Recommendation;
using log::printable;

constexpr std::size_t kShown = 6;  // entries of a list; the JSON has all

std::string more_text(std::size_t count) {
  return count <= kShown ? "" : fmt::format("  and {} more: --json -\n", count - kShown);
}

/// What the first lines have told already.
bool told(const Recommendation& advice, const KeepInFp32& keep) {
  const auto& names = advice.overflow_without_cure;
  return keep.why == KeepInFp32::Why::overflows &&
         std::find(names.begin(), names.end(), keep.name) != names.end();
}

std::string autocast_text(const Recommendation& advice) {
  std::string names;
  for (const KeepInFp32& keep : advice.keep_in_fp32) {
    if (!keep.by_autocast()) continue;
    const std::string name =
        keep.kind == KeepInFp32::Kind::logits ? fmt::format("softmax of {}", keep.name) : keep.name;
    names += (names.empty() ? "" : ", ") + printable(name);
  }
  return names.empty()
             ? ""
             : fmt::format("Autocast keeps in FP32, so do not cast by hand: {}.\n", names);
}

std::string keep_text(const Recommendation& advice) {
  std::vector<const KeepInFp32*> entries;
  for (const KeepInFp32& keep : advice.keep_in_fp32) {
    if (!keep.by_autocast() && !told(advice, keep)) entries.push_back(&keep);
  }
  if (entries.empty()) return autocast_text(advice);
  std::string text = "Keep in FP32:\n";
  for (std::size_t i = 0; i < std::min(kShown, entries.size()); ++i) {
    const KeepInFp32& keep = *entries[i];
    text += fmt::format("  {} ({}): {}", printable(keep.name), reports::answer::name_of(keep.kind),
                        reports::answer::why_text(keep, advice));
    if (keep.binades_gained > 0) {
      text += fmt::format(
          "; without it the scale can rise by {} to {}",
          reports::answer::plural(static_cast<std::uint64_t>(keep.binades_gained), "binade"),
          reports::answer::power_text(*keep.highest_log2_without));
    }
    text += "\n";
  }
  return text + more_text(entries.size()) + autocast_text(advice);
}

std::string own_scales(const LayerScale& layer) {
  if (layer.served()) {
    return fmt::format("2^{} to 2^{}", *layer.lowest_log2, *layer.highest_log2);
  }
  if (layer.lowest_log2 && layer.highest_log2) {
    return fmt::format("none: needs 2^{}, allows 2^{}", *layer.lowest_log2, *layer.highest_log2);
  }
  return layer.highest_log2 ? fmt::format("none: allows 2^{}", *layer.highest_log2) : "none";
}

/// What the table below shows, which may be that no scale helps.
std::string layers_title(const Recommendation& advice) {
  const auto& layers = advice.per_layer;
  const auto served =
      std::count_if(layers.begin(), layers.end(), [](const auto& l) { return l.served(); });
  if (served == 0) {
    return "No scale reaches the target in these layers, not even one of their own:\n";
  }
  return served == static_cast<std::ptrdiff_t>(layers.size())
             ? "No single scale serves every layer. Scales of their own would:\n"
             : "No single scale serves every layer. Scales of their own would serve some:\n";
}

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
  std::string text = layers_title(advice);
  text += fmt::format("  {:>14} {:>14}  {:<30}  layer\n",
                      fmt::format("zero at 2^{}", *advice.static_log2), "at its highest",
                      "scales that serve it");
  for (std::size_t i = 0; i < std::min(kShown, order.size()); ++i) {
    const LayerScale& layer = *order[i];
    text += fmt::format("  {:>14} {:>14}  {:<30}  {}\n",
                        reports::answer::share_text(layer.flushed_at_static, layer.of.high),
                        reports::answer::share_text(layer.flushed_at_own, layer.of.high),
                        own_scales(layer), printable(layer.layer));
  }
  return text + more_text(order.size());
}

std::string footprint_text(const Footprint& f) {
  std::string text = fmt::format(
      "Memory of weights and activations{}: {} in FP32, {} in FP16, {} with FP32 master weights.\n",
      f.microbatches > 1 ? fmt::format(" of one of {} microbatches", f.microbatches) : "",
      reports::answer::bytes_text(f.bytes_fp32), reports::answer::bytes_text(f.bytes_fp16),
      reports::answer::bytes_text(f.bytes_mixed));
  if (f.not_multiples_of_8.empty()) return text;
  text += "Tensor Cores want extents that are multiples of 8: ";
  for (std::size_t i = 0; i < std::min(kShown, f.not_multiples_of_8.size()); ++i) {
    const Footprint::Odd& odd = f.not_multiples_of_8[i];
    text += fmt::format("{}{} has {}", i == 0 ? "" : "; ", printable(odd.name),
                        reports::answer::odd_extents_text(odd));
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

}  // namespace halfscope::cli::terminal
