// SPDX-License-Identifier: Apache-2.0
// Findings about weight updates that are lost.
#include <fmt/format.h>

#include <algorithm>

#include "reports/answer/findings_list.hpp"
#include "reports/answer/text.hpp"
#include "reports/answer/update_sums.hpp"

namespace halfscope::reports::answer::found {

using analyzers::Study;
using analyzers::underflow::Analysis;
using analyzers::underflow::TensorFindings;

namespace {

/// "2.91 % are too small for FP16, 33.5 % are rounded away in the sum"
std::string parts_text(const UpdateCounts& counts, const std::string& format) {
  const std::uint64_t of = counts.updates();
  if (counts.half.underflow == 0) return "all of these are rounded away in the sum";
  return fmt::format("{} are too small for {}, {} are rounded away in the sum",
                     share_text(counts.half.underflow, of), format,
                     share_text(counts.half.swamped, of));
}

std::string masters_text(const Study& study) {
  const std::string_view scaler =
      study.weights_kept_in == Dtype::f16 ? " GradScaler needs FP32 parameters, too." : "";
  return fmt::format("Use FP32 master weights: in PyTorch, FP32 parameters under torch.autocast.{}",
                     scaler);
}

/// Of a training log that has 16-bit weights and nothing that shows their updates.
void unknown_updates(const Study& study, List& to) {
  const Analysis& analysis = study.analysis;
  const bool narrow = std::ranges::any_of(analysis.tensors(), [&](const TensorFindings& t) {
    return t.role == log::Role::weight && t.source_dtype &&
           format_of(*t.source_dtype) == analysis.target.format;
  });
  const bool master = std::ranges::any_of(analysis.tensors(), [](const TensorFindings& t) {
    return t.role == log::Role::master_weight;
  });
  const bool trained = std::ranges::any_of(analysis.tensors(), &TensorFindings::loss_scaled);
  if (!narrow || master || !trained) return;
  to.push_back({Severity::note,
                fmt::format("Weights are stored in {}, and the log has neither FP32 master weights "
                            "nor updates: how many updates are lost is unknown.",
                            format_name(analysis)),
                masters_text(study), Evidence::updates});
}

/// Of weights that do not change.
void no_updates(const UpdateCounts& counts, List& to) {
  if (counts.zero != counts.pairs) return;
  to.push_back({Severity::serious,
                fmt::format("All {} sampled weight updates are zero: the weights do not change.",
                            count_text(counts.pairs)),
                "Look at the learning rate, at skipped steps, and at updates computed in 16 bits.",
                Evidence::updates});
}

}  // namespace

void lost_updates(const Study& study, List& to) {
  const UpdateCounts counts = all_updates(study.analysis).table.counts;
  const std::uint64_t of = counts.updates(), lost = counts.half.lost();
  if (counts.pairs == 0) return unknown_updates(study, to);
  if (of == 0) return no_updates(counts, to);
  const double share = static_cast<double>(lost) / static_cast<double>(of);
  if (share < study.advice.asked.negligible_share) return;
  const std::string format = format_name(study.analysis);
  const std::string lost_text =
      fmt::format("{} of {} sampled weight updates", share_text(lost, of), count_text(of));
  if (kept_narrow(study)) {
    to.push_back({share >= study.advice.asked.serious_share ? Severity::breaks : Severity::warning,
                  fmt::format("Weights are stored in {}, and {} are lost: {}.", format, lost_text,
                              parts_text(counts, format)),
                  masters_text(study), Evidence::updates});
    return;
  }
  // Nothing is lost in this run: it shows what would be without FP32 weights.
  to.push_back({Severity::note,
                fmt::format("If weights were stored in {} alone, {} would be lost: {}.", format,
                            lost_text, parts_text(counts, format)),
                "Keep FP32 master weights, as mixed precision does.", Evidence::updates});
}

}  // namespace halfscope::reports::answer::found
