// SPDX-License-Identifier: Apache-2.0
// The JSON header of a safetensors file.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace halfscope::log {

/// Size limit of headers in the format's own library.
inline constexpr std::uint64_t kMaxSafetensorsHeader = 100'000'000;
/// Key of the header's string-to-string map, which is not a tensor.
inline constexpr std::string_view kSafetensorsMetadata = "__metadata__";

/// A tensor as described by the header, not compared with the data.
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

/// Parses the header text `json`. Strict: no duplicate key, every field present with the right
/// type, nothing else. Memory is proportional to the header's size, whatever its nesting. `file`:
/// the file's name for messages. Throws BadInput.
SafetensorsHeader parse_safetensors_header(std::string_view json, const std::string& file);

}  // namespace halfscope::log
