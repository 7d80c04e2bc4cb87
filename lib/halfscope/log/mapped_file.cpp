// SPDX-License-Identifier: Apache-2.0
#include "halfscope/log/mapped_file.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "halfscope/log/error.hpp"

namespace halfscope::log {
namespace {

[[noreturn]] void cannot_read(const std::string& name, int error) {
  throw BadInput(
      fmt::format("{}: cannot be read ({}), expected a file; check the path and its rights", name,
                  std::generic_category().message(error)));
}

}  // namespace

MappedFile::MappedFile(const OpenPath& path, bool by_need) : name_(printable(path.path.string())) {
  const auto file = path.open();
  if (file->error() != 0) cannot_read(name_, file->error());
  if (file->is_folder()) {
    throw BadInput(fmt::format("{}: is a folder, expected a file; name the file in it", name_));
  }
  if (!file->is_regular()) {
    throw BadInput(fmt::format("{}: is a pipe or device, expected a file; store it first", name_));
  }
  const auto size = static_cast<std::size_t>(file->size());
  if (file->arrives()) arriving_ = file;
  if (!by_need) need(0, size);
  if (size == 0) return;  // mmap refuses an empty range; an empty span says the same
  void* const memory = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file->number(), 0);
  if (memory == MAP_FAILED) cannot_read(name_, errno);
  bytes_ = {static_cast<const std::byte*>(memory), size};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

void MappedFile::need(std::size_t begin, std::size_t end) const {
  if (arriving_) arriving_->need(begin, end);
}

void MappedFile::leave(std::size_t begin, std::size_t end) const {
  // A file's pages that were never written come back as they were. What the kernel refuses stays.
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t first = begin / page * page;
  const std::size_t last = std::min(end, bytes_.size()) / page * page;
  if (first >= last) return;
  ::madvise(const_cast<std::byte*>(bytes_.data()) + first, last - first, MADV_DONTNEED);
  if (arriving_) arriving_->leave(first, last);
}

}  // namespace halfscope::log
