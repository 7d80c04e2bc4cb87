// SPDX-License-Identifier: Apache-2.0
// The JSON header of a safetensors file. For safetensors.cpp and its writer; others read tensors.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace halfscope::log {

/// The longest header the format's own library reads.
inline constexpr std::uint64_t kMaxSafetensorsHeader = 100'000'000;
/// The key of the string-to-string map that is no tensor.
inline constexpr std::string_view kSafetensorsMetadata = "__metadata__";

/// A tensor as the header describes it; nothing here has been compared with the data.
struct SafetensorsEntry {
  std::string name;
  std::string dtype;
  std::vector<std::uint64_t> shape;
  std::uint64_t begin = 0;  ///< offsets from the first byte of data
  std::uint64_t end = 0;
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  ///< in the header's order
  std::map<std::string, std::string> metadata;
};

/// Parses the header, whose bytes are `json`. Strict: no key twice, every field there and of its
/// type, nothing else. Works in memory proportional to the header, whatever its nesting.
/// `file` is the file as messages show it. Throws BadInput.
SafetensorsHeader parse_safetensors_header(std::string_view json, const std::string& file);

}  // namespace halfscope::log
