// SPDX-License-Identifier: Apache-2.0
#include "cli/gates/junit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <pugixml.hpp>
#include <sstream>

#include "cli/options/output.hpp"
#include "halfscope/log/error.hpp"

namespace halfscope::cli::gates {
namespace {

/// Returns text that XML 1.0 can contain: valid UTF-8 without control characters, U+FFFE and
/// U+FFFF, which cannot be escaped (XML 1.0, 2.2). pugixml escapes the markup.
std::string xml_text(std::string_view text) {
  std::string safe = log::printable(text);
  for (const auto& [bytes, shown] :
       {std::pair("\xEF\xBF\xBE", "\\u{FFFE}"), std::pair("\xEF\xBF\xBF", "\\u{FFFF}")}) {
    for (std::size_t at = 0; (at = safe.find(bytes, at)) != std::string::npos;) {
      safe.replace(at, 3, shown);
    }
  }
  return safe;
}

void set(pugi::xml_node node, const char* name, std::string_view value) {
  node.append_attribute(name).set_value(xml_text(value).c_str());
}

bool is_failure(const GateTest& test) {
  return test.outcome == Outcome::violated || test.outcome == Outcome::undecided;
}

void set_counts(pugi::xml_node node, const std::vector<const GateTest*>& tests) {
  const auto count = [&](auto&& which) {
    return std::to_string(std::count_if(tests.begin(), tests.end(), which));
  };
  set(node, "tests", std::to_string(tests.size()));
  set(node, "failures", count([](const GateTest* t) { return is_failure(*t); }));
  set(node, "errors", "0");
  set(node, "skipped", count([](const GateTest* t) { return t->outcome == Outcome::not_tested; }));
}

void add_case(pugi::xml_node suite, const GateTest& test) {
  pugi::xml_node node = suite.append_child("testcase");
  set(node, "classname", test.log);
  const std::string_view whole = test.of_log ? "log" : "recommendation";
  set(node, "name", test.name.empty() ? whole : test.name);
  if (test.outcome == Outcome::not_tested) {
    set(node.append_child("skipped"), "message", test.text);
  } else if (is_failure(test)) {
    pugi::xml_node failure = node.append_child("failure");
    set(failure, "type", test.outcome == Outcome::undecided ? "undecided" : "violated");
    set(failure, "message", test.text);
    failure.text().set(xml_text(test.line()).c_str());
  }
}

}  // namespace

std::string junit_text(std::string_view command, const GateTests& tests) {
  pugi::xml_document document;
  pugi::xml_node root = document.append_child("testsuites");
  set(root, "name", fmt::format("halfscope {}", command));
  std::vector<const GateTest*> all;
  for (const GateTest& test : tests) all.push_back(&test);
  set_counts(root, all);
  // Tests of the same condition are adjacent.
  for (auto begin = all.begin(); begin != all.end();) {
    const auto end = std::find_if(
        begin, all.end(), [&](const GateTest* t) { return t->condition != (*begin)->condition; });
    pugi::xml_node suite = root.append_child("testsuite");
    set(suite, "name", (*begin)->condition_text);
    set_counts(suite, {begin, end});
    for (; begin != end; ++begin) add_case(suite, **begin);
  }
  std::ostringstream text;
  document.save(text, " ");
  return text.str();
}

void write_junit(const std::string& file, std::string_view command, const GateTests& tests) {
  if (!file.empty()) options::write_output(file, junit_text(command, tests));
}

}  // namespace halfscope::cli::gates
