// SPDX-License-Identifier: Apache-2.0
#include "analyzers/frames/source.hpp"

#include <fmt/format.h>
#include <fnmatch.h>

namespace halfscope::analyzers::frames {

using log::printable;

std::string_view name_of(RoleSource source) {
  switch (source) {
    case RoleSource::name: return "name";
    case RoleSource::option: return "option";
    case RoleSource::assumed: return "assumed";
    case RoleSource::file: return "file";
    case RoleSource::none: return "none";
  }
  return "none";
}

bool matches(const std::string& glob, const std::string& text) {
  return fnmatch(glob.c_str(), text.c_str(), 0) == 0;
}

bool selects(const Selection& selection, const std::string& tensor_name) {
  if (!selection.tensor_glob) return true;
  if (matches(*selection.tensor_glob, tensor_name)) return true;
  return log::role_in_name(tensor_name) &&
         matches(*selection.tensor_glob, tensor_name.substr(tensor_name.find('/') + 1));
}

bool in_steps(const Selection& s, std::int64_t step) {
  return step >= s.first_step && step < s.end_step;
}

bool usable_scale(double scale) {
  return scale >= static_cast<double>(std::numeric_limits<float>::min()) &&
         scale <= static_cast<double>(std::numeric_limits<float>::max());
}

double scale_of(const log::TensorRecord& record, const Selection& s,
                const std::filesystem::path& log) {
  if (record.state == log::ScaleState::unscaled) return 1.0;
  if (s.recorded_scale) return *s.recorded_scale;
  if (record.scale_known && usable_scale(record.scale)) return record.scale;
  const std::string found =
      record.scale_known
          ? fmt::format("with loss scale {}, expected a positive normal binary32 number",
                        record.scale)
          : "but without its loss scale";
  throw InputNeedsOption(printable(log.string()) + ": tensor '" + printable(record.name) +
                         "', step " + std::to_string(record.step) + ": is recorded as scaled, " +
                         found + "; give it with " + Message(Option::recorded_scale, "S") +
                         ", or skip the step with " + Option::step);
}

}  // namespace halfscope::analyzers::frames
