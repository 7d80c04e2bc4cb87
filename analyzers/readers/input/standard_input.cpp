// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/input/standard_input.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <string>
#include <system_error>

#include "analyzers/readers/input/memory_input.hpp"
#include "analyzers/readers/input/spool.hpp"
#include "halfscope/log/error.hpp"

namespace halfscope::analyzers::readers::input {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kWayOut =
    "pipe a log into it ('COMMAND | halfscope analyze -'), or name a file";

/// The descriptor of the file with standard input; -1 before take_standard_input().
std::atomic<int>& taken() {
  static std::atomic<int> descriptor = -1;
  return descriptor;
}

[[noreturn]] void refuse(std::string_view found) {
  throw log::BadInput(fmt::format("{}: {}, expected a log; {}", kStandardInput, found, kWayOut));
}

int spooled() {
  Spool spool{std::string(kStandardInput)};
  std::string piece(std::size_t{1} << 18, '\0');
  while (true) {
    const ::ssize_t got = ::read(STDIN_FILENO, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) refuse(fmt::format("cannot be read ({})", std::generic_category().message(errno)));
    if (got == 0) return spool.release();
    spool.write(std::string_view(piece).substr(0, static_cast<std::size_t>(got)));
  }
}

}  // namespace

void take_standard_input() {
  if (taken() >= 0) return;
  struct stat status = {};
  if (::fstat(STDIN_FILENO, &status) != 0) refuse("is closed");
  if (::isatty(STDIN_FILENO) != 0) refuse("is a terminal");
  if (S_ISDIR(status.st_mode)) refuse("is a folder");
  // If another program has read the beginning of a file, only the rest is the log.
  const bool whole_file = S_ISREG(status.st_mode) && ::lseek(STDIN_FILENO, 0, SEEK_CUR) == 0;
  taken() = whole_file ? ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3) : spooled();
}

bool is_standard_input(const fs::path& path) { return taken() >= 0 && path == kStandardInput; }

bool is_file(const fs::path& path) {
  std::error_code unreadable;
  return is_standard_input(path) || memory_input(path) || fs::is_regular_file(path, unreadable);
}

bool exists(const fs::path& path) {
  std::error_code unreadable;
  return is_standard_input(path) || memory_input(path) || fs::exists(path, unreadable);
}

int standard_input() { return ::fcntl(taken(), F_DUPFD_CLOEXEC, 3); }

}  // namespace halfscope::analyzers::readers::input
