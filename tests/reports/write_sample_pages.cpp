// SPDX-License-Identifier: Apache-2.0
// Writes pages of studies put together by hand into a folder (tests/python/test_page_study.py).
#include <cstdio>

#include "reports/page.hpp"
#include "reports/sample_study.hpp"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: write_sample_pages FOLDER\n", stderr);
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  using halfscope::reports::write_report;
  write_report(sample::full_study(folder / "log"), "Everything", folder / "full.html");
  write_report(sample::hostile_study(folder / "hostile-log"), "Names", folder / "hostile.html");
  return 0;
}
