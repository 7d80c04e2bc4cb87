// SPDX-License-Identifier: Apache-2.0
// Pieces that specifications are made of; for the files that write charts.
#pragma once

#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "reports/charts/window.hpp"

namespace halfscope::reports::charts::vega {

/// A chart as wide as the page lets it be, over rows the page gives.
nlohmann::ordered_json chart(const std::string& data, const std::string& description, int height);

nlohmann::ordered_json layer(const nlohmann::ordered_json& mark, nlohmann::ordered_json encoding);
/// A layer over rows of its own.
nlohmann::ordered_json layer(nlohmann::ordered_json values, const nlohmann::ordered_json& mark,
                             nlohmann::ordered_json encoding);

nlohmann::ordered_json calculate(const std::string& expression, const std::string& name);
nlohmann::ordered_json tooltip(
    std::initializer_list<std::pair<const char*, const char*>> field_and_title);

/// Expressions: a count, or the share that it is.
struct Told {
  std::string count, share;
};
/// An expression for an exact count, or for its two bounds, with their shares, worded as
/// count_text() and share_text() do.
std::string described(const Told& low, const Told& high);

/// An expression that holds for 1, 10, 100...: the values a logarithmic axis labels.
std::string power_of_ten();

/// An axis whose values are exponents of two.
nlohmann::ordered_json exponent_axis(const std::string& title);

/// A vertical axis of counts; where logarithmic, it starts at kCountFloor and labels powers of ten.
nlohmann::ordered_json count_axis(Axis counts, const char* title = "values");
inline constexpr double kCountFloor = 0.5;  ///< a single value is still seen

/// A horizontal bar chart as high as it has rows: names on the left.
nlohmann::ordered_json bar_chart(const std::string& data, const std::string& description);
/// The names on the left, in the order of the rows.
nlohmann::ordered_json row_names(const char* field);

/// Colours of what becomes of a value ("zero", "subnormal", "normal", "overflow", or just "kept"),
/// in the order of theme()'s category range.
nlohmann::ordered_json class_colour(const char* field, nlohmann::ordered_json legend);

/// A scale whose limits are drawn, and its style: "now" or "advised".
struct Scale {
  double scale;
  std::string style;
  bool advised() const { return style == "advised"; }
};
/// One scale, or two when the recommended one differs from the one the findings are for.
std::vector<Scale> scales_of(const Window& window);

/// "scale 1", "scale 2^10".
std::string short_name(double scale);

}  // namespace halfscope::reports::charts::vega
