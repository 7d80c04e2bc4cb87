// SPDX-License-Identifier: Apache-2.0
#include "analyzers/frames/value_total.hpp"

#include <fmt/format.h>

namespace halfscope::analyzers::frames {

void ValueTotal::add(const Frame& frame, std::string_view log) {
  const std::uint64_t more = frame.table.total();
  if (more <= kMostValues - values_) {
    values_ += more;
    return;
  }
  const std::string found =
      fmt::format("{}: tensor '{}', step {}: has {} values, and the tensors read before it {}; ",
                  log::printable(log), log::printable(frame.name), frame.step, more, values_);
  throw InputNeedsOption(Message(found) +
                         "expected at most 2^62 in all: some counts are wrong; exclude them with " +
                         Option::tensor + " or " + Option::step);
}

void ValueTotal::add_skipped(std::uint64_t steps, std::string_view log) {
  if (steps > kMostValues - skipped_) {
    throw log::BadInput(fmt::format(
        "{}: has {} skipped steps, and what was read before {}; expected at most 2^62 in all: some "
        "counts are wrong, count the log again",
        log::printable(log), steps, skipped_));
  }
  skipped_ += steps;
}

}  // namespace halfscope::analyzers::frames
