// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "reports/page/template.hpp"

#include "catch.hpp"

namespace test_island {

using halfscope::reports::page::gzip_base64;
using halfscope::reports::page::json_island;

const std::string kOpen =
    "<script type=\"application/json\" id=\"data\" data-encoding=\"gzip+base64\">";
const std::string kClose = "</script>\n";

TEST_CASE("nothing in the data ends an island or opens a comment", "[reports][island]") {
  const std::string nasty = "</script><!--<script>&\"\xe2\x80\xa8";
  const std::string island = json_island("data", {{"name", nasty}});
  REQUIRE(island.substr(0, kOpen.size()) == kOpen);
  REQUIRE(island.substr(island.size() - kClose.size()) == kClose);
  const std::string inside =
      island.substr(kOpen.size(), island.size() - kOpen.size() - kClose.size());
  CHECK(inside.find_first_not_of(
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=") ==
        std::string::npos);
  CHECK(inside ==
        gzip_base64("{\"name\":\"</script><!--<script>&\\\"\\u2028\"}"));  // as json_text() escapes
}

TEST_CASE("bytes that are no UTF-8 do not stop a report", "[reports][island]") {
  CHECK_NOTHROW(json_island("data", {{"name", "a\xff"}}));
}

TEST_CASE("every island is compressed and says so", "[reports][island]") {
  CHECK(json_island("data", std::string(3 << 20, 'x')).size() < 10000);
  CHECK(json_island("data", 1).substr(0, kOpen.size()) == kOpen);
}

TEST_CASE("base64 is padded to whole groups", "[reports][island]") {
  for (std::size_t length = 0; length < 12; ++length) {
    const std::string text = gzip_base64(std::string(length, 'x'));
    CHECK(text.size() % 4 == 0);
    CHECK(text.substr(0, 4) == "H4sI");  // 1f 8b 08 00: gzip, deflate, no flags
    CHECK(text.find('=') >= text.size() - 2);
  }
}

}  // namespace test_island
