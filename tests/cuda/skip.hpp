// SPDX-License-Identifier: Apache-2.0
// Catch2 2 cannot skip: CTest reports a test that prints this line as skipped.
#pragma once

#include <iostream>

#include "cuda/device.hpp"

inline bool skipped() {
  if (device::available()) return false;
  std::cout << "skipped: no CUDA device\n";
  return true;
}
