// SPDX-License-Identifier: Apache-2.0
#include "reports/export/json_weights.hpp"

#include <array>

#include "reports/export/json_parts.hpp"

namespace halfscope::reports::exports {
namespace {

using namespace analyzers::weights;

Json stall_json(const Stall& stall) {
  Json to = {{"weights", stall.weights()},     {"zero_update", stall.zero},
             {"lost_update", stall.lost},      {"steps", Json::array()},
             {"sum_update", stall.sum_update}, {"sum_distance", stall.sum_distance}};
  for (std::size_t log2 = 0; log2 < stall.steps.size(); ++log2) {
    if (stall.steps[log2] != 0) to["steps"].push_back({log2, stall.steps[log2]});
  }
  if (const auto median = stall.median()) to["median_steps"] = {median->low, median->high};
  return to;
}

void put_counts(Json& to, const MovedCounts& counts) {
  to["elements"] = counts.elements;
  to["moved"] = counts.moved;
  to["changed"] = counts.changed;
  if (counts.last_moved) to["last_moved"] = *counts.last_moved;
  if (counts.stall) to["stall"] = stall_json(*counts.stall);
}

Json moved_kind_json(const KindMovement& kind) {
  Json to = {{"kind", kind.kind}, {"tensors", kind.tensors}};
  put_counts(to, kind);
  return to;
}

Json moved_tensor_json(const TensorMovement& tensor) {
  Json to = {{"name", tensor.name},
             {"kind", tensor.kind},
             {"dtype", name_of(tensor.dtype)},
             {"copies", name_of(tensor.copies)}};
  put_counts(to, tensor);
  return to;
}

Json sent_json(const SentBytes& sent) {
  return {{"copies", sent.copies},           {"sparse", sent.sparse},
          {"sparse_zstd", sent.sparse_zstd}, {"xor_zstd", sent.xored_zstd},
          {"seconds", sent.seconds},         {"zstd_seconds", sent.zstd_seconds}};
}

void put_set(Json& to, const ForecastSet& set) {
  to["elements"] = set.elements;
  to["moves"] = set.moves;
  to["undecided"] = set.undecided;
}

void put_forecast(Json& to, const ForecastCounts& counts) {
  put_set(to, counts);
  to["expected_by_size"] = counts.expected;
  if (counts.judged.elements == 0) return;
  Json& judged = to["judged"];
  put_set(judged, counts.judged);
  judged["moved"] = counts.moved;
  judged["found"] = counts.found;
  judged["missed"] = counts.missed;
}

Json forecast_tensor_json(const TensorForecast& tensor) {
  Json to = {{"name", tensor.name}, {"optimizer", tensor.row}, {"copies", name_of(tensor.copies)}};
  put_forecast(to, tensor);
  return to;
}

Json stored_moments_json(const StoredMoments& stored) {
  constexpr std::array kMeasures = {"second", "step_first", "step_second", "step_both"};
  constexpr std::array kFits = {"fits", "unclear", "fails"};  // by MomentFit
  Json to = {{"format", stored.storage.name},
             {"rounding", stored.storage.stochastic ? "stochastic" : "nearest"}};
  for (std::size_t k = 0; k < kMeasures.size(); ++k) {
    const MomentShift& shift = stored.shifts[k];
    Json& part = to[kMeasures[k]] = {{"mean", shift.mean}, {"error", number_json(shift.error)}};
    if (k != of_second) part["fits"] = kFits[static_cast<std::size_t>(fit_of(shift))];
  }
  to["positive"] = stored.positive;
  to["stalled"] = stored.stalled;
  to["vanished"] = stored.vanished;
  return to;
}

}  // namespace

Json to_json(const Forecast& found) {
  Json to = {{"log", found.log}, {"steps", found.steps}};
  put_forecast(to, found.all);
  to["tensors"] = list_json(found.tensors, forecast_tensor_json);
  put_notes(to, found.notes);
  return to;
}

Json to_json(const Movement& found) {
  Json to = {{"log", found.log}};
  if (!found.other.empty()) to["other"] = found.other;
  to["steps"] = found.steps;
  put_counts(to, found.all);
  if (found.bytes) to["bytes"] = sent_json(*found.bytes);
  to["kinds"] = list_json(found.kinds, moved_kind_json);
  to["tensors"] = list_json(found.tensors, moved_tensor_json);
  put_notes(to, found.notes);
  return to;
}

Json to_json(const MomentReplay& found) {
  Json to = {{"log", found.log},
             {"steps", found.steps},
             {"gradients", found.gradients},
             {"first_step", found.first_step},
             {"last_step", found.last_step},
             {"from_state", found.from_state},
             {"betas", {found.adam.beta1, found.adam.beta2}},
             {"tensors", found.tensors},
             {"all_elements", found.all_elements},
             {"elements", found.elements},
             {"nonfinite", found.nonfinite},
             {"limit", kMomentLimit},
             {"stored", list_json(found.stored, stored_moments_json)}};
  put_notes(to, found.notes);
  return to;
}

}  // namespace halfscope::reports::exports
