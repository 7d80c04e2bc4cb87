// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace halfscope::log {

/// Input that cannot be used. The message is one line: file, tensor, what was found, what was
/// expected, and the solution. The command line prints it and exits with 1.
class BadInput : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Returns text from a log in a form that is safe to print on one line: control characters, invalid
/// UTF-8, invisible characters and those that change the direction of text become \xNN or \u{NNNN}.
std::string printable(std::string_view text);

}  // namespace halfscope::log
