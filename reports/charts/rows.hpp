// SPDX-License-Identifier: Apache-2.0
// Rows for the charts of magnitudes and scales, for notebooks. On a page, assets/charts.js makes
// them from the page's data. Their fields are in assets/charts/README.md.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "reports/answer/series.hpp"

namespace halfscope::reports::charts {

nlohmann::ordered_json bar_rows(const answer::Series& series);
nlohmann::ordered_json cell_rows(const answer::Series& series);
/// `series` must be the sum of `tensors`.
nlohmann::ordered_json scale_rows(const answer::Tensors& tensors, const answer::Series& series,
                                  const analyzers::underflow::Target& target);

}  // namespace halfscope::reports::charts
