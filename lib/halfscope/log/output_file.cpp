// SPDX-License-Identifier: Apache-2.0
#include "halfscope/log/output_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <system_error>

#include "halfscope/log/error.hpp"

namespace halfscope::log {
namespace fs = std::filesystem;

OutputFile::OutputFile(const fs::path& target) : target_(target) {
  std::error_code ignored;
  if (fs::is_symlink(target_, ignored) && fs::exists(target_, ignored)) {
    target_ = fs::canonical(target_);  // replace what the link names, not the link
  }
  const fs::file_status status = fs::status(target_, ignored);
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    // Renaming onto a device would replace it.
    throw BadInput(
        fmt::format("{}: is a folder, pipe or device, expected a file to write; name a file",
                    printable(target.string())));
  }
  open_partial();
}

OutputFile::~OutputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!partial_.empty()) ::unlink(partial_.c_str());
}

// The name is new every time, so that two writers never share one and a leftover is never opened.
void OutputFile::open_partial() {
  static std::atomic<unsigned> serial{0};
  do {
    partial_ = target_;
    partial_.replace_filename(
        fmt::format(".{}.{}-{}.partial", target_.filename().string(), ::getpid(), serial++));
    descriptor_ = ::open(partial_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  } while (descriptor_ < 0 && errno == EEXIST);
  if (descriptor_ < 0) {
    partial_.clear();  // not ours to remove
    fail(errno);
  }
}

void OutputFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail(errno);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void OutputFile::commit() {
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
