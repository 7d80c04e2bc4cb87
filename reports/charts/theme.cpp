// SPDX-License-Identifier: Apache-2.0
// Colours. Classes use the Okabe-Ito palette, which people with any colour vision can tell apart:
// Okabe and Ito, Color Universal Design, 2008.
#include <nlohmann/json.hpp>

#include "reports/charts/charts.hpp"

namespace halfscope::reports::charts {

using json = nlohmann::ordered_json;

namespace {

struct Palette {
  const char *card, *ink, *muted, *line, *bar, *accent;
  const char *zero, *subnormal, *normal, *overflow, *applied;
  const char* kept;         ///< where nothing is lost, of a map from kept to lost
  const char* ramp;         ///< of counts: few is close to the background, many stands out
  double strip, uncertain;  ///< opacities
};

constexpr Palette kLight = {"#ffffff", "#1c2733", "#5a6672",         "#e3e7ec", "#7f93a8",
                            "#0b5fa5", "#d55e00", "#e69f00",         "#0072b2", "#aa4a8c",
                            "#78b7dc", "#dfe9f1", "yellowgreenblue", 0.28,      0.35};
constexpr Palette kDark = {"#181f26", "#e4e9ef", "#9aa7b4", "#2b343e", "#7288a0",
                           "#6cb8f5", "#ff8a4c", "#f2b84b", "#4aa8e0", "#dd8fc2",
                           "#2f6c93", "#243440", "viridis", 0.38,      0.35};

json label(const char* colour, const char* weight) {
  return {{"color", colour}, {"fontSize", 10}, {"fontWeight", weight}, {"baseline", "middle"}};
}

json styles(const Palette& p) {
  return {
      {"count", {{"color", p.bar}}},
      {"lost", {{"color", p.zero}}},
      {"perhaps-lost",
       {{"color", p.zero},
        {"fillOpacity", p.uncertain},
        {"stroke", p.zero},
        {"strokeWidth", 0.7},
        {"strokeDash", {2, 2}}}},
      {"uncertain",
       {{"color", p.bar}, {"fillOpacity", p.uncertain}, {"stroke", p.bar}, {"strokeDash", {2, 2}}}},
      {"strip", {{"fillOpacity", p.strip}}},
      {"strip-name", label(p.ink, "normal")},
      {"value", label(p.muted, "normal")},
      {"now", {{"color", p.muted}, {"strokeDash", {4, 3}}, {"strokeWidth", 1}}},
      {"now-label", label(p.muted, "normal")},
      {"now-name", label(p.muted, "normal")},
      {"advised", {{"color", p.accent}, {"strokeWidth", 1.5}}},
      {"advised-label", label(p.accent, "bold")},
      {"advised-name", label(p.accent, "bold")},
      {"halo", {{"color", p.card}, {"strokeWidth", 3}, {"opacity", 0.6}}},
      {"good", {{"color", p.accent}, {"fillOpacity", 0.09}}},
      {"hover", {{"color", p.ink}}},
      {"curve", {{"fillOpacity", 0.3}, {"strokeWidth", 2}}}};
}

}  // namespace

json theme(Theme which) {
  const Palette& p = which == Theme::light ? kLight : kDark;
  const json text = {{"labelColor", p.muted},
                     {"titleColor", p.muted},
                     {"labelFontSize", 11},
                     {"titleFontSize", 11},
                     {"titleFontWeight", "normal"}};
  json legend = text;
  legend.update({{"symbolBaseFillColor", p.muted}, {"symbolBaseStrokeColor", p.muted}});
  json axis = text;
  axis.update({{"domainColor", p.muted}, {"tickColor", p.muted}, {"gridColor", p.line}});
  return {
      {"background", "transparent"},
      {"font", "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif"},
      {"view", {{"stroke", nullptr}}},
      {"axis", axis},
      {"axisX", {{"grid", false}}},
      {"legend", legend},
      {"style", styles(p)},
      {"range",
       {{"category", {p.zero, p.subnormal, p.normal, p.overflow, p.applied, "#009e73", p.muted}},
        {"diverging", {p.kept, p.zero}},
        {"heatmap", {{"scheme", p.ramp}}}}}};
}

}  // namespace halfscope::reports::charts
