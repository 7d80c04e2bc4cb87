// SPDX-License-Identifier: Apache-2.0
#include "halfscope/log/output_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <stdexcept>
#include <string>
#include <system_error>

#include "halfscope/log/error.hpp"
#include "halfscope/log/write_all.hpp"

namespace halfscope::log {
namespace fs = std::filesystem;

/// Folder where Linux lists the process's open files.
static constexpr const char* kOpenFiles = "/proc/self/fd";

std::size_t require_ending(const fs::path& path, std::span<const std::string_view> known) {
  const std::string ending = path.extension().string();
  if (ending.empty()) return 0;
  const auto is_ending = [&](std::string_view each) {
    return std::ranges::equal(each, ending, {}, {},
                              [](unsigned char c) { return std::tolower(c); });
  };
  const auto found = std::ranges::find_if(known, is_ending);
  if (found != known.end()) return static_cast<std::size_t>(found - known.begin());
  throw std::invalid_argument(fmt::format("found '{}', expected a name that ends in {}",
                                          printable(path.string()), fmt::join(known, ", ")));
}

void require_file_or_nothing(const fs::path& target) {
  std::error_code ignored;
  const fs::file_status status = fs::status(target, ignored);
  if (!fs::exists(status) || fs::is_regular_file(status)) return;
  throw BadInput(
      fmt::format("{}: is a folder, pipe or device, expected a file to write; name a file",
                  printable(target.string())));
}

OutputFile::OutputFile(const fs::path& target) : target_(target) {
  std::error_code ignored;
  if (fs::is_symlink(target_, ignored) && fs::exists(target_, ignored)) {
    target_ = fs::canonical(target_);  // replace the file that the link names, not the link
  }
  require_file_or_nothing(target_);
  open_partial();
}

OutputFile::~OutputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!partial_.empty()) ::unlink(partial_.c_str());
}

/// Creates the partial file with `make`, which returns a negative number on failure. Each name is
/// new, so two writers never share a file and an old partial file is never opened.
template <class Make>
int OutputFile::make_partial(const Make& make) {
  static std::atomic<unsigned> serial{0};
  int made = -1;
  do {
    partial_ = target_;
    partial_.replace_filename(fmt::format(".halfscope-{}-{}.partial", ::getpid(), serial++));
    made = make(partial_.c_str());
  } while (made < 0 && errno == EEXIST);
  if (made < 0) {
    partial_.clear();  // not created here, so not to be removed
    fail(errno);
  }
  return made;
}

// Opens an unnamed file, which vanishes if the process ends; with a name if that is not supported.
void OutputFile::open_partial() {
  struct stat before = {};
  const bool is_there = ::stat(target_.c_str(), &before) == 0;
  if (is_there && ::access(target_.c_str(), W_OK) != 0) fail(errno);
  const fs::path folder = target_.has_parent_path() ? target_.parent_path() : ".";
  if (::access(kOpenFiles, X_OK) == 0) {
    descriptor_ = ::open(folder.c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666);
  }
  if (descriptor_ < 0) {
    descriptor_ = make_partial([](const char* name) {
      return ::open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    });
  }
  if (is_there) ::fchmod(descriptor_, before.st_mode & 07777U);
}

void OutputFile::write(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (write_all(descriptor_, text) != text.size()) fail(errno);
}

void OutputFile::commit() {
  if (partial_.empty()) {
    const std::string open = fmt::format("{}/{}", kOpenFiles, descriptor_);
    make_partial([&open](const char* name) {
      return ::linkat(AT_FDCWD, open.c_str(), AT_FDCWD, name, AT_SYMLINK_FOLLOW);
    });
  }
  // Otherwise a crash could lose both files, old and new. Not every file system has fsync.
  const bool replaces = ::access(target_.c_str(), F_OK) == 0;
  if (replaces && ::fsync(descriptor_) != 0 && errno != EINVAL) fail(errno);
  const int closed = ::close(descriptor_);  // network file systems report a full disk here
  descriptor_ = -1;
  if (closed != 0) fail(errno);
  if (::rename(partial_.c_str(), target_.c_str()) != 0) fail(errno);
  partial_.clear();
}

void OutputFile::fail(int error) const {
  throw BadInput(
      fmt::format("{}: cannot be written ({}), expected a folder that exists, may be written to "
                  "and has free space; name another output",
                  printable(target_.string()), std::generic_category().message(error)));
}

}  // namespace halfscope::log
