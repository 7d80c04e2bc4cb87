// SPDX-License-Identifier: Apache-2.0
// probe_tensor_core FOLDER [PART...]: what this GPU's Tensor Cores compute, against the model of
// lib/halfscope/tensor_core. Parts, in their order: mma, chains, tables, gemm, wgmma, bfloat16,
// fp8. Each one runs in a process of its own, so that a fault in one leaves the others alone. Ends
// with 0 where everything is as the model says, 1 where something is not or failed, 2 for bad
// usage, 3 without a GPU.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <exception>
#include <string>
#include <thread>
#include <vector>

#include "cuda/device.hpp"
#include "cuda/tensor_core/part.hpp"

namespace {

struct Part {
  std::string_view name;
  bool (*run)(const std::filesystem::path&);
  unsigned seconds;  ///< its process is ended after so many
};

constexpr Part kParts[] = {
    {"mma", probe::run_mma, 40},       {"chains", probe::run_chains, 25},
    {"tables", probe::run_tables, 15}, {"gemm", probe::run_gemm, 60},
    {"wgmma", probe::run_wgmma, 40},   {"bfloat16", probe::run_bfloat16, 40},
    {"fp8", probe::run_fp8, 60},
};

constexpr const char* kOnly = "--only";  // in this very process

const Part* find(std::string_view name) {
  for (const Part& part : kParts) {
    if (part.name == name) return &part;
  }
  return nullptr;
}

int run_here(const Part& part, const char* folder) {
  if (!device::available()) {
    fmt::print(stderr, "probe_tensor_core: no CUDA device\n");
    return 3;
  }
  alarm(part.seconds);  // what it does not handle ends the process
  try {
    return part.run(folder) ? 0 : 1;
  } catch (const std::exception& error) {
    fmt::print("{}: failed: {}\n", part.name, error.what());
    return 1;
  }
}

int run_child(const Part& part, const char* folder) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child < 0) return 1;
  if (child == 0) {
    const std::string name(part.name);
    execl("/proc/self/exe", "probe_tensor_core", kOnly, folder, name.c_str(), nullptr);
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int run_all(const char* folder, const std::vector<const Part*>& parts) {
  using Clock = std::chrono::steady_clock;
  int result = 0;
  for (const Part* const part : parts) {
    const auto start = Clock::now();
    const int code = run_child(*part, folder);
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    fmt::print("fact: part {} = {} ({:.1f} s)\n", part->name,
               code == 0 ? "as the model says" : fmt::format("ended with {}", code), seconds);
    if (code == 3) return 3;
    if (code != 0) result = 1;
  }
  return result;
}

int usage() {
  fmt::print(stderr,
             "usage: probe_tensor_core FOLDER [mma|chains|tables|gemm|wgmma|bfloat16|fp8]...\n");
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 4 && std::string_view(argv[1]) == kOnly) {
    const Part* const part = find(argv[3]);
    return part == nullptr ? usage() : run_here(*part, argv[2]);
  }
  if (argc < 2 || argv[1][0] == '-') return usage();
  std::vector<const Part*> parts;
  for (int i = 2; i < argc; ++i) {
    parts.push_back(find(argv[i]));
    if (parts.back() == nullptr) return usage();
  }
  if (parts.empty()) {
    for (const Part& part : kParts) parts.push_back(&part);
  }
  std::error_code failed;
  std::filesystem::create_directories(argv[1], failed);
  if (failed) {
    fmt::print(stderr, "probe_tensor_core: {}: {}\n", argv[1], failed.message());
    return 1;
  }
  return run_all(argv[1], parts);
}
