// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/input/memory_input.hpp"

#include <map>
#include <mutex>
#include <utility>

namespace halfscope::analyzers::readers::input {
namespace {

struct Inputs {
  std::mutex mutex;
  std::map<std::filesystem::path, std::shared_ptr<log::OpenFile>> files;
};

Inputs& inputs() {
  static Inputs all;
  return all;
}

}  // namespace

MemoryInput::MemoryInput(std::filesystem::path path,
                         const std::vector<std::span<const std::byte>>& pieces)
    : path_(std::move(path)) {
  const std::lock_guard lock(inputs().mutex);
  inputs().files.insert_or_assign(path_, std::make_shared<log::OpenFile>(pieces));
}

MemoryInput::~MemoryInput() {
  const std::lock_guard lock(inputs().mutex);
  inputs().files.erase(path_);
}

std::shared_ptr<log::OpenFile> memory_input(const std::filesystem::path& path) {
  const std::lock_guard lock(inputs().mutex);
  const auto found = inputs().files.find(path);
  return found == inputs().files.end() ? nullptr : found->second;
}

}  // namespace halfscope::analyzers::readers::input
