// SPDX-License-Identifier: Apache-2.0
// Files as data sets have them: plain or gzip, read from the front.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace halfscope::sim::data {

/// More of one file is not read into memory.
inline constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 30;

/// Throws log::BadInput naming the file: one that cannot be opened or read, or a gzip file that
/// ends too early or is damaged.
class StoredFile {
 public:
  explicit StoredFile(const std::filesystem::path& path);

  /// Up to `most` of the bytes that follow; memory grows with what is there, not with `most`.
  std::vector<std::uint8_t> read(std::uint64_t most);
  /// Exactly that many; `what` they are goes into the message where there are fewer.
  std::vector<std::uint8_t> read_all(std::uint64_t count, const std::string& what);
  /// The same, and the file ends there. It asks for a byte more at once: else zlib, once it has
  /// handed out the last byte, does not tell that the file's own checks are missing.
  std::vector<std::uint8_t> read_rest(std::uint64_t count, const std::string& what);
  /// Throws where bytes are left; `wanted` says how many there should have been.
  void end(const std::string& wanted);

  /// The file as messages name it.
  const std::string& name() const { return name_; }
  [[noreturn]] void refuse(const std::string& why) const;

 private:
  struct Close {
    void operator()(void* file) const;
  };
  void require(std::uint64_t found, std::uint64_t count, const std::string& what) const;

  std::string name_;
  std::unique_ptr<void, Close> file_;
};

/// `folder`/`name` or `folder`/`name`.gz, the first that there is.
std::optional<std::filesystem::path> find_stored(const std::filesystem::path& folder,
                                                 const std::string& name);

}  // namespace halfscope::sim::data
