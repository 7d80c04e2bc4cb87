// SPDX-License-Identifier: Apache-2.0
// Writes pages of studies put together by hand into a folder (tests/python/test_page_study.py,
// test_page_gaps.py).
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "reports/answer/gaps.hpp"
#include "reports/page/page.hpp"
#include "reports/sample_foreign.hpp"
#include "reports/sample_study.hpp"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: write_sample_pages FOLDER\n", stderr);
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  using halfscope::reports::page::write_report;
  write_report(sample::full_study(folder / "log"), "Everything", folder / "full.html");
  write_report(sample::hostile_study(folder / "hostile-log"), "Names", folder / "hostile.html");
  write_report(sample::tensorboard_study(), "TensorBoard", folder / "tensorboard.html");
  write_report(sample::linear_study(), "Equal buckets", folder / "linear.html");
  nlohmann::ordered_json lines;  // by whose log it is (tests/python/test_recording_lines.py)
  using halfscope::reports::answer::Framework;
  const std::pair<const char*, Framework> frameworks[] = {{"PyTorch", Framework::pytorch},
                                                          {"DeepSpeed", Framework::deepspeed},
                                                          {"TensorFlow", Framework::tensorflow},
                                                          {"Paddle", Framework::paddle}};
  for (const auto& [name, framework] : frameworks) {
    lines[name] = halfscope::reports::answer::recording_for(framework).lines;
  }
  std::ofstream(folder / "recording.json") << lines.dump();
  return 0;
}
