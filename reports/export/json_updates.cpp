// SPDX-License-Identifier: Apache-2.0
// The outcome of a weight's updates as JSON.
#include "reports/export/json.hpp"
#include "reports/export/json_parts.hpp"
#include "reports/export/json_weights.hpp"

namespace halfscope::reports::exports {
namespace {

using analyzers::underflow::UpdateFindings;

Json outcomes_json(const UpdateOutcomes& o) {
  return {{"underflow", o.underflow},
          {"swamped", o.swamped},
          {"applied", o.applied},
          {"exact", o.exact},
          {"overflow", o.overflow}};
}

/// Adds the counts of the update table: with 16-bit arithmetic, and with the two alternatives.
void put_lost(Json& to, const UpdateCounts& c) {
  to["updates"] = c.updates();
  to["update_underflow"] = c.half.underflow;
  to["swamped"] = c.half.swamped;
  to["swamped_fused"] = c.fused.swamped;
  to["rule_2048"] = c.rule_2048;
}

void put_counts(Json& to, const UpdateCounts& c) {
  to["pairs"] = c.pairs;
  to["zero"] = c.zero;
  to["nonfinite"] = c.nonfinite;
  to["half"] = outcomes_json(c.half);
  to["fused"] = outcomes_json(c.fused);
}

/// Returns the array of [key, value] of a map.
Json pairs_json(const auto& map) {
  return list_json(map, [](const auto& at) { return Json::array({at.first, at.second}); });
}

Json cells_json(const UpdateTable& table) {
  return list_json(table.cells, [](const auto& at) {
    const auto& [binades, cell] = at;
    const bool zero_weight = binades.first == UpdateTable::kZeroWeight;
    return Json::array(
        {zero_weight ? Json(nullptr) : Json(binades.first), binades.second, cell.count, cell.lost});
  });
}

Json ratios_json(const UpdateTable& table) {
  return list_json(table.ratios, [](const auto& at) {
    return Json::array({at.first, at.second.count, at.second.lost});
  });
}

/// Returns an object for each entry of a map: the field `name` with its key, then its counts.
Json counts_by(const char* name, const auto& map) {
  return list_json(map, [&](const auto& at) {
    Json entry = {{name, at.first}};
    put_lost(entry, at.second);
    put_counts(entry, at.second);
    return entry;
  });
}

Json what_if_json(const UpdateWhatIf& w) {
  Json to;
  put_lost(to["bfloat16"], w.bfloat16);
  put_counts(to["bfloat16"], w.bfloat16);
  to["learning_rate"] = counts_by("log2_factor", w.learning_rate);
  to["stochastic"] = list_json(w.stochastic, [](const StochasticMoves& s) -> Json {
    return {{"random_bits", s.random_bits},
            {"expected_moves", s.expected_moves()},
            {"never", s.never},
            {"never_truncated", s.never_truncated}};
  });
  to["kahan"] = {
      {"steps", w.kahan.steps}, {"moved", w.kahan.moved}, {"moved_without", w.kahan.moved_plain}};
  to["fp32_master"] = {{"first_move", pairs_json(w.first_move)}, {"never", w.master_never}};
  return to;
}

}  // namespace

void put_updates(Json& to, const UpdateFindings& found) {
  const UpdateCounts& counts = found.table.counts;
  put_lost(to, counts);
  to["update_source"] = analyzers::underflow::name_of(found.source);
  if (found.kept_in) to["kept_in"] = halfscope::name_of(*found.kept_in);
  if (found.source == analyzers::underflow::UpdateSource::difference) {
    to["undetermined"] = found.undetermined;
  }
  Json detail;
  put_counts(detail, counts);
  detail["ratios"] = ratios_json(found.table);
  detail["errors"] = pairs_json(found.table.errors);
  detail["cells"] = cells_json(found.table);
  detail["per_step"] = counts_by("step", found.per_step);
  if (found.what_if) detail["what_if"] = what_if_json(*found.what_if);
  to["update_detail"] = std::move(detail);
}

void put_adam(Json& to, const analyzers::Findings& found) {
  for (const analyzers::updates::AdamState& state : found.adam) {
    Json row = {{"log", state.log},
                {"held_in", halfscope::name_of(state.held_in)},
                {"held_in_assumed", state.assumed_format},
                {"eps", number_json(state.eps)},
                {"beta2", number_json(state.beta2)},
                {"settings_assumed", state.assumed_settings},
                {"eps_is_zero", state.eps_is_zero}};
    if (!state.broken.empty()) row["broken_from"] = state.broken_from;
    if (state.moments.high > 0) {
      row["second_moments"] = to_json(state.moments);
      row["zero"] = to_json(state.zero);
      row["lost"] = to_json(state.lost);
      if (!state.most_lost.empty()) row["most_lost"] = state.most_lost;
    }
    if (state.gradients.high > 0) {
      row["gradients"] = to_json(state.gradients);
      row["adds_nothing"] = to_json(state.adds_nothing);
      row["square_is_zero"] = to_json(state.square_is_zero);
    }
    to["adam_state"].push_back(std::move(row));
  }
}

void put_claims(Json& to, const std::vector<analyzers::weights::Claim>& claims) {
  const auto narrow_json = [](const analyzers::weights::NarrowTensors& narrow) -> Json {
    return {{"format", halfscope::name_of(narrow.format)},
            {"is_fault", narrow.is_fault},
            {"tensors", narrow.names},
            {"first_step", narrow.first_step},
            {"last_step", narrow.last_step},
            {"values", narrow.values},
            {"zero", narrow.zero}};
  };
  if (claims.empty()) return;
  to["fp32_state"] = list_json(claims, [&](const analyzers::weights::Claim& claim) -> Json {
    const auto& [total, zero, values, exact, constant] = claim.counts;
    return {{"log", claim.log},
            {"kind", claim.kind},
            {"tensors", claim.tensors},
            {"steps", claim.steps},
            {"zero", zero},
            {"values", values},
            {"bfloat16", exact[1]},
            {"binary16", exact[2]},
            {"e4m3", exact[0]},
            {"narrow", list_json(claim.narrow, narrow_json)}};
  });
}

}  // namespace halfscope::reports::exports
