// SPDX-License-Identifier: Apache-2.0
// Comparison of operations with their emulation, as JSON. The fields are in docs/compare.md.
// A comparison of two runs as JSON. Fields: docs/compare.md; schema:
// docs/schema/compare.schema.json.
#include "halfscope/version.hpp"
#include "reports/answer/comparison.hpp"
#include "reports/export/json.hpp"
#include "reports/export/json_parts.hpp"

namespace halfscope::reports::exports {

using namespace analyzers;

namespace {

Json both_json(const compare::RunAndEmulation& both) {
  return {{"run", both.run}, {"emulated", both.emulated}};
}

Json sums_json(const compare::OperationSums& sums, const compare::Operations& all) {
  Json to = {{"format", name_of(sums.dtype)},
             {"operations", sums.operations},
             {"identical_operations", sums.identical_operations},
             {"elements", sums.elements},
             {"identical", sums.identical},
             {"within_one_ulp", sums.within_one_ulp},
             {"not_finite_in_one", sums.not_finite_in_one},
             {"elements_of_different", sums.elements_of_different}};
  if (sums.dtype != Dtype::f32) to["beyond_rounding"] = sums.beyond_rounding;
  if (sums.identical_operations != sums.operations) to["worst"] = all.worst(sums.dtype).name;
  return to;
}

Json operation_json(const compare::Operation& o) {
  Json to = {{"operation", o.name},
             {"format", name_of(o.dtype)},
             {"calls", o.calls},
             {"elements", o.elements},
             {"identical", o.identical},
             {"within_one_ulp", o.within_one_ulp},
             {"largest_ulps", o.largest_ulps},
             {"not_finite_in_one", o.not_finite_in_one},
             {"largest_relative_error", o.largest_relative_error},
             {"zero", both_json(o.zero)},
             {"subnormal", both_json(o.subnormal)},
             {"not_finite", both_json(o.not_finite)}};
  if (o.dtype != Dtype::f32) to["beyond_rounding"] = o.beyond_rounding();
  return to;
}

Json update_json(const UpdateCounts& c) {
  return {{"pairs", c.pairs},          {"zero", c.zero},
          {"updates", c.updates()},    {"update_underflow", c.half.underflow},
          {"swamped", c.half.swamped}, {"lost", c.half.lost()}};
}

Json updates_json(const compare::Both<UpdateCounts>& updates) {
  return {{"a", update_json(updates.a)}, {"b", update_json(updates.b)}};
}

Json elements_json(const compare::ElementChanges& e) {
  Json to = {{"steps", e.steps},
             {"unscale", e.exact ? "exact" : "rounded"},
             {"elements", e.elements},
             {"equal", e.equal},
             {"became_zero", e.became_zero},
             {"became_nonzero", e.became_nonzero},
             {"became_subnormal", e.became_subnormal},
             {"became_infinite", e.became_infinite},
             {"became_nan", e.became_nan},
             {"became_finite", e.became_finite}};
  if (e.largest_relative_error)
    to["largest_relative_error"] = number_json(e.largest_relative_error);
  if (e.largest_ulps) to["largest_ulps"] = number_json(e.largest_ulps);
  return to;
}

Json stored_json(const compare::BlockLoss& loss) {
  const log::TensorBlocks& layout = loss.layout;
  return {{"element", layout.element},
          {"scale", layout.scale},
          {"block", {layout.block_rows, layout.block_columns}},
          {"blocks", loss.blocks},
          {"vanished", loss.vanished},
          {"clipped", loss.clipped},
          {"signal_to_noise", number_json(loss.signal_to_noise())}};
}

Json side_json(const underflow::Counts& counts, std::optional<double> max_abs,
               const std::vector<std::int64_t>& left_out,
               const std::vector<underflow::BinadeCount>& binades) {
  Json to;
  put_counts(to, counts);
  to["max_abs"] = number_json(max_abs);
  to["steps_left_out"] = left_out;
  to["binades"] = binades_json(binades);
  return to;
}

Json tensor_json(const compare::ComparedTensor& t) {
  Json to = {{"name", t.name}, {"role", log::name_of(t.role)}, {"steps", t.steps}};
  to["a"] = side_json(t.counts.a, t.max_abs.a, t.left_out.a, t.binades.a);
  to["b"] = side_json(t.counts.b, t.max_abs.b, t.left_out.b, t.binades.b);
  to["zero_difference"] = t.zero_difference;
  if (t.new_zeros) to["new_zeros"] = to_json(*t.new_zeros);
  to["lost"] = {{"a", to_json(t.lost.a)}, {"b", to_json(t.lost.b)}};
  to["harmed"] = t.harmed;
  if (t.max_abs_shift) to["max_abs_shift"] = *t.max_abs_shift;
  if (t.median_shift) to["median_shift"] = *t.median_shift;
  if (t.largest_share_difference) to["largest_share_difference"] = *t.largest_share_difference;
  if (t.updates) to["updates"] = updates_json(*t.updates);
  if (t.elements) to["elements"] = elements_json(*t.elements);
  if (t.stored.a) to["a"]["stored"] = stored_json(*t.stored.a);
  if (t.stored.b) to["b"]["stored"] = stored_json(*t.stored.b);
  return to;
}

Json trouble_json(const compare::AffectedTensors& trouble) {
  return {{"tensors", trouble.tensors},     {"beside_gradients", trouble.not_loss_scaled},
          {"steps", trouble.steps},         {"first_step", trouble.first_step},
          {"last_step", trouble.last_step}, {"values", to_json(trouble.values)},
          {"most_in", trouble.most}};
}

Json run_json(const compare::RunTotals& run) {
  Json to;
  put_counts(to, run.gradients);
  to["lost"] = to_json(run.lost);
  to["lost_to_zero"] = to_json(run.lost_to_zero());
  to["not_finite"] = to_json(run.not_finite_values());
  to["not_finite_all_roles"] = to_json(run.all_not_finite_values());
  if (run.non_finite) to["trouble"]["nan_or_infinity"] = trouble_json(*run.non_finite);
  if (run.overflow) to["trouble"]["overflow"] = trouble_json(*run.overflow);
  if (run.loss_non_finite) to["trouble"]["loss_not_finite_from"] = *run.loss_non_finite;
  to["underflow_identifiable"] = run.underflow_identifiable;
  if (run.loss_scales) to["loss_scales"] = {run.loss_scales->first, run.loss_scales->second};
  to["steps_with_scalars"] = run.steps;
  to["skipped"] = run.skipped;
  return to;
}

Json parting_json(const compare::FirstDifferences& parting) {
  Json to = {{"steps", parting.losses}};
  if (parting.same_until) to["same_until"] = *parting.same_until;
  if (parting.first_other) to["first_other"] = *parting.first_other;
  if (parting.first_far) to["first_apart"] = *parting.first_far;
  if (parting.first_other_scale) to["first_other_scale"] = *parting.first_other_scale;
  return to;
}

Json summary_json(const compare::Comparison& c) {
  Json to = {{"gradients", c.gradients},
             {"underflow", compare::name_of(c.underflow)},
             {"overflow", compare::name_of(c.overflow)},
             {"a", run_json(c.runs.a)},
             {"b", run_json(c.runs.b)},
             {"zero_difference", c.zero_difference},
             {"not_finite", compare::name_of(c.not_finite)}};
  if (c.new_zeros) to["new_zeros"] = to_json(*c.new_zeros);
  if (c.whole_zeros) {
    to["new_zeros_in_whole_tensors"] = {{"steps", c.whole_zeros->steps},
                                        {"elements", c.whole_zeros->elements},
                                        {"new_zeros", c.whole_zeros->new_zeros}};
  }
  if (c.updates) {
    to["updates"] = updates_json(*c.updates);
    to["unmoved"] = compare::name_of(c.ineffective_updates);
    to["updates_lost"] = {{"a", c.runs.a.lost_updates}, {"b", c.runs.b.lost_updates}};
    const auto kept = [](const compare::RunTotals& run) {
      return run.kept ? Json(halfscope::name_of(*run.kept)) : Json();
    };
    if (c.own_updates) to["weights_kept_in"] = {{"a", kept(c.runs.a)}, {"b", kept(c.runs.b)}};
  }
  if (c.last_loss) {
    to["last_loss"] = {{"step", c.last_loss->step},
                       {"a", number_json(c.last_loss->a)},
                       {"b", number_json(c.last_loss->b)}};
    to["parting"] = parting_json(c.parting);
  }
  return to;
}

Json series_json(const std::vector<std::pair<std::int64_t, double>>& series) {
  return list_json(series, [](const auto& at) {
    return Json::array({at.first, number_json(at.second)});
  });
}

Json orders_json(const compare::Comparison& c) {
  const compare::OrderAsked& asked = *c.order_asked;
  Json to = {{"length", asked.sums.length}, {"format", asked.format}};
  if (!asked.magnitudes.empty()) to["magnitudes"] = asked.magnitudes;
  to["by_tensor"] = list_json(c.orders, [](const compare::ComparedOrder& one) {
    const auto& v = one.verdict;
    Json tensor = {{"name", one.name},
                   {"steps", one.steps},
                   {"verdict", answer::name_of(v.verdict)},
                   {"elements", v.elements},
                   {"within", v.within},
                   {"between", v.between},
                   {"above", v.above},
                   {"nonfinite", v.nonfinite},
                   {"worst", v.worst},
                   {"worst_step", one.worst_step},
                   {"worst_ratio", number_json(v.worst_ratio)}};
    if (v.magnitudes_missing) tensor["magnitudes_missing"] = true;
    return tensor;
  });
  return to;
}

Json operations_json(const compare::Operations& operations) {
  const auto format_json = [&](const auto& sums) { return sums_json(sums, operations); };
  return {{"first_step", operations.first_step},
          {"last_step", operations.last_step},
          {"formats", list_json(operations.formats, format_json)},
          {"operations", list_json(operations.all, operation_json)}};
}

}  // namespace

Json to_json(const compare::Comparison& c) {
  Json to;
  to["schema"] = kJsonSchema;
  to["halfscope"] = kVersion;
  to["logs"] = {c.logs.a, c.logs.b};
  to["format"] = c.target.name;
  if (c.target.subnormals != Subnormals::keep) {
    to["subnormals"] = name_of(c.target.subnormals);
  }
  to["loss_scale"] = c.loss_scale ? Json(*c.loss_scale) : Json("own");
  if (c.own_format) to["own_format"] = true;
  to["summary"] = summary_json(c);
  to["tensors"] = list_json(c.tensors, tensor_json);
  put_notes(to, c.notes);
  to["only_a"] = c.only.a;
  to["only_b"] = c.only.b;
  if (!c.runs.a.loss.empty() || !c.runs.b.loss.empty()) {
    to["loss"] = {{"a", series_json(c.runs.a.loss)}, {"b", series_json(c.runs.b.loss)}};
  }
  if (!c.runs.a.scales.empty() || !c.runs.b.scales.empty()) {
    to["scales"] = {{"a", series_json(c.runs.a.scales)}, {"b", series_json(c.runs.b.scales)}};
  }
  if (c.order_asked) to["sums"] = orders_json(c);
  if (c.operations.a) to["operations"]["a"] = operations_json(*c.operations.a);
  if (c.operations.b) to["operations"]["b"] = operations_json(*c.operations.b);
  return to;
}

}  // namespace halfscope::reports::exports
