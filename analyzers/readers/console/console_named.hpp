// SPDX-License-Identifier: Apache-2.0
// Skipped steps that lines name by their iteration, printed by one rank or by every one.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "analyzers/readers/console/console_lines.hpp"

namespace halfscope::analyzers::readers::console {

class NamedOverflows {
 public:
  /// A line names an iteration, or, torn, none.
  void name(const OverflowIteration& named);
  /// A line tells the scale of the one that was named last. False where none was.
  bool scale(const Overflow& overflow);
  /// A line of something else, which ends what is printed at one time.
  void other();
  /// A line of a counter: overflows after it are of iterations that are to be named.
  void forget() { open_ = false; }

  /// Those named since the last call, by iteration. Numbers that are two torn into one are left
  /// out.
  std::map<std::int64_t, Overflow> since_last();

  std::optional<std::int64_t> last() const { return last_; }
  std::uint64_t torn() const { return torn_; }
  /// Overflows of which no line has a number: at the most.
  std::uint64_t perhaps() const { return perhaps_; }

 private:
  struct Named {
    Overflow scales;
    std::uint64_t times = 0;
  };
  /// Whether a number is two others of these written one after the other, which more lines name.
  bool is_torn(std::int64_t iteration, std::uint64_t times) const;

  std::map<std::int64_t, Named> named_;
  std::optional<std::int64_t> last_;
  bool open_ = false;                          // what comes next is of the iteration that was named
  bool whole_now_ = false, torn_now_ = false;  // since a line of something else
  std::uint64_t torn_ = 0, perhaps_ = 0;
};

}  // namespace halfscope::analyzers::readers::console
