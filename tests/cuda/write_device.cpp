// SPDX-License-Identifier: Apache-2.0
// Writes what the first CUDA device says of itself, as JSON to standard output: what
// tests/cuda/h100.json is to hold, and what explains timings. Exits with 3 and one line where there
// is no device.
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "cuda/graph_api.hpp"
#include "halfscope/device/runtime.hpp"
#include "sim/backend/backend.hpp"

namespace {

using namespace halfscope;

nlohmann::json runtime_properties() {
  cudaDeviceProp of{};
  cuda::check(cudaGetDeviceProperties(&of, 0), "cudaGetDeviceProperties");
  int driver = 0, runtime = 0, core_clock = 0, memory_clock = 0;
  cuda::check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  cuda::check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  cuda::check(cudaDeviceGetAttribute(&core_clock, cudaDevAttrClockRate, 0), "cudaDevAttrClockRate");
  cuda::check(cudaDeviceGetAttribute(&memory_clock, cudaDevAttrMemoryClockRate, 0),
              "cudaDevAttrMemoryClockRate");
  return {{"name", of.name},
          {"compute_capability", fmt::format("{}.{}", of.major, of.minor)},
          {"multiprocessors", of.multiProcessorCount},
          {"memory_bytes", of.totalGlobalMem},
          {"l2_bytes", of.l2CacheSize},
          {"memory_bus_bits", of.memoryBusWidth},
          {"clock_khz", core_clock},
          {"memory_clock_khz", memory_clock},
          {"shared_bytes_per_block", of.sharedMemPerBlock},
          {"shared_bytes_per_block_optin", of.sharedMemPerBlockOptin},
          {"registers_per_block", of.regsPerBlock},
          {"threads_per_multiprocessor", of.maxThreadsPerMultiProcessor},
          {"ecc", of.ECCEnabled != 0},
          {"cuda_driver", fmt::format("{}.{}", driver / 1000, driver % 1000 / 10)},
          {"cuda_runtime", fmt::format("{}.{}", runtime / 1000, runtime % 1000 / 10)}};
}

}  // namespace

int main() {
  if (const std::string why = sim::backend::cudnn_missing_message(); !why.empty()) {
    fmt::print(stderr, "write_device: {}\n", why);
    return 3;
  }
  nlohmann::json all = {{"origin", "written by write_device on the device itself"}};
  int code = 0;
  try {
    all["device"] = runtime_properties();
    all["cudnn_version"] = test::graph_api().version;
    all["cudnn_device_properties"] = nlohmann::json::parse(test::device_properties_json());
  } catch (const std::exception& error) {
    fmt::print(stderr, "write_device: {}\n", error.what());
    code = 1;  // what is known up to here is written all the same
  }
  fmt::print("{}\n", all.dump(2));
  return code;
}
