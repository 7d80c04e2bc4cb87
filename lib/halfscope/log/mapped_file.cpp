// SPDX-License-Identifier: Apache-2.0
#include "halfscope/log/mapped_file.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <new>

#include "halfscope/log/error.hpp"
#include "halfscope/log/read_file.hpp"

namespace halfscope::log {
namespace {

/// Memory for bytes of a file. Large pages make filling it several times as fast.
std::shared_ptr<std::byte[]> memory_for(std::size_t size) {
  constexpr std::size_t kLargePage = std::size_t{1} << 21;
  if (size < 2 * kLargePage) return std::make_shared_for_overwrite<std::byte[]>(size);
  constexpr std::align_val_t alignment{kLargePage};
  auto* const memory = static_cast<std::byte*>(::operator new(size, alignment));
  ::madvise(memory, size, MADV_HUGEPAGE);  // a kernel without large pages ignores this
  return {memory, [](std::byte* bytes) { ::operator delete(bytes, alignment); }};
}

}  // namespace

MappedFile::MappedFile(const OpenPath& path, bool by_need)
    : name_(printable(path.path.string())), file_(open_regular(path)), size_(file_->size()) {
  if (!by_need) file_->need(0, size_);
  // mmap rejects an empty range.
  if (size_ == 0 || file_->is_in_memory() || !watched_.reserve(name_)) return;
  const auto size = static_cast<std::size_t>(size_);
  void* const memory = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file_->number(), 0);
  if (memory == MAP_FAILED) return;  // a file system without mmap: its files are read
  mapped_ = {static_cast<const std::byte*>(memory), size};
  watched_.watch(mapped_);
}

MappedFile::~MappedFile() {
  if (!mapped_.empty()) ::munmap(const_cast<std::byte*>(mapped_.data()), mapped_.size());
}

FileBytes MappedFile::range(std::uint64_t begin, std::uint64_t end) const {
  const auto size = static_cast<std::size_t>(end - begin);
  if (const auto bytes = file_->in_memory(begin, end); !bytes.empty()) return {nullptr, bytes};
  if (!mapped_.empty()) {
    file_->need(begin, end);
    return {nullptr, mapped_.subspan(static_cast<std::size_t>(begin), size)};
  }
  auto memory = memory_for(size);
  auto* const bytes = memory.get();
  read_exactly(*file_, name_, begin, reinterpret_cast<char*>(bytes), size);
  return {std::move(memory), {bytes, size}};
}

bool MappedFile::copy(std::uint64_t begin, std::span<std::byte> to) const {
  if (!mapped_.empty()) {
    std::ranges::copy(mapped_.subspan(static_cast<std::size_t>(begin), to.size()), to.begin());
    return true;
  }
  return file_->read(begin, reinterpret_cast<char*>(to.data()), to.size()) == to.size();
}

void MappedFile::check_size() const {
  if (file_->size() < size_) refuse_cut(name_);
}

void MappedFile::leave(std::uint64_t begin, std::uint64_t end) const {
  // The pages were never written, so the system can load them again. madvise may fail.
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const std::uint64_t first = begin / page * page;
  const std::uint64_t last = std::min(end, size_) / page * page;
  if (first >= last) return;
  if (!mapped_.empty()) {
    auto* const start = const_cast<std::byte*>(mapped_.data());
    ::madvise(start + first, static_cast<std::size_t>(last - first), MADV_DONTNEED);
  }
  file_->leave(first, last);
}

}  // namespace halfscope::log
