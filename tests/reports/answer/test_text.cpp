// SPDX-License-Identifier: Apache-2.0
#include "reports/answer/text.hpp"

#include <limits>

#include "catch.hpp"

namespace test_text {

using namespace halfscope;
using namespace halfscope::reports;

TEST_CASE("a signal-to-noise ratio has one digit after the point", "[reports]") {
  CHECK(answer::decibels_text(11.26) == "11.3 dB");
  CHECK(answer::decibels_text(-180) == "-180.0 dB");
  CHECK(answer::decibels_text(std::numeric_limits<double>::infinity()) == "exact");
}

TEST_CASE("a share is never printed as a zero or a whole that it is not", "[reports][table]") {
  struct Row {
    const char* what;
    std::uint64_t count, of;
    const char* text;
  };
  const Row row = GENERATE(values<Row>({
      {"exactly none", 0, 7, "0 %"},
      {"exactly all", 7, 7, "100 %"},
      {"one of a billion", 1, 1000000000, "< 0.01 %"},
      {"one of 2^64 - 1: the quotient is tiny, not zero", 1, UINT64_MAX, "< 0.01 %"},
      {"all but one of 2^64 - 1: the quotient rounds to 1", UINT64_MAX - 1, UINT64_MAX,
       "> 99.99 %"},
      {"all but one of a billion", 999999999, 1000000000, "> 99.99 %"},
      {"just under the last that is printed", 99, 1000000, "< 0.01 %"},
      {"the smallest that is printed", 100, 1000000, "0.010 %"},
      {"the target", 1, 1000, "0.10 %"},
      {"a few per cent", 123, 10000, "1.23 %"},
      {"a third", 1, 3, "33.3 %"},
      {"nearly all", 9995, 10000, "99.95 %"},
      {"of nothing", 0, 0, "no values"},
  }));
  CAPTURE(row.what);
  CHECK(answer::share_text(row.count, row.of) == row.text);
}

TEST_CASE("bounds are shown as bounds", "[reports][table]") {
  CHECK(answer::share_text(Interval(12, 34), 1000) == "1.20 % to 3.40 %");
  CHECK(answer::share_text(Interval(12, 12), 1000) == "1.20 %");
  CHECK(answer::share_text(Interval(0, 1), 1000000) == "< 0.01 %");
  CHECK(answer::share_text(Interval(999999, 1000000), 1000000) == "> 99.99 %");
  CHECK(answer::share_range_text(0.99999, 1) == "> 99.99 %");
  CHECK(answer::narrow_range_text(0, 0.00001) == "< 0.01 %");
  CHECK(answer::narrow_range_text(0.012, 0.034) == "1.20 to 3.40 %");
  CHECK(answer::share_range_text(0.012, 0.034) == "1.20 % to 3.40 %");
  CHECK(answer::share_range_text(std::numeric_limits<double>::quiet_NaN(), 0.5) ==
        "no values to 50.0 %");
  CHECK(answer::count_text(Interval(1200, 1300)) == "1,200 to 1,300");
  CHECK(answer::count_text(Interval(1200)) == "1,200");
}

TEST_CASE("counts have thousands separators", "[reports][table]") {
  CHECK(answer::count_text(std::uint64_t{0}) == "0");
  CHECK(answer::count_text(std::uint64_t{999}) == "999");
  CHECK(answer::count_text(std::uint64_t{1000}) == "1,000");
  CHECK(answer::count_text(std::uint64_t{123456}) == "123,456");
  CHECK(answer::count_text(std::uint64_t{1234567}) == "1,234,567");
  CHECK(answer::count_text(UINT64_MAX) == "18,446,744,073,709,551,615");
  CHECK(answer::plural(1, "step") == "1 step");
  CHECK(answer::plural(2000, "step") == "2,000 steps");
}

TEST_CASE("scales are written as powers of two", "[reports][table]") {
  CHECK(answer::power_text(0) == "1");
  CHECK(answer::power_text(10) == "1024 (2^10)");
  CHECK(answer::power_text(40) == "1099511627776 (2^40)");
  CHECK(answer::power_text(-3) == "2^-3");
  CHECK(answer::power_text(70) == "2^70");
  CHECK(answer::scale_text(1024.0) == "1024 (2^10)");
  CHECK(answer::scale_text(0.125) == "2^-3");
  CHECK(answer::scale_text(1000.5) == "1000.5");
  CHECK(answer::scale_text(1e-320) == "1e-320");  // subnormal, no power of two
}

TEST_CASE("magnitudes come with their exponent", "[reports][table]") {
  CHECK(answer::magnitude_text(0.03125) == "0.0312 (2^-5.0)");
  CHECK(answer::magnitude_text(1417.3) == "1417 (2^10.5)");
  CHECK(answer::magnitude_text(0x1p-149) == "1.4e-45 (2^-149.0)");
  CHECK(answer::magnitude_text(0.0) == "0");
  CHECK(answer::magnitude_text(std::numeric_limits<double>::infinity()) == "inf");
}

TEST_CASE("names are text in HTML", "[reports]") {
  CHECK(answer::html_escape("<a href=\"x\">&'") == "&lt;a href=&quot;x&quot;&gt;&amp;&#39;");
  CHECK(answer::html_name("</script><script>") == "&lt;/script&gt;&lt;script&gt;");
  const std::string shown = answer::html_name("a\x1b[31mb\nc\xe2\x80\xaez\xff");
  for (const char c : shown) CHECK(static_cast<unsigned char>(c) >= 0x20);
  CHECK(shown.find("\xe2\x80\xae") == std::string::npos);  // right-to-left override
  CHECK(shown.find('\xff') == std::string::npos);
}

}  // namespace test_text
