// SPDX-License-Identifier: Apache-2.0
// Findings on lost weight updates.
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

/// For example "2.91 % are too small for FP16, 33.5 % are rounded away in the sum".
std::string parts_text(const UpdateCounts& counts, const std::string& format) {
  const std::uint64_t of = counts.updates();
  if (counts.half.underflow == 0) return "all of these are rounded away in the sum";
  return fmt::format("{} are too small for {}, {} are rounded away in the sum",
                     share_text(counts.half.underflow, of), format,
                     share_text(counts.half.swamped, of));
}

std::string masters_text(const Analysis& analysis) {
  const std::string_view scaler =
      analysis.target.format == kBinary16 ? " GradScaler needs FP32 parameters, too." : "";
  return fmt::format("Use FP32 master weights: in PyTorch, FP32 parameters under torch.autocast.{}",
                     scaler);
}

/// Adds a note for a training log with 16-bit weights, but without FP32 weights or updates.
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
                masters_text(analysis), Evidence::updates});
}

/// Adds a finding if all sampled updates are zero.
void no_updates(const UpdateCounts& counts, List& to) {
  if (counts.zero != counts.pairs) return;
  to.push_back({Severity::serious,
                fmt::format("All {} sampled weight updates are zero: the weights do not change.",
                            count_text(counts.pairs)),
                "Look at the learning rate, at skipped steps, and at updates computed in 16 bits.",
                Evidence::updates});
}

/// For example "61.0 % of 1,000 sampled weight updates".
std::string lost_text(const UpdateCounts& counts) {
  return fmt::format("{} of {} sampled weight updates",
                     share_text(counts.half.lost(), counts.updates()),
                     count_text(counts.updates()));
}

/// Returns the finding on weights that the run keeps in the target format: updates that it loses.
Finding lost_in_run(const Study& study, const SumsByKept& sums) {
  const UpdateCounts& counts = sums.narrow.table.counts;
  const std::string format = format_name(study.analysis);
  const double share =
      static_cast<double>(counts.half.lost()) / static_cast<double>(counts.updates());
  const std::string stored =
      sums.others.weights == 0
          ? fmt::format("Weights are stored in {}, and", format)
          : fmt::format("{} of {} weight tensors {} stored in {}:", count_text(sums.narrow.weights),
                        count_text(sums.narrow.weights + sums.others.weights),
                        sums.narrow.weights == 1 ? "is" : "are", format);
  return {share >= study.advice.asked.serious_share ? Severity::breaks : Severity::warning,
          fmt::format("{} {} are lost{}: {}.", stored, lost_text(counts),
                      sums.others.weights == 0 ? "" : " there", parts_text(counts, format)),
          masters_text(study.analysis), Evidence::updates};
}

/// Returns the finding on weights kept in more bits: updates that the target format would lose.
Finding lost_if_narrow(const Study& study, const SumsByKept& sums) {
  const UpdateCounts& counts = sums.others.table.counts;
  const std::string format = format_name(study.analysis);
  const bool all = sums.narrow.weights == 0;
  return {Severity::note,
          fmt::format("If {} stored in {}{}, {} would be lost: {}.",
                      all ? "weights were" : "the other weights were", format,
                      all ? " alone" : " too", lost_text(counts), parts_text(counts, format)),
          all ? "Keep FP32 master weights, as mixed precision does." : "Keep them in FP32.",
          Evidence::updates};
}

}  // namespace

void lost_updates(const Study& study, List& to) {
  const Tensors tensors = all_tensors(study.analysis);
  const UpdateCounts counts = sum_updates(tensors).table.counts;
  if (counts.pairs == 0) return unknown_updates(study, to);
  if (counts.updates() == 0) return no_updates(counts, to);
  const SumsByKept sums = sums_by_kept(tensors, study.analysis.target.format);
  const double negligible = study.advice.asked.negligible_share;
  if (loses_share(sums.narrow, sums, negligible)) to.push_back(lost_in_run(study, sums));
  if (loses_share(sums.others, sums, negligible)) to.push_back(lost_if_narrow(study, sums));
}

}  // namespace halfscope::reports::answer::found
