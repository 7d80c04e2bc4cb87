// SPDX-License-Identifier: Apache-2.0
// A study in which everything was found, put together by hand: its numbers are the tests', not the
// analyzers'.
#pragma once

#include <filesystem>
#include <string>

#include "analyzers/formats/format_fit.hpp"
#include "analyzers/study.hpp"
#include "halfscope/table/count/count.hpp"
#include "reports/sample.hpp"

namespace sample {

namespace hs = halfscope;
namespace hsa = halfscope::analyzers;

inline hsa::Study study_of(const std::vector<std::filesystem::path>& logs) {
  hsa::Study out;
  static_cast<hsa::Findings&>(out) = hsa::findings_of(hsa::underflow::analyze(logs, {}, {}));
  out.overflow = {};  // what a test wants of it, it adds
  out.advice = hsa::recommend::recommend({out.analysis, {}, {}});
  return out;
}

/// Pairs of a weight and an update, every one counted in all parts alike.
inline hs::UpdateTable update_table(std::uint64_t n) {
  hs::UpdateTable out;
  out.counts.pairs = 10 * n + 7;
  out.counts.zero = 5;
  out.counts.nonfinite = 2;
  out.counts.half = {.underflow = n, .swamped = 6 * n, .applied = 2 * n, .exact = n, .overflow = 0};
  out.counts.fused = {
      .underflow = 0, .swamped = 6 * n, .applied = 3 * n, .exact = n, .overflow = 0};
  out.counts.rule_2048 = 8 * n;
  out.cells[{-5, -27}] = {n, n};
  out.cells[{-5, -18}] = {3 * n, 3 * n};
  out.cells[{-4, -16}] = {3 * n, 3 * n};
  out.cells[{-6, -15}] = {2 * n, 0};
  out.cells[{hs::UpdateTable::kZeroWeight, -15}] = {n, 0};
  out.ratios[-22] = {n, n};
  out.ratios[-13] = {3 * n, 3 * n};
  out.ratios[-12] = {3 * n, 3 * n};
  out.ratios[-9] = {2 * n, 0};
  out.errors[-4] = n;
  out.errors[-2] = n;
  return out;
}

inline hs::UpdateWhatIf what_ifs(std::uint64_t n) {
  hs::UpdateWhatIf out;
  out.bfloat16 = update_table(n).counts;
  out.bfloat16.half = {.underflow = 0, .swamped = 9 * n, .applied = n, .exact = 0, .overflow = 0};
  for (int k = -2; k <= 2; ++k) out.learning_rate[k] = update_table(n).counts;
  out.learning_rate[2].half = {
      .underflow = 0, .swamped = 3 * n, .applied = 7 * n, .exact = 0, .overflow = 0};
  hs::StochasticMoves moves;
  moves.random_bits = 8;
  moves.moves_low = 256 * 4 * n;  // 4 n moves expected
  moves.never = 2 * n;
  out.stochastic = {moves};
  out.kahan = {1000, 9 * n, 4 * n};
  out.first_move = {{0, 3 * n}, {3, 4 * n}, {6, 2 * n}};
  out.master_never = n;
  return out;
}

inline void add_updates(hsa::Study& study) {
  std::uint64_t n = 100;
  for (hsa::underflow::TensorFindings& tensor : study.analysis.logs[0].tensors) {
    if (tensor.role != hs::log::Role::weight) continue;
    hsa::underflow::UpdateFindings found;
    found.table = update_table(n);
    found.what_if = what_ifs(n);
    found.undetermined = 3;
    found.per_step = {{0, found.table.counts}};
    tensor.updates = std::make_shared<const hsa::underflow::UpdateFindings>(std::move(found));
    n += 50;
  }
}

inline void add_overflow(hsa::Study& study) {
  auto& tensors = study.analysis.logs[0].tensors;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].role != hs::log::Role::activation) continue;
    hsa::overflow::Headroom h;
    h.tensor = i;
    h.least = static_cast<double>(study.overflow.headroom.size()) - 0.75;
    h.least_at = 400;
    h.last = h.least + 0.5;
    h.least_at_1 = h.least;  // activations: no loss scale acts on them
    h.last_at_1 = h.last;
    h.trend = 1.5;
    h.trend_to = 200;
    if (h.least > 1 && h.least < 2) h.overflow_expected_at = 1234;
    study.overflow.headroom.push_back(h);
  }
  hsa::overflow::OverflowEvent nan;
  nan.log = study.analysis.logs[0].name;
  nan.step = nan.last_step = 50;
  nan.tensor = "activation/layer3";
  nan.nan = 4321;
  nan.cause = hsa::overflow::Cause::nan_in_model;
  nan.why = "Its inputs were finite, at most 12.5.";
  nan.leads = {{"activation/layer3", "itself", {{20, 12.5, 0, 0, 0}, {50, {}, 4321, 0, 0}}},
               {"weight/layer3.conv.weight", "weight", {{20, 0.25, 0, 0, 0}, {50, 0.5, 0, 0, 0}}}};
  hsa::overflow::OverflowEvent alone = nan;
  alone.step = 100;
  alone.last_step = 200;
  alone.tensor = "activation/layer7";
  alone.nan = 0;
  alone.overflow = 17;
  alone.cause = hsa::overflow::Cause::at_scale_1;
  alone.why = "The largest magnitude is 70000.";
  alone.leads.clear();
  hsa::overflow::OverflowEvent scaled = alone;
  scaled.step = scaled.last_step = 400;
  scaled.tensor = "weight_grad/layer0.conv.weight";
  scaled.cause = hsa::overflow::Cause::by_scale;
  scaled.safe_log2 = 11;
  study.overflow.events = {nan, alone, scaled};
}

