// SPDX-License-Identifier: Apache-2.0
// Findings about weight updates that are lost.
#include <fmt/format.h>

#include "reports/answer/findings_list.hpp"
#include "reports/answer/text.hpp"
#include "reports/answer/update_sums.hpp"

namespace halfscope::reports::answer::found {

using analyzers::Study;

namespace {

std::string parts_text(const UpdateCounts& counts) {
  const std::uint64_t of = counts.updates();
  return fmt::format("{} too small for the format, {} rounded away",
                     share_text(counts.half.underflow, of), share_text(counts.half.swamped, of));
}

}  // namespace

void lost_updates(const Study& study, List& to) {
  const UpdateCounts counts = all_updates(study.analysis).table.counts;
  const std::uint64_t of = counts.updates(), lost = counts.half.lost();
  if (of == 0) return;
  const double share = static_cast<double>(lost) / static_cast<double>(of);
  if (share < study.advice.asked.negligible_loss) return;
  const std::string format = format_name(study.analysis);
  if (kept_narrow(study)) {
    to.push_back({loses_updates(study, study.advice.asked.serious_loss) ? Severity::breaks
                                                                        : Severity::warning,
                  fmt::format("Weights are kept in {}, and {} of {} sampled weight updates are "
                              "lost: {}.",
                              format, share_text(lost, of), count_text(of), parts_text(counts)),
                  "Keep FP32 master weights.", Evidence::updates});
    return;
  }
  // Nothing is lost in this run: it tells what would be without FP32 weights.
  to.push_back({Severity::note,
                fmt::format("In weights kept in {} alone, {} of {} sampled weight updates would be "
                            "lost: {}.",
                            format, share_text(lost, of), count_text(of), parts_text(counts)),
                "Keep FP32 master weights, as mixed precision does.", Evidence::updates});
}

}  // namespace halfscope::reports::answer::found
