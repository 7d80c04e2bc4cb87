// SPDX-License-Identifier: Apache-2.0
#include "input.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <fstream>
#include <set>

namespace halfscope::fuzz {

namespace fs = std::filesystem;

void require(bool holds) {
  if (!holds) std::abort();
}

MemoryFile::MemoryFile(std::string_view bytes) : number_(::memfd_create("input", 0)) {
  require(number_ >= 0);
  require(::write(number_, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  path_ = "/proc/self/fd/" + std::to_string(number_);
}

MemoryFile::~MemoryFile() { ::close(number_); }

Folder::Folder() {
  static const bool memory = fs::is_directory("/dev/shm");
  const fs::path parent = memory ? fs::path("/dev/shm") : fs::temp_directory_path();
  std::string name = (parent / "halfscope-fuzz-XXXXXX").string();
  require(::mkdtemp(name.data()) != nullptr);
  path_ = name;
}

Folder::~Folder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

void Folder::write(const std::string& name, std::string_view bytes) const {
  const fs::path file = path_ / name;
  fs::create_directories(file.parent_path());
  std::ofstream out(file, std::ios::binary);
  out << bytes;
  require(out.flush().good());
}

std::uint64_t Cursor::number(std::size_t width) {
  const std::string_view bytes = text(width);
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) {
    value = value << 8 | static_cast<unsigned char>(bytes[i]);
  }
  return value;
}

double Cursor::real() { return std::bit_cast<double>(number(8)); }

std::string_view Cursor::text(std::size_t most) {
  const std::string_view taken = text_.substr(0, most);
  text_.remove_prefix(taken.size());
  return taken;
}

std::vector<std::pair<std::string, std::string_view>> files_in(Bytes bytes) {
  constexpr std::size_t kMost = 8;
  std::vector<std::pair<std::string, std::string_view>> files;
  std::set<std::string> names;
  std::string_view rest(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  while (!rest.empty() && files.size() < kMost) {
    const std::string_view one = rest.substr(0, rest.find('\x1E'));
    rest.remove_prefix(std::min(one.size() + 1, rest.size()));
    std::string name(one.substr(0, std::min<std::size_t>(one.find('\n'), 100)));
    std::replace_if(
        name.begin(), name.end(), [](char c) { return c == '/' || c == '\0'; }, '_');
    if (name.empty() || name == "." || name == "..") name = "log";
    const std::size_t line_end = one.find('\n');
    const bool is_line = line_end != one.npos;
    if (names.insert(name).second) {
      files.emplace_back(name, is_line ? one.substr(line_end + 1) : std::string_view());
    }
  }
  return files;
}

}  // namespace halfscope::fuzz
