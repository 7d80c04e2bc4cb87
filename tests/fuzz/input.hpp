// SPDX-License-Identifier: Apache-2.0
// What targets share: the input taken apart, put into files, and what must hold of every refusal.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "halfscope/log/error.hpp"
#include "target.hpp"

namespace halfscope::fuzz {

/// Aborts unless it holds, so that the input is kept.
void require(bool holds);

/// The input as a file that is never on a disk.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view bytes);
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  int number_;
  std::filesystem::path path_;
};

/// A folder in memory, emptied when it goes.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  /// Folders of the name are made.
  void write(const std::string& name, std::string_view bytes) const;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// The input, part by part; at its end there are zeros and nothing.
class Cursor {
 public:
  explicit Cursor(Bytes bytes) : text_(reinterpret_cast<const char*>(bytes.data()), bytes.size()) {}

  bool done() const { return text_.empty(); }
  std::uint64_t number(std::size_t width);  ///< little-endian
  double real();
  std::string_view text(std::size_t most);
  /// Two bytes of length before it.
  std::string_view part() { return text(number(2)); }
  std::string_view rest() { return std::exchange(text_, {}); }

 private:
  std::string_view text_;
};

/// Files of a folder as one input: "name\ncontents", with \x1E between them. A name stays within
/// the folder; the first of a name holds.
std::vector<std::pair<std::string, std::string_view>> files_in(Bytes bytes);

/// Calls `read`, which may throw log::BadInput: of one line that can be printed, begins with the
/// path, and is short.
template <typename Read>
void read_or_refuse(const std::filesystem::path& path, Read&& read) {
  try {
    read();
  } catch (const log::BadInput& refused) {
    const std::string message = refused.what();
    require(message.starts_with(log::printable(path.string())));
    require(log::printable(message) == message);
    require(message.size() < 4096);
  }
}

}  // namespace halfscope::fuzz
