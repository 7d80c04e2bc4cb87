// SPDX-License-Identifier: Apache-2.0
// Any bytes at all, as each kind of tensor file: they are read or refused by a message of one line,
// and nothing else happens. Views lie inside what was read; what safetensors reads it also writes.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include "analyzers/readers/numpy_file.hpp"
#include "halfscope/log/error.hpp"
#include "halfscope/log/safetensors.hpp"

namespace {

using namespace halfscope;

/// The input as a file that is never on a disk.
struct MemoryFile {
  MemoryFile(const std::uint8_t* bytes, std::size_t size) : number(::memfd_create("input", 0)) {
    require(number >= 0 && ::write(number, bytes, size) == static_cast<ssize_t>(size));
    path = "/proc/self/fd/" + std::to_string(number);
  }
  ~MemoryFile() { ::close(number); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  static void require(bool holds) {
    if (!holds) std::abort();
  }

  int number;
  std::string path;
};

struct Contents {
  std::size_t bytes = 0;
  std::uint64_t sum = 0;  ///< of all bytes
  bool operator==(const Contents&) const = default;
};

/// Touches every byte, so that the address sanitizer sees a view that leaves its tensor.
Contents contents_of(const log::TensorFile& file) {
  Contents contents;
  file.for_each([&](const log::NamedTensor& tensor) {
    MemoryFile::require(log::element_count(tensor.shape) == tensor.view.count);
    for (std::size_t i = 0; i < tensor.view.bytes(); ++i) {
      contents.sum += std::to_integer<unsigned>(tensor.view.data[i]);
    }
    contents.bytes += tensor.view.bytes();
  });
  return contents;
}

/// A little-endian number of the input; both headers begin with one.
std::uint64_t number_at(const std::uint8_t* bytes, std::size_t at, std::size_t width) {
  std::uint64_t value = 0;
  while (width-- > 0) value = value << 8 | bytes[at + width];
  return value;
}

template <typename Read>
void read_or_refuse(const std::string& path, Read&& read) {
  try {
    read();
  } catch (const log::BadInput& refused) {
    const std::string message = refused.what();
    MemoryFile::require(message.starts_with(path) && log::printable(message) == message);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const MemoryFile input(bytes, size);
  read_or_refuse(input.path, [&] {
    const log::Safetensors file(input.path);
    // A page that is mapped beyond the end of the file can be read, so it must be counted.
    MemoryFile::require(8 + number_at(bytes, 0, 8) + contents_of(file).bytes <= size);
    static const std::string copy = "/tmp/halfscope-fuzz-" + std::to_string(::getpid());
    log::write_safetensors(copy, file.tensors(), file.metadata());
    MemoryFile::require(contents_of(log::Safetensors(copy)) == contents_of(file));
    ::unlink(copy.c_str());
  });
  read_or_refuse(input.path, [&] {
    const std::size_t read = contents_of(*readers::open_npy(input.path)).bytes;
    const std::size_t width = bytes[6] == 1 ? 2 : 4;  // of the header's length, by the version
    MemoryFile::require(8 + width + number_at(bytes, 8, width) + read <= size);
  });
  read_or_refuse(input.path, [&] { contents_of(*readers::open_npz(input.path)); });
  return 0;
}
