// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "reports/page/island.hpp"

#include "catch.hpp"

using halfscope::reports::page::gzip_base64;
using halfscope::reports::page::json_island;
using halfscope::reports::page::text_island;
using nlohmann::ordered_json;

TEST_CASE("nothing in the data ends an island or opens a comment", "[reports][island]") {
  const std::string nasty = "</script><!--<script>&\"\xe2\x80\xa8";
  const std::string island = json_island("data", {{"name", nasty}});
  const std::string open = "<script type=\"application/json\" id=\"data\">", close = "</script>\n";
  REQUIRE(island.substr(0, open.size()) == open);
  REQUIRE(island.substr(island.size() - close.size()) == close);
  const std::string inside = island.substr(open.size(), island.size() - open.size() - close.size());
  CHECK(inside.find('<') == std::string::npos);
  CHECK(ordered_json::parse(inside)["name"] == nasty);
}

TEST_CASE("bytes that are no UTF-8 do not stop a report", "[reports][island]") {
  CHECK_NOTHROW(json_island("data", {{"name", "a\xff"}}));
  CHECK(text_island("csv", "a,b\r\n").find("\"a,b\\r\\n\"") != std::string::npos);
}

TEST_CASE("a long island is compressed and says so", "[reports][island]") {
  const std::string island = text_island("long", std::string(3 << 20, 'x'));
  CHECK(island.find("data-encoding=\"gzip+base64\"") != std::string::npos);
  CHECK(island.size() < 10000);
}

TEST_CASE("base64 is padded to whole groups", "[reports][island]") {
  for (std::size_t length = 0; length < 12; ++length) {
    const std::string text = gzip_base64(std::string(length, 'x'));
    CHECK(text.size() % 4 == 0);
    CHECK(text.substr(0, 4) == "H4sI");  // 1f 8b 08 00: gzip, deflate, no flags
    CHECK(text.find('=') >= text.size() - 2);
  }
}
