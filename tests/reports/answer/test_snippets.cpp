// SPDX-License-Identifier: Apache-2.0
#include "reports/answer/snippets.hpp"

#include <algorithm>
#include <vector>

#include "analyzers/scalar_run.hpp"
#include "catch.hpp"

namespace test_snippets {

using namespace halfscope;
using namespace halfscope::reports::answer;
using test::study_of;
using test::write_run;

TEST_CASE("every framework has lines for both", "[snippets]") {
  const test::TempFolder folder;
  const auto found = study_of({write_run(folder / "run", std::vector<double>(20, 0.5), {})});
  const std::vector<Snippet> all = snippets(found);
  CHECK(all.size() == framework_names().size());
  for (const Snippet& snippet : all) {
    CAPTURE(snippet.framework);
    CHECK(snippet.fixed.lines.empty() == (snippet.framework == "fairseq"));  // always dynamic
    CHECK_FALSE(snippet.dynamic.lines.empty());
  }
  CHECK(snippet_of(all, found)->framework == "pytorch");
}

TEST_CASE("a policy that makes no step has no dynamic lines", "[snippets]") {
  const test::TempFolder folder;
  const auto found =
      study_of({write_run(folder / "run", std::vector<double>(20, 1e7), {{"policy", "keras2"}})});
  const std::vector<Snippet> all = snippets(found);
  const Snippet* const keras2 = snippet_of(all, found, "tensorflow");
  REQUIRE(keras2 != nullptr);
  CHECK(keras2->dynamic.lines.empty());
  CHECK_FALSE(keras2->fixed.lines.empty());
  CHECK_FALSE(snippet_of(all, found, "pytorch")->dynamic.lines.empty());
}

TEST_CASE("the lines of the run's own policy are shown", "[snippets]") {
  const test::TempFolder folder;
  const std::vector<double> peaks(200, 0.01);
  const auto apex = study_of({write_run(folder / "apex", peaks, {{"policy", "apex"}})});
  CHECK(snippet_of(snippets(apex), apex)->framework == "apex");
  const auto paddle = study_of({write_run(folder / "paddle", peaks, {{"policy", "paddle"}})});
  const std::vector<Snippet> all = snippets(paddle);
  const Snippet* const own = snippet_of(all, paddle);
  CHECK(own->framework == "paddle");
  CHECK(own->dynamic.lines.starts_with("scaler = paddle.amp.GradScaler("));
  CHECK(own->fixed.lines.empty());
  CHECK(snippet_of(all, paddle, "mxnet")->framework == "mxnet");
}

TEST_CASE("a start above the ceiling is pasted as the ceiling, where it is", "[snippets]") {
  const test::TempFolder folder;
  const auto found = study_of({write_run(folder / "run", std::vector<double>(200, 0.01),
                                         {{"policy", "apex"}, {"max_loss_scale", 64}})});
  const std::vector<Snippet> all = snippets(found);
  CHECK(snippet_of(all, found)->dynamic.lines.find("65536") == std::string::npos);
  CHECK(found.advice.dynamic[0].init == 64);
}

TEST_CASE("a note belongs to its lines", "[snippets]") {
  const test::TempFolder folder;
  const auto found = study_of({write_run(folder / "run", std::vector<double>(20, 0.5), {})});
  const std::vector<Snippet> all = snippets(found);
  const Snippet* const apex = snippet_of(all, found, "apex");
  CHECK(apex->fixed.note.starts_with("A static scale is never checked"));
  CHECK(apex->fixed.note.find("attributes") == std::string::npos);
  CHECK(apex->dynamic.note.find("static") == std::string::npos);
  CHECK(apex->dynamic.note.find("attributes are set") != std::string::npos);
}

}  // namespace test_snippets
