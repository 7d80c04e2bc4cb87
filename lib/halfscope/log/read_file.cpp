// SPDX-License-Identifier: Apache-2.0
#include "halfscope/log/read_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "halfscope/log/error.hpp"

namespace halfscope::log {
namespace {

[[noreturn]] void refuse_unreadable(const std::string& name, int error) {
  throw BadInput(
      fmt::format("{}: cannot be read ({}), expected a file; check the path and its rights", name,
                  std::generic_category().message(error)));
}

}  // namespace

void refuse_cut(const std::string& name) { throw BadInput(fmt::format("{}: {}", name, kCutShort)); }

std::shared_ptr<const OpenFile> open_regular(const OpenPath& path) {
  const std::string name = printable(path.path.string());
  auto file = path.open();
  if (file->error() != 0) refuse_unreadable(name, file->error());
  if (file->is_folder()) {
    throw BadInput(fmt::format("{}: is a folder, expected a file; name the file in it", name));
  }
  if (!file->is_regular()) {
    throw BadInput(fmt::format("{}: is a pipe or device, expected a file; store it first", name));
  }
  return file;
}

void read_exactly(const OpenFile& file, const std::string& name, std::uint64_t offset, char* to,
                  std::size_t size) {
  if (file.read(offset, to, size) == size) return;
  if (errno != 0) refuse_unreadable(name, errno);
  refuse_cut(name);
}

std::string read_text(const OpenPath& path, std::size_t most) {
  const auto file = open_regular(path);
  std::string text(static_cast<std::size_t>(std::min<std::uint64_t>(file->size(), most)), '\0');
  read_exactly(*file, printable(path.path.string()), 0, text.data(), text.size());
  return text;
}

}  // namespace halfscope::log
