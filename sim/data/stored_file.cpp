// SPDX-License-Identifier: Apache-2.0
#include "sim/data/stored_file.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "halfscope/log/error.hpp"

namespace halfscope::sim::data {
namespace {

constexpr std::uint64_t kChunk = std::uint64_t{1} << 20;

gzFile handle(void* file) { return static_cast<gzFile>(file); }

}  // namespace

void StoredFile::Close::operator()(void* file) const { gzclose_r(handle(file)); }

StoredFile::StoredFile(const std::filesystem::path& path) : name_(log::printable(path.string())) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) refuse("there is no such file");
  if (!std::filesystem::is_regular_file(status)) refuse("it is not a regular file");
  errno = 0;
  file_.reset(gzopen(path.c_str(), "rb"));
  if (!file_) refuse("it cannot be opened: " + std::generic_category().message(errno));
}

void StoredFile::refuse(const std::string& why) const {
  throw log::BadInput(fmt::format("{}: {}", name_, why));
}

std::vector<std::uint8_t> StoredFile::read(std::uint64_t most) {
  std::vector<std::uint8_t> bytes;
  while (bytes.size() < most) {
    const std::size_t before = bytes.size();
    const std::uint64_t wanted = std::min(most - before, kChunk);
    bytes.resize(before + wanted);
    errno = 0;
    const int got =
        gzread(handle(file_.get()), bytes.data() + before, static_cast<unsigned>(wanted));
    int code = Z_OK;
    const char* const message = gzerror(handle(file_.get()), &code);
    bytes.resize(before + static_cast<std::size_t>(std::max(got, 0)));
    // For a truncated file, zlib returns the data it has, with Z_BUF_ERROR.
    if (code == Z_BUF_ERROR) {
      refuse("the gzip file ends too early, it is cut short: copy or download it again");
    }
    if (code == Z_ERRNO) refuse("it cannot be read: " + std::generic_category().message(errno));
    if (got < 0 || code != Z_OK) {
      refuse(fmt::format("the gzip file is damaged ({}): copy or download it again",
                         log::printable(message)));
    }
    if (static_cast<std::uint64_t>(got) < wanted) break;
  }
  return bytes;
}

std::vector<std::uint8_t> StoredFile::read_all(std::uint64_t count, const std::string& what) {
  std::vector<std::uint8_t> bytes = read(count);
  require(bytes.size(), count, what);
  return bytes;
}

std::vector<std::uint8_t> StoredFile::read_rest(std::uint64_t count, const std::string& what) {
  std::vector<std::uint8_t> bytes = read(count + 1);
  if (bytes.size() > count)
    refuse(fmt::format("it is longer than the {} bytes of {}", count, what));
  require(bytes.size(), count, what);
  return bytes;
}

void StoredFile::require(std::uint64_t found, std::uint64_t count, const std::string& what) const {
  if (found == count) return;
  refuse(fmt::format("it ends too early: {} of the {} bytes of {} are there", found, count, what));
}

void StoredFile::end(const std::string& wanted) {
  if (!read(1).empty()) refuse("it is longer than " + wanted);
}

std::optional<std::filesystem::path> find_stored(const std::filesystem::path& folder,
                                                 const std::string& name) {
  for (const char* suffix : {"", ".gz"}) {
    std::error_code error;
    std::filesystem::path path = folder / (name + suffix);
    if (std::filesystem::is_regular_file(path, error)) return path;
  }
  return std::nullopt;
}

}  // namespace halfscope::sim::data
