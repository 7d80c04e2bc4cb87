// SPDX-License-Identifier: Apache-2.0
// A file that appears whole or not at all.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>

namespace halfscope::log {

/// Written beside its target and renamed onto it by `commit`; without `commit` it is removed and a
/// target that was there stays as it was. Throws BadInput, naming the target, when it cannot be
/// made or written.
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
  void open_partial();
  [[noreturn]] void fail(int error) const;

  std::filesystem::path target_;
  std::filesystem::path partial_;
  int descriptor_ = -1;
};

}  // namespace halfscope::log
