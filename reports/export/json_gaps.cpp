// SPDX-License-Identifier: Apache-2.0
// What a log could not tell, as JSON.
#include "analyzers/scale_history/carried_scale.hpp"
#include "reports/answer/gaps.hpp"
#include "reports/export/json_parts.hpp"

namespace halfscope::reports {

void put_gaps(Json& to, const analyzers::Analysis& analysis) {
  if (const auto carried = analyzers::carried_scale(analysis)) {
    to["seems_scaled"] = {{"log", carried->log}, {"steps", carried->steps}, {"of", carried->of}};
  }
  for (const LogGaps& gaps : could_not_tell(analysis)) {
    Json names = Json::array();
    std::string text;
    for (const Unknown& unknown : gaps.unknown) {
      names.push_back(name_of(unknown.gap));
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

}  // namespace halfscope::reports
