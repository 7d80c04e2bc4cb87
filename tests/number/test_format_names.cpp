// SPDX-License-Identifier: Apache-2.0
#include "halfscope/number/format_names.hpp"

#include "catch.hpp"

namespace test_format_names {

using namespace halfscope;

TEST_CASE("a format has one row, whatever people call it", "[format]") {
  for (const char* name : {"binary16", "fp16", "half", "float16", "f16", "FP16", "Float16"}) {
    CAPTURE(name);
    REQUIRE(format_called(name) != nullptr);
    CHECK(format_called(name)->format == kBinary16);
  }
  CHECK(format_called("BF16")->format == kBfloat16);
  CHECK(format_called("double")->format == kBinary64);
  CHECK(format_called("float8_e4m3fn")->format == kFloat8E4M3);
  for (const NamedFormat& row : kFormats) CHECK(format_called(row.name)->format == row.format);
  for (const char* name : {"", "fp17", "fp8", "mxfp4", "binary16 "}) {
    CHECK(format_called(name) == nullptr);
  }
}

TEST_CASE("a name that no format has is told what to use", "[format]") {
  CHECK(format_names().starts_with("binary16 (fp16, half, float16, f16), bfloat16 (bf16), tf32"));
  CHECK(why_no_format("fp17") == "unknown; use one of " + format_names());
  CHECK(why_no_format("FP8") == "two formats: use e4m3 or e5m2");
  CHECK(why_no_format("mxfp8").starts_with("scaled by blocks"));
}

}  // namespace test_format_names
