// SPDX-License-Identifier: Apache-2.0
#include "halfscope/number/format.hpp"

#include <cstdint>
#include <iterator>

#include "catch.hpp"
#include "halfscope/number/convert.hpp"
#include "oracle.hpp"

namespace test_format {

using namespace halfscope;

TEST_CASE("every format is what its standard says", "[number][format][table]") {
  struct Row {
    const char* what;
    Format format;
    double smallest_subnormal, smallest_normal, largest;
    std::uint64_t infinity, quiet_nan;
  };
  const Row rows[] = {
      {"binary16", kBinary16, 0x1p-24, 0x1p-14, 65504.0, 0x7C00, 0x7E00},
      {"bfloat16", kBfloat16, 0x1p-133, 0x1p-126, 0x1.FEp127, 0x7F80, 0x7FC0},
      {"tf32", kTf32, 0x1p-136, 0x1p-126, 0x1.FFCp127, 0x3FC00, 0x3FE00},
      {"binary32", kBinary32, 0x1p-149, 0x1p-126, 0x1.FFFFFEp127, 0x7F800000, 0x7FC00000},
      {"binary64", kBinary64, 0x1p-1074, 0x1p-1022, 0x1.FFFFFFFFFFFFFp1023, 0x7FF0000000000000,
       0x7FF8000000000000},
      {"e4m3: no infinity, its place is NaN", kFloat8E4M3, 0x1p-9, 0x1p-6, 448.0, 0x7F, 0x7F},
      {"e5m2", kFloat8E5M2, 0x1p-16, 0x1p-14, 57344.0, 0x7C, 0x7E},
      {"e3m2: no NaN either", kFloat6E3M2, 0.0625, 0.25, 28.0, 0x1F, 0x1F},
      {"e2m3", kFloat6E2M3, 0.125, 1.0, 7.5, 0x1F, 0x1F},
      {"e2m1", kFloat4E2M1, 0.5, 1.0, 6.0, 0x7, 0x7},
  };
  CHECK(std::size(rows) == kFormats.size());
  for (const Row& row : rows) {
    CAPTURE(row.what);
    const Format f = row.format;
    CHECK(to_double(f, 1) == row.smallest_subnormal);
    CHECK(to_double(f, f.fraction_mask() + 1) == row.smallest_normal);
    CHECK(to_double(f, f.largest_finite()) == row.largest);
    CHECK(f.infinity() == row.infinity);
    CHECK(f.quiet_nan() == row.quiet_nan);
  }
}

TEST_CASE("what is derived from (p, emax, width) is the oracle's layout", "[number][format]") {
  CHECK(kFormats.size() == std::size(oracle::kLayouts));
  for (const NamedFormat& row : kFormats) {
    CAPTURE(row.name);
    const oracle::Layout& layout = oracle::layout(row.name);
    const Format f = row.format;
    CHECK(f.exponent_bits() == layout.exponent_bits);
    CHECK(f.fraction_bits() == layout.fraction_bits);
    CHECK(f.emin() == layout.min_exponent());
    CHECK(f.width == layout.width());
    CHECK(f.sign_mask() == layout.sign());
    CHECK(f.largest_finite() == layout.last());
    CHECK(f.has_nan() == (layout.top != oracle::Top::numbers));
    CHECK(f.infinity() == layout.infinity());
    CHECK(f.has_infinity() == (layout.top == oracle::Top::infinity_and_nan));
  }
}

TEST_CASE("formats are found by the name the command line uses", "[number][format]") {
  for (const NamedFormat& row : kFormats) {
    const NamedFormat* found = find_format(row.name);
    REQUIRE(found != nullptr);
    CHECK(found->format == row.format);
  }
  CHECK(find_format("binary17") == nullptr);
  CHECK(find_format("") == nullptr);
  CHECK(find_format("Binary16") == nullptr);
}

}  // namespace test_format
