// SPDX-License-Identifier: Apache-2.0
// Pieces of the JSON, one file a part; for the files that write JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "analyzers/compare/operations.hpp"
#include "analyzers/overflow/overflow.hpp"
#include "analyzers/recommend/recommend.hpp"
#include "analyzers/study.hpp"

namespace halfscope::reports::exports {

using Json = nlohmann::ordered_json;

/// A double, or null when there is none or it is not finite.
Json number_json(std::optional<double> x);
/// 2^log2, or null.
Json power_json(std::optional<int> log2);
/// {l1, l2}, each a number, or [low, high] where only bounds are known; json_advice.cpp.
Json mass_json(const MassShare& lost);

/// `flushed_to_zero`, `subnormal`, `normal`, `overflow`; json_findings.cpp.
void put_classes(Json& to, const Classes& classes);
/// `total`, `zero`, `nan`, `inf`, `flushed_to_zero`, `subnormal`, `normal`, `overflow`;
/// json_findings.cpp.
void put_counts(Json& to, const analyzers::underflow::Counts& counts);
/// [e, count], ascending; json_findings.cpp.
Json binades_json(const std::vector<analyzers::underflow::BinadeCount>& binades);

/// `lost_mass`, `scales`, `skip`, `dynamic`, `ranks`; json_advice.cpp.
void put_advice(Json& to, const analyzers::recommend::Recommendation& advice);

/// A run's operations against their emulation; json_operations.cpp.
Json operations_json(const analyzers::compare::Operations& operations);

/// `per_layer`, `keep_in_fp32`, `footprint`, `snippets`, `dynamic_snippets`; json_cures.cpp.
void put_cures(Json& to, const analyzers::Study& study);

/// `formats`, `narrowest`, `mx_formats`, `lost_mass`, where fits are known; json_formats.cpp.
void put_formats(Json& to, const analyzers::underflow::TensorFindings& tensor,
                 Subnormals subnormals);

/// `delayed_scaling`, an object a log, and `mx_gradients`; json_formats.cpp.
void put_eight_bits(Json& to, const analyzers::Findings& found);

/// `updates`, `swamped` and what else is known of a weight's updates; json_updates.cpp.
void put_updates(Json& to, const analyzers::underflow::UpdateFindings& found);

/// `adam_state`, an object for each log whose state is in 16 bits; json_updates.cpp.
void put_adam(Json& to, const analyzers::Findings& found);
/// Shifts between layers, and attention scores; json_layers.cpp.
void put_layers(Json& to, const analyzers::Findings& found);

/// A tensor's `headroom`; json_overflow.cpp.
Json headroom_json(const analyzers::overflow::Headroom& headroom);
/// `headroom` and `overflow_events` of a recommendation; json_overflow.cpp.
void put_overflow(Json& to, const analyzers::underflow::Analysis& analysis,
                  const analyzers::overflow::OverflowFindings& found);

/// `ranks_compared`, an object a log and role; json_ranks.cpp. whole: with the ranks that agree.
void put_ranks(Json& to, const analyzers::Findings& found, bool whole);

/// `peaks`, of tensors that have largest magnitudes and no counts; json_peaks.cpp.
void put_peaks(Json& to, const std::vector<analyzers::underflow::TensorPeaks>& peaks);

/// `fp8`, of logs with statistics of quantised tensors; json_quantised.cpp. whole: with the shares
/// by column.
void put_quantised(Json& to, const analyzers::Findings& found, bool whole);

/// `notes`, every note on reading the logs; absent if there is none; json_gaps.cpp.
void put_notes(Json& to, const analyzers::frames::Notes& notes);

/// `notes`; and `could_not_tell`, of logs that other tools wrote; json_gaps.cpp.
void put_gaps(Json& to, const analyzers::Findings& found);

/// `answer`: the headline and the findings, as sentences; json_answer.cpp.
void put_answer(Json& to, const analyzers::Study& study);

/// Adds "timeline": where a log of another tool tells loss scales or skipped steps, an object a
/// log.
void put_timeline(Json& to, const analyzers::Findings& found);

}  // namespace halfscope::reports::exports
