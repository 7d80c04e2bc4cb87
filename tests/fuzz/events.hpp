// SPDX-License-Identifier: Apache-2.0
// An input as a TensorBoard event file. No mutation finds a checksum, so most inputs get theirs
// here.
#pragma once

#include <string>
#include <string_view>

#include "input.hpp"

namespace halfscope::fuzz {

/// A record with its checksums.
std::string record(std::string_view data);

/// What the first byte says: 'R' the bytes as they are; 'F' a part a record, which gets its
/// checksums; any other builds whole events, whose fields are the input. Then a file begins as one
/// of TensorBoard.
std::string event_file(std::string_view input);

}  // namespace halfscope::fuzz
