// SPDX-License-Identifier: Apache-2.0
// Sequential reading of data files, plain or gzip.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace halfscope::sim::data {

/// Largest number of bytes that is read from one file.
inline constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 30;

/// A data file. Members throw log::BadInput, which names the file, if it cannot be opened or read,
/// or if it is a damaged or incomplete gzip file.
class StoredFile {
 public:
  explicit StoredFile(const std::filesystem::path& path);

  /// Reads up to `most` of the following bytes. Memory use grows with the bytes that exist.
  std::vector<std::uint8_t> read(std::uint64_t most);
  /// Reads exactly `count` bytes. If there are fewer, the error message names them as `what`.
  std::vector<std::uint8_t> read_all(std::uint64_t count, const std::string& what);
  /// Reads exactly `count` bytes and requires the end of the file after them. It requests one byte
  /// more in the same call; otherwise zlib does not report a missing gzip checksum.
  std::vector<std::uint8_t> read_rest(std::uint64_t count, const std::string& what);
  /// Throws if bytes follow. The message has `wanted` as the expected number.
  void end(const std::string& wanted);

  /// The file's name for messages.
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

/// Returns `folder`/`name`, or `folder`/`name`.gz; nullopt if neither exists.
std::optional<std::filesystem::path> find_stored(const std::filesystem::path& folder,
                                                 const std::string& name);

}  // namespace halfscope::sim::data
