// SPDX-License-Identifier: Apache-2.0
// ZIP archives made by hand, so that every field can be wrong. Layout: PKWARE APPNOTE 6.3.
#pragma once

#include <boost/crc.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "temp_folder.hpp"

namespace halfscope::test {

/// A member; what is set here is written even where it is not true.
struct ZipMember {
  std::string name;
  std::string packed;
  int method = 0;  ///< 0 stored, 8 deflated
  std::optional<std::uint64_t> unpacked_size = {};
  std::optional<std::uint32_t> crc = {};
  bool zip64 = false;  ///< sizes in the ZIP64 extra field
  int flags = 0;       ///< bit 0: encrypted
  std::optional<std::uint64_t> packed_size = {};
};

inline std::uint32_t crc32_of(const std::string& bytes) {
  boost::crc_32_type crc;
  crc.process_bytes(bytes.data(), bytes.size());
  return crc.checksum();
}

/// A deflate stream that codes nothing: stored blocks (RFC 1951, 3.2.4) of at most 65,535 bytes.
inline std::string deflate_stored(const std::string& bytes) {
  std::string out;
  std::size_t at = 0;
  do {
    const std::size_t length = std::min<std::size_t>(bytes.size() - at, 65535);
    out += at + length == bytes.size() ? '\x01' : '\x00';
    out += little_endian(length, 2) + little_endian(~length & 0xFFFF, 2) + bytes.substr(at, length);
    at += length;
  } while (at < bytes.size());
  return out;
}

/// Fields that the local header and the directory share, then the extra field's length.
inline std::string zip_fields(const ZipMember& m) {
  const std::uint64_t packed = m.packed_size.value_or(m.packed.size());
  const std::uint64_t unpacked = m.unpacked_size.value_or(m.packed.size());
  return little_endian(45, 2) + little_endian(static_cast<unsigned>(m.flags), 2) +
         little_endian(static_cast<unsigned>(m.method), 2) + std::string(4, '\0') +
         little_endian(m.crc.value_or(crc32_of(m.packed)), 4) +
         little_endian(m.zip64 ? 0xFFFFFFFF : packed, 4) +
         little_endian(m.zip64 ? 0xFFFFFFFF : unpacked, 4) + little_endian(m.name.size(), 2) +
         little_endian(m.zip64 ? 20 : 0, 2);
}

inline std::string zip64_extra(const ZipMember& m) {
  if (!m.zip64) return "";
  return little_endian(1, 2) + little_endian(16, 2) +
         little_endian(m.unpacked_size.value_or(m.packed.size()), 8) +
         little_endian(m.packed_size.value_or(m.packed.size()), 8);
}

inline std::string zip_of(const std::vector<ZipMember>& members) {
  std::string bytes, directory;
  for (const ZipMember& m : members) {
    directory += "PK\x01\x02" + little_endian(45, 2) + zip_fields(m) + std::string(10, '\0') +
                 little_endian(bytes.size(), 4) + m.name + zip64_extra(m);
    bytes += "PK\x03\x04" + zip_fields(m) + m.name + zip64_extra(m) + m.packed;
  }
  const std::string count = little_endian(members.size(), 2);
  return bytes + directory + "PK\x05\x06" + std::string(4, '\0') + count + count +
         little_endian(directory.size(), 4) + little_endian(bytes.size(), 4) + std::string(2, '\0');
}

}  // namespace halfscope::test
