// SPDX-License-Identifier: Apache-2.0
// Functions of the emulated device for Python's ctypes: tests/python/emulated_gpu.py.
#include <cstdint>
#include <string>

#include "cuda/emulated/device.hpp"
#include "cuda/emulated/stream.hpp"

extern "C" {

/// Returns the number of kernels that were started so far.
std::uint64_t halfscope_emulated_launches() { return halfscope::emulated::launches(); }

/// Returns a new stream. It is never destroyed: the process ends by os._exit().
void* halfscope_emulated_stream() { return halfscope::emulated::create_stream(false); }

/// Returns halfscope::emulated::take_problems(). The text is valid until the next call.
const char* halfscope_emulated_problems() {
  static std::string problems;
  problems = halfscope::emulated::take_problems();
  return problems.c_str();
}
}
