// SPDX-License-Identifier: Apache-2.0
// A folder that goes away with the test, bytes to put in it, and the message of what is refused.
#pragma once

#include <stdlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>

#include "halfscope/log/error.hpp"

namespace halfscope::test {

class TempFolder {
 public:
  TempFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "halfscope-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = name;
  }
  ~TempFolder() { std::filesystem::remove_all(path_); }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  std::filesystem::path operator/(std::string_view name) const { return path_ / name; }

  /// Makes a file of these bytes.
  std::filesystem::path write(std::string_view name, std::string_view bytes) const {
    std::ofstream(path_ / name, std::ios::binary) << bytes;
    return path_ / name;
  }

 private:
  std::filesystem::path path_;
};

/// `value` in `width` bytes, little-endian.
inline std::string little_endian(std::uint64_t value, int width) {
  std::string bytes;
  for (int i = 0; i < width; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xFF);
  return bytes;
}

/// What `read` is refused with; empty when it is not.
template <typename Read>
std::string message_of(Read&& read) {
  try {
    read();
  } catch (const log::BadInput& refused) {
    return refused.what();
  }
  return "";
}

}  // namespace halfscope::test
