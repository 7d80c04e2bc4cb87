// SPDX-License-Identifier: Apache-2.0
// A fuzz target: a file that begins with HALFSCOPE_FUZZ_TARGET(name) { ... } and is named
// fuzz_<name>.cpp. With libFuzzer each is a program; without it all are linked into one test, which
// replays what was found before (test_regressions.cpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace halfscope::fuzz {

using Bytes = std::span<const std::uint8_t>;

/// Reads any bytes, and returns where they were read or refused as they should be; aborts
/// otherwise.
struct Target {
  std::string_view name;
  void (*run)(Bytes bytes);
};

/// Those linked into this program.
inline std::vector<Target>& targets() {
  static std::vector<Target> all;
  return all;
}

struct Registration {
  explicit Registration(const Target& target) { targets().push_back(target); }
};

}  // namespace halfscope::fuzz

#ifdef HALFSCOPE_LIBFUZZER
#define HALFSCOPE_FUZZ_TARGET(name)                                                   \
  static void run_##name(halfscope::fuzz::Bytes bytes);                               \
  extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);  \
  extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) { \
    run_##name({data, size});                                                         \
    return 0;                                                                         \
  }                                                                                   \
  static void run_##name([[maybe_unused]] halfscope::fuzz::Bytes bytes)
#else
#define HALFSCOPE_FUZZ_TARGET(name)                                                     \
  static void run_##name(halfscope::fuzz::Bytes bytes);                                 \
  static const halfscope::fuzz::Registration kRegistration_##name({#name, run_##name}); \
  static void run_##name([[maybe_unused]] halfscope::fuzz::Bytes bytes)
#endif
