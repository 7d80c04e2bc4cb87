// SPDX-License-Identifier: Apache-2.0
#include "halfscope/table/packed_numbers.hpp"

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "catch.hpp"

namespace test_packed_numbers {

namespace hs = halfscope;

constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();

TEST_CASE("packed numbers: naturals take a byte for seven bits", "[table]") {
  struct Row {
    std::uint64_t number;
    std::size_t bytes;
  };
  const Row row = GENERATE(values<Row>({{0, 1},
                                        {0x7F, 1},
                                        {0x80, 2},
                                        {0x3FFF, 2},
                                        {0x4000, 3},
                                        {std::uint64_t{1} << 62, 9},
                                        {std::uint64_t{1} << 63, 10},
                                        {kMost, 10}}));
  std::vector<std::byte> bytes;
  hs::Packer(bytes).natural(row.number);
  CHECK(bytes.size() == row.bytes);
  hs::Unpacker from(bytes.data());
  CHECK(from.natural() == row.number);
  CHECK(from.at() == bytes.data() + bytes.size());
}

TEST_CASE("packed numbers: small integers of either sign take one byte", "[table]") {
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  std::vector<std::byte> bytes;
  hs::Packer to(bytes);
  for (const std::int64_t n : {-64, -1, 0, 1, 63}) to.integer(n);
  CHECK(bytes.size() == 5);
  for (const std::int64_t n : {std::int64_t{64}, kLeast, -(kLeast + 1)}) to.integer(n);
  hs::Unpacker from(bytes.data());
  for (const std::int64_t n : {-64, -1, 0, 1, 63}) CHECK(from.integer() == n);
  for (const std::int64_t n : {std::int64_t{64}, kLeast, -(kLeast + 1)}) {
    CHECK(from.integer() == n);
  }
}

TEST_CASE("packed numbers: reals keep their bits, intervals their ends", "[table]") {
  std::vector<std::byte> bytes;
  hs::Packer to(bytes);
  to.real(-0.0);
  to.real(0x1p-1074);
  to.interval({3, kMost});
  to.real(std::numeric_limits<double>::quiet_NaN());
  hs::Unpacker from(bytes.data());
  CHECK(std::signbit(from.real()));
  CHECK(from.real() == 0x1p-1074);
  CHECK(from.interval() == hs::Interval(3, kMost));
  CHECK(std::isnan(from.real()));
}

TEST_CASE("packed numbers: wide ones lose the zero bytes at their ends alone", "[table]") {
  using Words = std::array<std::uint64_t, 3>;
  struct Row {
    Words words;
    std::size_t bytes;  // with the two that say which
  };
  const Row row = GENERATE(values<Row>({{{0, 0, 0}, 2},
                                        {{1, 0, 0}, 3},
                                        {{0, 0x100, 0}, 3},
                                        {{0xFF00000000000000, 0, 0x5}, 2 + 10},
                                        {{kMost, kMost, kMost}, 2 + 24},
                                        {{0, 0, std::uint64_t{1} << 63}, 3}}));
  std::vector<std::byte> bytes;
  hs::Packer(bytes).wide(row.words);
  CHECK(bytes.size() == row.bytes);
  Words words = {7, 7, 7};
  hs::Unpacker from(bytes.data());
  from.wide(words);
  CHECK(words == row.words);
  CHECK(from.at() == bytes.data() + bytes.size());
}

}  // namespace test_packed_numbers
