// SPDX-License-Identifier: Apache-2.0
// Pieces of charts whose one axis is magnitude, in binades; for the files that write charts.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "reports/charts/limits.hpp"
#include "reports/charts/vega.hpp"

namespace halfscope::reports::charts::vega {

/// Fields every chart of binades shows on hover.
nlohmann::ordered_json binade_fields();

/// A channel of what is known only between bounds, and of the rest.
nlohmann::ordered_json where_uncertain(double uncertain, double sure);

/// A channel along the magnitudes; the same scale and axis in every layer.
nlohmann::ordered_json magnitude(const Window& window, const std::string& field);

/// Rows {at, label}, one a limit.
nlohmann::ordered_json positions(const Limits& limits);

/// The limits at one scale: rules through the plot, a strip above it, their values beside it.
/// alone: there is no strip for another scale.
void add_limits(const Window& window, const Scale& scale, bool alone,
                nlohmann::ordered_json& layers);

}  // namespace halfscope::reports::charts::vega
