// SPDX-License-Identifier: Apache-2.0
#include "analyzers/underflow/whole_findings.hpp"

namespace halfscope::analyzers::underflow {

std::string_view name_of(UpdateSource source) {
  switch (source) {
    case UpdateSource::update: return "update";
    case UpdateSource::optimizer_state: return "optimizer_state";
    case UpdateSource::gradient: return "gradient";
    case UpdateSource::difference: return "difference";
  }
  return "update";
}

std::optional<UpdateSource> find_update_source(std::string_view name) {
  for (const UpdateSource source : {UpdateSource::update, UpdateSource::optimizer_state,
                                    UpdateSource::gradient, UpdateSource::difference}) {
    if (name_of(source) == name) return source;
  }
  return std::nullopt;
}

}  // namespace halfscope::analyzers::underflow
