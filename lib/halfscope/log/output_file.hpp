// SPDX-License-Identifier: Apache-2.0
// A file that is written completely or not at all.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>

namespace halfscope::log {

/// Throws BadInput if `target` exists and is not a regular file: a folder or device cannot be
/// replaced, and opening a pipe may block forever.
void require_file_or_nothing(const std::filesystem::path& target);

/// Returns the index in `known` of the path's ending (".html"), in any case; 0 if the path has
/// none. Throws std::invalid_argument for any other ending.
std::size_t require_ending(const std::filesystem::path& path,
                           std::span<const std::string_view> known);

/// A file that `commit` renames onto its target, with the permissions of an existing target.
/// Without `commit`, or if the process ends before, the target is unchanged and no other file
/// remains. (On a file system without unnamed files, a killed process leaves a `.partial` file
/// behind.) If the target exists, the new bytes are on the disk before the rename. Throws BadInput
/// that names the target if it cannot be created or written.
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
  std::filesystem::path partial_;  ///< empty while the file has no name
  int descriptor_ = -1;
};

}  // namespace halfscope::log