inline hsa::underflow::FormatFit fit(std::string_view format, bool at_1, bool at_best, int log2,
                                     double db) {
  hsa::underflow::FormatFit out;
  out.format = format;
  out.best_log2 = log2;
  out.fits_at_1 = at_1;
  out.fits_at_best = at_best;
  out.noise_at_best = hsa::underflow::NoiseRatio{db, db - 1, db + 1, false};
  return out;
}

inline void add_fits(hsa::Study& study) {
  std::size_t i = 0;
  for (hsa::underflow::TensorFindings& tensor : study.analysis.logs[0].tensors) {
    const std::size_t kind = i++ % 4;
    hsa::underflow::WholeFindings& whole = tensor.whole.set();
    whole.fits = {fit("e4m3", false, kind == 3, 9, 31), fit("e5m2", kind == 0, kind != 1, 4, 25),
                  fit("binary16", kind == 0, kind != 1, 3, 73),
                  fit("bfloat16", kind != 1, kind != 1, 100, 55), fit("tf32", true, true, 90, 73)};
    whole.narrowest = hsa::formats::narrowest(tensor);
    if (kind == 0) {
      hsa::underflow::RecipeFit mx;
      mx.recipe = halfscope::block::find_recipe("mxfp8-e4m3-floor");
      mx.asked = mx.recipe->name;
      mx.values = 1000;
      mx.flushed_to_zero = 3;
      mx.saturated = 2;
      mx.noise = hsa::underflow::NoiseRatio{32, 32, 32, true};
      whole.mx_fits = {mx};
    }
  }
}

inline void add_advice(hsa::Study& study) {
  hsa::recommend::Recommendation& advice = study.advice;
  const int recommended = advice.static_log2.value();
  for (int k = recommended - 18; k <= recommended + 1; ++k) {
    hsa::recommend::ScaleEvidence scale;
    scale.log2_scale = k;
    scale.flushed = std::uint64_t{12345} >> (k - recommended + 18);
    scale.of = advice.flushed_at_1.of;
    scale.lost = {{0.001, 0.002}, {1e-6, 2e-6}};
    scale.overflow_steps = k > recommended ? 3 : 0;
    scale.skip = {10, 0, 0, 0, 0, 0.3};
    advice.scales.push_back(scale);
  }
  advice.dynamic = {{halfscope::policy::make("torch,init_scale=2^14,growth_interval=1000"), 0x1p14,
                     1000, hsa::recommend::SkipBound{800, 1, 0, 0.00125, 0.00003, 0.007}, 0,
                     false}};
  advice.ranks = hsa::recommend::RankSum{16, 777, 111, 100000, 2.5, 9};
  advice.per_layer = {{"layer0.conv", 12, 30, 900, 0, 1000, 4096.0},
                      {"layer1.conv", 10, 25, 400, 1, 1000, {}}};
  advice.keep_in_fp32 = {{.name = "layer7.conv.weight",
                          .why = hsa::recommend::KeepInFp32::Why::limits_scale,
                          .highest_log2 = 12,
                          .highest_log2_without = 16,
                          .binades_gained = 4},
                         {"softmax", hsa::recommend::KeepInFp32::Kind::softmax,
                          hsa::recommend::KeepInFp32::Why::exponential, 12, 65504}};
  hsa::recommend::Footprint memory;
  memory.weights = 26000000;
  memory.activations = 16000000;
  memory.bytes_fp32 = 168000000;
  memory.bytes_fp16 = 84000000;
  memory.bytes_mixed = 188000000;
  memory.not_multiples_of_8 = {
      {"weight/classifier.weight", {10, 257}, hsa::recommend::Footprint::Extents::both}};
  advice.footprint = memory;
}

/// `folder` gets the log; the study is of it, with everything added.
inline hsa::Study full_study(const std::filesystem::path& folder) {
  training_run(folder);
  hsa::Study out = study_of({folder});
  add_updates(out);
  add_overflow(out);
  add_fits(out);
  add_advice(out);
  return out;
}

/// The same with markup and escape sequences in every name.
inline hsa::Study hostile_study(const std::filesystem::path& folder) {
  hsa::Study out = full_study(folder);
  const std::string bad = "<img src=x onerror=alert(1)>\x1b[31m\xe2\x80\xae";
  for (hsa::underflow::TensorFindings& tensor : out.analysis.logs[0].tensors) tensor.name += bad;
  for (hsa::overflow::OverflowEvent& event : out.overflow.events) {
    event.tensor += bad;
    event.why += bad;
    for (hsa::overflow::Lead& lead : event.leads) {
      lead.name += bad;
      lead.relation += bad;
    }
  }
  for (hsa::recommend::LayerScale& layer : out.advice.per_layer) layer.layer += bad;
  for (hsa::recommend::KeepInFp32& keep : out.advice.keep_in_fp32) {
    keep.name += bad;
  }
  for (auto& odd : out.advice.footprint->not_multiples_of_8) {
    odd.name += bad;
  }
  out.advice.overflow_without_cure = {bad};
  return out;
}

}  // namespace sample
