// SPDX-License-Identifier: Apache-2.0
// The evidence of a page that is no chart: tables and sentences. HTML, names escaped. Each part is
// empty where the study has nothing of it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "analyzers/study.hpp"
#include "reports/answer/series.hpp"

namespace halfscope::reports::page {

/// What became of the weights' updates, and what other arithmetic would have made of them.
std::string updates_html(const analyzers::underflow::Analysis& analysis);
/// <option>s: all weights together, or one whose data is on the page.
std::string weight_options_html(const analyzers::underflow::Analysis& analysis);

/// Events with the frames that lead there, and the room of every tensor.
std::string events_html(const analyzers::Study& study);
std::string headroom_html(const analyzers::Study& study);

/// A tensor's room below overflow: of gradients at the recommended scale, at 1 where there is none.
struct Room {
  const analyzers::overflow::Headroom* headroom = nullptr;
  double least = 0, last = 0;  ///< binades
};
std::vector<Room> rooms_to_use(const analyzers::Study& study);  ///< least first
/// The scale that gradients are seen at: "the recommended 65536 (2^16)".
std::string room_scale_text(const analyzers::Study& study);

/// Loss-scaling policies, replayed: the answer; then the table, advice and traps.
std::string policies_answer_html(const analyzers::Study& study);
std::string policies_html(const analyzers::Study& study);
/// One line about them, for the folded section.
std::string policies_digest(const analyzers::Study& study);

/// One block a log, of which the page shows the chosen one's.
std::string per_log(const analyzers::underflow::Analysis& analysis,
                    const std::function<std::string(std::size_t log)>& block);

}  // namespace halfscope::reports::page
