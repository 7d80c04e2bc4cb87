// SPDX-License-Identifier: Apache-2.0
#include "reports/export/json.hpp"
#include "reports/export/json_parts.hpp"

namespace halfscope::reports::exports {

Json to_json(const analyzers::Study& study) {
  Json to = to_json(study.advice);
  put_overflow(to, study.analysis, study.overflow);
  put_timeline(to, study);
  put_gaps(to, study);
  return to;
}

}  // namespace halfscope::reports::exports
