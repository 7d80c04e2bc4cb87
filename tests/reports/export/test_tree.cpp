// SPDX-License-Identifier: Apache-2.0
// Text and values are filled by the same calls, and say the same.
#include "reports/export/tree.hpp"

#include <nlohmann/json.hpp>
#include <string>

#include "catch.hpp"
#include "reports/export/pieces.hpp"

namespace test_tree {

using namespace halfscope::reports::exports;
using Json = nlohmann::ordered_json;

/// Arrays in objects in arrays in an object.
template <class Out>
void fill(Out& to) {
  to.open({{"name", "a\"b"}});
  to.array("none", [] {});
  to.array("scale", [&] {
    to.repeat(nullptr, 2);
    to.repeat(0.1, 3);
  });
  to.array("parts", [&] {
    for (int part = 0; part < 2; ++part) {
      to.open_element({{"part", part}});
      to.array("steps", [&] {
        to.element(-1);
        to.element(part);
      });
      to.fields({{"last", part}});
      to.close();
    }
  });
  to.fields(Json::object());
  to.fields({{"end", 1.5}, {"more", {1, 2}}});
  to.close();
}

TEST_CASE("values are what the text says", "[reports][json]") {
  std::string text;
  const WriteText write = [&text](std::string_view piece) { text += piece; };
  Pieces pieces(write);
  fill(pieces);
  pieces.flush();
  Tree tree;
  fill(tree);
  const Json made = tree.take();
  REQUIRE(made.size() == 1);
  CHECK(json_text(made.front()) == text);
  CHECK(text ==
        R"({"name":"a\"b","none":[],"scale":[null,null,0.1,0.1,0.1],)"
        R"("parts":[{"part":0,"steps":[-1,0],"last":0},{"part":1,"steps":[-1,1],"last":1}],)"
        R"("end":1.5,"more":[1,2]})");
}

}  // namespace test_tree
