// SPDX-License-Identifier: Apache-2.0
// A ZIP archive with right checksums around an input, which no mutation would find.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analyzers/zip_bytes.hpp"
#include "input.hpp"

namespace halfscope::fuzz {

/// A member of these bytes, stored or deflated.
inline test::ZipMember zip_member(std::string name, std::string_view bytes, bool deflated) {
  const std::string unpacked(bytes);
  test::ZipMember member{std::move(name), deflated ? test::deflate_stored(unpacked) : unpacked};
  member.method = deflated ? 8 : 0;
  member.unpacked_size = unpacked.size();
  member.crc = test::crc32_of(unpacked);
  return member;
}

}  // namespace halfscope::fuzz
