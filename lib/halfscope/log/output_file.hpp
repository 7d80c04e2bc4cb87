// SPDX-License-Identifier: Apache-2.0
// A file that appears whole or not at all.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>

namespace halfscope::log {

/// Throws BadInput where there is something other than a file: it cannot be replaced, and opening a
/// pipe may wait for ever.
void require_file_or_nothing(const std::filesystem::path& target);

/// Returns which of the known endings (".html") the path has, in letters of either case; 0 if it
/// has none. Throws std::invalid_argument if it has another.
std::size_t require_ending(const std::filesystem::path& path,
                           std::span<const std::string_view> known);

/// Written beside its target and renamed onto it by `commit`, with the permissions of a target that
/// was there; without `commit`, or where the process ends before, nothing is left of it and the
/// target stays as it was. (A file system without unnamed files keeps a `.partial` file of a
/// process that is killed.) Where it replaces a file, its bytes are on the disk before. Throws
/// BadInput, naming the target, when it cannot be made or written.
class OutputFile {
 public:
  explicit OutputFile(const std::filesystem::path& target);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  void commit();

 private:
  template <class Make>
  int make_partial(const Make& make);
  void open_partial();
  [[noreturn]] void fail(int error) const;

  std::filesystem::path target_;
  std::filesystem::path partial_;  ///< empty as long as the file has no name
  int descriptor_ = -1;
};

}  // namespace halfscope::log
