// SPDX-License-Identifier: Apache-2.0
// Writes the sample logs into a folder, for tests in other languages (tests/python/test_page.py).
#include <cstdio>

#include "reports/sample.hpp"
#include "reports/sample_policies.hpp"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: write_sample_logs FOLDER\n", stderr);
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  sample::training_run(folder / "training");
  sample::hostile_run(folder / "hostile");
  sample::odd_run(folder / "odd");
  sample::no_gradients_run(folder / "no-gradients");
  sample::all_zero_run(folder / "all-zero");
  sample::large_run(folder / "large", 1000);
  sample::scaled_by_1000_run(folder / "intervals");
  sample::restless_run(folder / "restless");
  sample::broken_run(folder / "broken");
  sample::calm_run(folder / "calm");
  sample::gap_run(folder / "gap");
  sample::long_run(folder / "long", 40000);
  return 0;
}
