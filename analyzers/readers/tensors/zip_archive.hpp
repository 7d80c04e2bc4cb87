// SPDX-License-Identifier: Apache-2.0
// The members of a ZIP archive, by its central directory. They are bytes under a name: nothing is
// ever written to disk, so that a name may be any path. Format: PKWARE APPNOTE 6.3, ZIP64 included.
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
  std::string name;  ///< every member has another one
  std::uint64_t packed = 0;
  std::uint64_t unpacked = 0;
  std::uint32_t crc = 0;
  bool stored = true;  ///< as it is; else deflated
};

/// A part of an archive: its first byte, and how many there are.
struct ZipRange {
  std::uint64_t begin = 0, size = 0;
};

/// Opening reads the directory and no data. A member is refused that is encrypted, packed by
/// another method than deflate, or claims to unpack to more than its data can hold: before anything
/// is allocated for it. Throws log::BadInput. Not for use by two threads at once.
class ZipArchive {
 public:
  /// `wanted` is what the file should have been, in messages: "an NPZ file".
  ZipArchive(const log::OpenPath& path, std::string wanted);
  /// One that takes this part of a file.
  ZipArchive(std::shared_ptr<const log::MappedFile> file, ZipRange part, std::string wanted);
  ~ZipArchive();
  ZipArchive(const ZipArchive&) = delete;
  ZipArchive& operator=(const ZipArchive&) = delete;

  std::span<const ZipMember> members() const { return members_; }
  /// The file as messages show it.
  const std::string& file() const { return mapped_->name(); }
  std::uint64_t file_bytes() const { return part_.size; }
  /// How messages about a member begin. Of arrays, the name is without ".npy".
  std::string place(const ZipMember& member) const;

  /// Where the bytes of a stored member lie; its checksum is not looked at.
  ZipRange stored(const ZipMember& member) const;
  /// Bytes of the archive, which stay as long as it.
  log::FileBytes bytes(const ZipRange& range) const;
  /// The first bytes, at most `most`.
  std::vector<std::byte> beginning(const ZipMember& member, std::size_t most) const;
  /// All bytes, which have the checksum that the directory names.
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
  ZipRange part_;  ///< of it
  std::string wanted_;
  std::unique_ptr<Source> source_;  // outlives the archive that reads from it
  std::unique_ptr<zip, CloseZip> zip_;
  std::vector<ZipMember> members_;
};

}  // namespace halfscope::analyzers::readers::tensors
