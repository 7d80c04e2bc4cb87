// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/input/spool.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "halfscope/log/error.hpp"
#include "halfscope/log/write_all.hpp"

namespace halfscope::analyzers::readers::input {
namespace {

std::filesystem::path folder() {
  std::error_code none;
  const auto found = std::filesystem::temp_directory_path(none);  // $TMPDIR, else /tmp
  return none ? std::filesystem::path("/tmp") : found;
}

/// Returns the descriptor of a new file without a name; -1, with errno set, on failure.
int unnamed_file() {
  const std::filesystem::path in = folder();
  const int made = ::open(in.c_str(), O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
  if (made >= 0) return made;
  std::string name = (in / "halfscope-XXXXXX").string();  // O_TMPFILE may be unsupported
  const int named = ::mkostemp(name.data(), O_CLOEXEC);
  if (named >= 0) ::unlink(name.c_str());
  return named;
}

std::uint64_t free_bytes(int descriptor) {
  struct statvfs about = {};
  if (::fstatvfs(descriptor, &about) != 0) return UINT64_MAX;
  return static_cast<std::uint64_t>(about.f_bavail) * about.f_frsize;
}

}  // namespace

Spool::Spool(std::string shown, std::uint64_t most)
    : shown_(std::move(shown)), most_(most), descriptor_(unnamed_file()) {
  if (descriptor_ < 0) refuse(std::generic_category().message(errno));
  room_ = free_bytes(descriptor_) / 2;
}

Spool::~Spool() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void Spool::refuse(std::string_view found) const {
  throw log::BadInput(
      fmt::format("{}: cannot be stored in '{}' for reading ({}); set TMPDIR to a folder with more "
                  "room, or unpack it there and name that file",
                  shown_, log::printable(folder().string()), found));
}

void Spool::write(std::string_view bytes) {
  if (bytes.size() > most_ - size_) {
    throw log::BadInput(
        fmt::format("{}: unpacks to more than {} bytes, far more than a log's data would; if you "
                    "trust it, unpack it yourself and name that file, or set the environment "
                    "variable HALFSCOPE_UNPACK_LIMIT to more bytes",
                    shown_, most_));
  }
  if (bytes.size() > room_ - std::min(room_, size_)) {
    refuse(fmt::format("{} bytes and more, of {} that it may use", size_ + bytes.size(), room_));
  }
  const std::size_t written = log::write_all(descriptor_, bytes);
  if (written != bytes.size()) refuse(std::generic_category().message(errno));
  size_ += written;
}

int Spool::release() { return std::exchange(descriptor_, -1); }

}  // namespace halfscope::analyzers::readers::input
