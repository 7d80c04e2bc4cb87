// SPDX-License-Identifier: Apache-2.0
// What is packed here was packed by gzip, xz, bzip2 and zstd.
#include "analyzers/readers/input/unpack.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "analyzers/readers/input/content.hpp"
#include "analyzers/readers/input/open_input.hpp"
#include "analyzers/readers/input/text_encoding.hpp"
#include "catch.hpp"
#include "temp_folder.hpp"

namespace test_unpack {

using namespace halfscope;
using namespace halfscope::analyzers::readers::input;

constexpr std::string_view kLine =
    "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 32768.0\n";

struct Row {
  Packing packing;
  std::string_view hex;
};
constexpr Row kRows[] = {
    {Packing::gzip,
     "1f8b0800000000000003732f4a4cc94ccd2b51c82f4b2d4acbc92fd7535008cece2c28c8cc4b57282e492dd051c8c"
     "9"
     "2f2e56284e4ecc492d523050284a4d294d06492284154af2158c8dcccd2cf40cb8001570f53150000000"},
    {Packing::xz,
     "fd377a585a000004e6d6b4460200210116000000742fe5a3e0004f00485d00239c88265f73b6d2139644d5daa0bf8"
     "c"
     "6e56e021b0dc02c3131e5d8ad9002bfbfd157eaa63fa72605b34d5ea9386a2366eba3d2d317e8d7e9674a70e2c5c8"
     "4"
     "e77b3b9f35aa9e0000004387ccbeead33431000164507c4a7c4a1fb6f37d010000000004595a"},
    {Packing::bzip2,
     "425a68393141592653590ed29fbd00000bdf800010400559c0008008002faddf802000486a83f5468347a9ea320f4"
     "6"
     "a0d4c93d13436900193d09f7cc3a834181933ac744b578552b31b8af694c5a57b9714d66f58840d30aaa109f24364"
     "3"
     "d818605479d30171772453850900ed29fbd0"},
    {Packing::zstd,
     "28b52ffd045845020052c40f1690b90d8844a251d8b25f1a87bbe8c0d26f0a9ebc7c40003a065108c3f79db554cb4"
     "2"
     "3e3aa326d5ef5e7de0f0f5594be75241fed3ac268cccfe35cc95f8080100a9c68402967b233d"},
};

std::string bytes_of(std::string_view hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  }
  return bytes;
}

std::string text_of(const log::OpenFile& file) {
  std::string text(file.size(), '\0');
  text.resize(file.read(0, text.data(), text.size()));
  return text;
}

std::string kind_of(std::string_view bytes) {
  const test::TempFolder folder;
  return content_of(log::OpenFile(folder.write("file", bytes))).is;
}

TEST_CASE("unpack: each format, whole and cut at every byte") {
  const test::TempFolder folder;
  for (const Row& row : kRows) {
    const std::string packed = bytes_of(row.hex);
    CHECK(packing_of(packed) == row.packing);
    std::string text;
    const auto sink = [&](std::string_view bytes) {
      text += bytes;
      return true;
    };
    CHECK(unpack(log::OpenFile(folder.write("whole", packed)), row.packing, sink) == Ending::whole);
    CHECK(text == kLine);
    for (std::size_t size = 0; size < packed.size(); ++size) {
      text.clear();
      const log::OpenFile cut(folder.write("cut", packed.substr(0, size)));
      CHECK(unpack(cut, row.packing, sink) == Ending::cut);
      CHECK(kLine.starts_with(text));
    }
  }
}

TEST_CASE("unpack: what follows the data is not of it") {
  const test::TempFolder folder;
  for (const Row& row : kRows) {
    if (row.packing == Packing::xz) continue;  // refuses it, as its format wants
    const auto file = open_input(folder.write("file", bytes_of(row.hex) + "something else"));
    CHECK(text_of(*file) == kLine);
    CHECK(file->remarks().refusal.empty());
  }
}

TEST_CASE("unpack: a file that is surely no log stays packed") {
  const test::TempFolder folder;
  const auto plain = open_input(folder.write("plain", kLine));
  CHECK(text_of(*plain) == kLine);
  CHECK(plain->remarks().notes.empty());
  CHECK(open_input(folder / "none")->error() != 0);
}

TEST_CASE("text: by its control characters") {
  CHECK(is_text(kLine));
  CHECK(is_text(std::string(1000, '\0') + std::string(kLine)));
  CHECK(is_text("\x1b[31m \xC3\xBC \xFF\r\n"));
  CHECK_FALSE(is_text(""));
  CHECK_FALSE(is_text(std::string(100, '\0')));
  CHECK_FALSE(is_text(bytes_of(kRows[1].hex)));
}

TEST_CASE("text: its encoding") {
  std::string low, high;
  for (const char c : kLine) {
    low += {c, '\0'};
    high += {'\0', c};
  }
  CHECK(encoding_of(kLine) == Encoding::plain);
  CHECK(encoding_of("\xEF\xBB\xBFstep,loss\n") == Encoding::utf8_bom);
  CHECK(encoding_of(low) == Encoding::utf16_le);
  CHECK(encoding_of(high) == Encoding::utf16_be);
  const test::TempFolder folder;
  // A surrogate alone is no character, and neither is half of one at the end.
  const auto file =
      open_input(folder.write("file", "\xFF\xFE" + low + std::string("\x00\xD8", 2) + low + "x"));
  CHECK(text_of(*file) ==
        std::string(kLine) + "\xEF\xBF\xBD" + std::string(kLine) + "\xEF\xBF\xBD");
}

TEST_CASE("content: what a file is") {
  CHECK(kind_of("") == "empty");
  CHECK(kind_of("\x89PNG\r\n\x1a\n") == "a PNG image");
  CHECK(kind_of(" \n<!DOCTYPE HTML>") == "an HTML page");
  CHECK(kind_of(std::string(300, '\0')).starts_with("nothing but zeros"));
  CHECK(kind_of(bytes_of(kRows[0].hex)) == "gzip of text without any line that Halfscope knows");
  CHECK(kind_of("\x01\x02\x03\x04") == "binary data of an unknown kind");
}

}  // namespace test_unpack
