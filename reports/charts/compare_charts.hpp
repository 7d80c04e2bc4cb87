// SPDX-License-Identifier: Apache-2.0
// The charts of the page of two runs as Vega-Lite specifications. Rows, which the page gives:
//
//   "loss"     run, step, loss
//   "scales"   run, step, scale, log2, skipped; where one of them changes
//   "binades"  run, e, values, share: of one tensor, magnitudes in [2^e, 2^(e+1))
//
// Layers named after a run are left out where it has no values.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace halfscope::reports::charts {

nlohmann::ordered_json loss_chart();
nlohmann::ordered_json scale_chart();
nlohmann::ordered_json binade_chart();

}  // namespace halfscope::reports::charts
