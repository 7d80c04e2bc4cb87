// SPDX-License-Identifier: Apache-2.0
// Reads the members of a ZIP archive by its central directory. Names of members are never used as
// paths on disk, so any name is safe. Format: PKWARE APPNOTE 6.3, including ZIP64.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "halfscope/log/mapped_file.hpp"

struct zip;
struct zip_error;
struct zip_file;

namespace halfscope::analyzers::readers::tensors {

/// A member as the directory describes it, its sizes checked against the file.
struct ZipMember {
  std::uint64_t index = 0;
  std::string name;            ///< unique in the archive
  std::uint64_t packed = 0;    ///< bytes in the archive
  std::uint64_t unpacked = 0;  ///< bytes, unpacked
  std::uint32_t crc = 0;       ///< checksum of the unpacked bytes
  bool stored = true;          ///< true if not compressed; false if deflated
};

/// A range of bytes of an archive: offset of the first byte, and number of bytes.
struct ZipRange {
  std::uint64_t begin = 0, size = 0;
};

/// An open ZIP archive. The constructors read the directory and no data. They throw log::BadInput
/// if a member is encrypted, compressed by another method than deflate, or claims a larger unpacked
/// size than its packed bytes can hold. Not for use by two threads at once.
class ZipArchive {
 public:
  /// `wanted` is the expected kind of file, for error messages: "an NPZ file".
  ZipArchive(const log::OpenPath& path, std::string wanted);
  /// Opens an archive that is a part of a file. A part of size 0 stands for the whole file.
  ZipArchive(std::shared_ptr<const log::MappedFile> file, ZipRange part, std::string wanted);
  ~ZipArchive();
  ZipArchive(const ZipArchive&) = delete;
  ZipArchive& operator=(const ZipArchive&) = delete;

  std::span<const ZipMember> members() const { return members_; }
  /// The printable name of the file.
  const std::string& file() const { return mapped_->name(); }
  /// Size of the archive in bytes.
  std::uint64_t file_bytes() const { return part_.size; }
  /// Returns the beginning of messages about a member. For arrays, its name is without ".npy".
  std::string place(const ZipMember& member) const;

  /// Returns the range of a stored member's bytes. Does not check the checksum.
  ZipRange stored(const ZipMember& member) const;
  /// Returns bytes of the archive, as they are in the file.
  log::FileBytes bytes(const ZipRange& range) const;
  /// Returns a member's first unpacked bytes, at most `most`. Throws log::BadInput.
  std::vector<std::byte> beginning(const ZipMember& member, std::size_t most) const;
  /// Returns all unpacked bytes of a member. Throws log::BadInput if the checksum differs.
  log::FileBytes whole(const ZipMember& member) const;

 private:
  struct Source;
  struct CloseZip {
    void operator()(zip* archive) const;
  };
  struct CloseMember {
    void operator()(zip_file* member) const;
  };
  using OpenMember = std::unique_ptr<zip_file, CloseMember>;

  void open();
  ZipMember describe(std::uint64_t index) const;
  void check(const ZipMember& member, unsigned method) const;
  void check_all() const;
  OpenMember start(const ZipMember& member) const;
  void read(zip_file* open, std::byte* to, std::size_t size, const ZipMember& member) const;
  std::shared_ptr<const std::byte[]> unpack(const ZipMember& member) const;
  std::shared_ptr<const std::byte[]> unpack_to_file(const ZipMember& member) const;
  void check_end(zip_file* open, const ZipMember& member) const;
  [[noreturn]] void refuse_zip(zip_error* error) const;
  [[noreturn]] void refuse_data(std::string_view found, const ZipMember& member) const;

  std::shared_ptr<const log::MappedFile> mapped_;
  ZipRange part_;  ///< the archive in the file
  std::string wanted_;
  std::unique_ptr<Source> source_;  // declared before zip_, which reads from it until it is closed
  std::unique_ptr<zip, CloseZip> zip_;
  std::vector<ZipMember> members_;
};

}  // namespace halfscope::analyzers::readers::tensors
