// SPDX-License-Identifier: Apache-2.0
// The notes on reading the logs, and the facts that these do not contain, as JSON.
#include "analyzers/scale_history/carried_scale.hpp"
#include "reports/answer/gaps.hpp"
#include "reports/export/json_parts.hpp"

namespace halfscope::reports::exports {

void put_notes(Json& to, const analyzers::frames::Notes& notes) {
  for (const std::string& note : notes) to["notes"].push_back(note);
}

void put_gaps(Json& to, const analyzers::Findings& found) {
  put_notes(to, found.analysis.notes);
  if (const auto& carried = found.carried_scale) {
    to["seems_scaled"] = {{"log", carried->log}, {"steps", carried->steps}, {"of", carried->of}};
  }
  for (const answer::LogGaps& gaps : answer::could_not_tell(found.analysis)) {
    Json names = Json::array();
    std::string text;
    for (const answer::Unknown& unknown : gaps.unknown) {
      names.push_back(answer::name_of(unknown.gap));
      text += (text.empty() ? "" : " ") + unknown.text;
    }
    to["could_not_tell"].push_back(
        {{"log", gaps.log},
         {"kind", gaps.kind},
         {"gaps", names},
         {"text", text},
         {"next_time", {{"where", gaps.recording.where}, {"lines", gaps.recording.lines}}}});
  }
}

}  // namespace halfscope::reports::exports
