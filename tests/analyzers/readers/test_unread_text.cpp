// SPDX-License-Identifier: Apache-2.0
// Patterns that refusals of text files suggest.
#include "analyzers/readers/unread_text.hpp"

#include <cctype>
#include <random>
#include <string>

#include "analyzers/readers/lines/pattern.hpp"
#include "catch.hpp"

namespace halfscope::analyzers::readers::test_unread_text {
namespace {

TEST_CASE("a suggested pattern has names where the table knows them", "[table]") {
  struct Row {
    const char *line, *pattern;
    bool step, measure;
  };
  const Row rows[] = {
      {"iter 3010: foo 1.2", "iter {step}: foo {}", true, false},
      {"it=00010|objective 2.31|mult 65536", "it={step}|objective {}|mult {}", true, false},
      {"12:00:01  iter   3,010 cost 1.2s  lr 1e-5", "iter {step} cost {}s lr {lr}", true, false},
      {"global_step 5, step 1/8, loss nan (2.5)",
       "global_step {global_step}, step {step}/8, loss "
       "{loss}",
       true, true},
      {"loss 1 loss 2 fp16 grad scale 64", "loss {loss} loss {} fp16 grad scale {loss_scale}",
       false, true},
      {"epoch 0.5 iter 1.5 x", "epoch {epoch} iter {}", false, false},
      {"val_loss {3}", "val_loss {{{evaluation_loss}", false, false},
      {"overflow: True overflow 3", "overflow: {overflow} overflow {}", false, false},
      {"all done", "", false, false},
      {"[1/5] 12 34", "", false, false},
      {"a\x1b[0m 5", "", false, false},
  };
  for (const Row& row : rows) {
    INFO(row.line);
    const SuggestedPattern found = pattern_for(row.line);
    CHECK(found.text == row.pattern);
    CHECK(found.step == row.step);
    CHECK(found.measure == row.measure);
  }
}

TEST_CASE("a suggested pattern matches its line, with a name for any of its numbers") {
  const char* const parts[] = {"step", "loss",  " ",     "  ",   "\t", "=",  ": ", "|",
                               "1",    "2.5",   "-3e-5", "nan ", "{",  "}",  "'",  "\"",
                               ",",    "1,024", "10/20", "ms",   "K",  "lr", "[",  "]",
                               "inf ", "foo",   "_",     "-",    "."};
  std::mt19937 random(7);
  std::uniform_int_distribution<std::size_t> part(0, std::size(parts) - 1), length(1, 14);
  int matched = 0;
  std::string wrong;
  for (int i = 0; i < 20'000; ++i) {
    std::string line;
    for (std::size_t n = length(random); n > 0; --n) line += parts[part(random)];
    const SuggestedPattern found = pattern_for(line);
    std::string pattern = found.text;
    const std::size_t at = pattern.find("{}");
    if (at != std::string::npos) pattern.insert(at + 1, "grad_norm");
    if (at == std::string::npos && !found.measure) continue;  // it is not suggested
    try {
      if (!lines::Pattern(pattern).match(line).empty())
        ++matched;
      else if (wrong.empty())
        wrong = line + " by " + pattern;
    } catch (const frames::BadOption& error) {
      if (wrong.empty()) wrong = line + ": " + error.what();
    }
  }
  CHECK(wrong == "");
  CHECK(matched > 2000);
}

}  // namespace
}  // namespace halfscope::analyzers::readers::test_unread_text
