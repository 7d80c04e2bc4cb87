// SPDX-License-Identifier: Apache-2.0
#include "reports/answer/scale.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "analyzers/scalar_run.hpp"
#include "catch.hpp"
#include "reports/answer/answer.hpp"

namespace test_scale {

using namespace halfscope;
using namespace halfscope::reports::answer;
using test::study_of;
using test::write_run;

std::string default_fine_text(const halfscope::analyzers::Study& study) {
  return default_fine(study) ? std::string(kDefaultFine) : "";
}

TEST_CASE("PyTorch's defaults are fine where none does better", "[summary]") {
  const test::TempFolder folder;
  const auto text = [&](const char* name, double largest, const nlohmann::json& policy) {
    const std::vector<double> peaks(200, largest);
    return default_fine_text(study_of({write_run(folder / name, peaks, policy)}));
  };
  CHECK(text("fits", 0.25, {}) ==
        "PyTorch's default GradScaler() is fine for this run: change nothing.");
  CHECK(text("starts too high", 64, {}).empty());
  CHECK(text("another policy", 0.25, {{"policy", "deepspeed"}}).empty());
  CHECK(text("other settings", 0.25, {{"policy", "torch"}, {"init_scale", 1024}}).empty());
}

TEST_CASE("nothing is fine beside NaN, nor of several runs", "[summary]") {
  const test::TempFolder folder;
  std::vector<double> peaks(200, 0.25);
  const auto sound = write_run(folder / "sound", peaks, {});
  CHECK_FALSE(default_fine_text(study_of({sound})).empty());
  CHECK(default_fine_text(study_of({sound, write_run(folder / "other", peaks, {})})).empty());
  for (std::size_t i = 100; i < peaks.size(); ++i) peaks[i] = NAN;
  CHECK(default_fine_text(study_of({write_run(folder / "nan", peaks, {})})).empty());
}

TEST_CASE("a scale that a step's scalars limit names their role", "[summary]") {
  analyzers::Study study;
  study.advice.static_log2 = 15;
  study.advice.headroom_bits = 1;
  analyzers::recommend::Limit limit;
  limit.name = "weight_grad";
  limit.step = 3;
  limit.max_abs = 0.5;
  limit.from_scalars = true;
  study.advice.limited_by = limit;
  CHECK(std::ranges::count(details(study),
                           "Limited by the weight gradients at step 3: their largest magnitude is "
                           "0.5 (2^-1.0), which leaves 1.0 binades below overflow.") == 1);
}

}  // namespace test_scale
