// SPDX-License-Identifier: Apache-2.0
// Modules of a network's text as PyTorch prints it.
#include <nlohmann/json.hpp>

#include "analyzers/underflow/modules.hpp"
#include "catch.hpp"

namespace test_modules {

using namespace halfscope;

analyzers::underflow::LogFindings log_of(const char* text) {
  analyzers::underflow::LogFindings log;
  log.manifest.emplace();
  (*log.manifest->about)["network"] = {{"text", text}};
  return log;
}

TEST_CASE("modules: equal neighbours, which PyTorch prints as one") {
  const analyzers::underflow::Modules modules(
      log_of("GPT(\n"
             "  (blocks): ModuleList(\n"
             "    (0-1): 2 x Block(\n"
             "      (norm): LayerNorm((8,), eps=1e-05)\n"
             "      (heads): ModuleList(\n"
             "        (0-2): 3 x Linear(in_features=8, out_features=2)\n"
             "      )\n"
             "    )\n"
             "    (2): Last(\n"
             "      (norm): RMSNorm((8,))\n"
             "    )\n"
             "  )\n"
             "  (head): Linear(in_features=8, out_features=4)\n"
             ")"));
  CHECK(modules.class_of("blocks.1") == "Block");
  CHECK(modules.class_of("blocks.0.norm") == "LayerNorm");
  CHECK(modules.class_of("blocks.1.heads.2") == "Linear");
  CHECK(modules.class_of("blocks.2.norm") == "RMSNorm");
  CHECK(modules.class_of("blocks.2.heads.0").empty());
  CHECK(modules.class_of("head") == "Linear");
  CHECK(modules.with_class().size() == 16);
}

TEST_CASE("modules: a text that repeats too many is read to there") {
  const analyzers::underflow::Modules modules(
      log_of("A(\n  (first): B()\n  (0-99999): 100000 x C(\n    (0-99999): 100000 x D()\n  )\n)"));
  CHECK(modules.class_of("first") == "B");
  CHECK(modules.with_class().size() < 1'000'001);
}

}  // namespace test_modules
