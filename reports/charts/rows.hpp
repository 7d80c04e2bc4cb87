// SPDX-License-Identifier: Apache-2.0
// Rows of the charts of magnitudes and scales, for those who have no script that makes them of a
// page's data (assets/charts.js). Their fields: assets/charts/README.md.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "reports/answer/series.hpp"

namespace halfscope::reports::charts {

nlohmann::ordered_json bar_rows(const answer::Series& series);
nlohmann::ordered_json cell_rows(const answer::Series& series);
/// `series` is their sum.
nlohmann::ordered_json scale_rows(const answer::Tensors& tensors, const answer::Series& series,
                                  const analyzers::underflow::Target& target);

}  // namespace halfscope::reports::charts
