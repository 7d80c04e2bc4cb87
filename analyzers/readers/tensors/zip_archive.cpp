// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/tensors/zip_archive.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zip.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <unordered_set>
#include <utility>

#include "analyzers/readers/input/spool.hpp"
#include "halfscope/log/error.hpp"
#include "halfscope/log/tensor_file.hpp"
#include "halfscope/log/user_limit.hpp"

namespace halfscope::analyzers::readers::tensors {

using log::BadInput;

namespace {

constexpr std::string_view kArraySuffix = ".npy";

// Deflate codes at most 258 bytes in two bits, so nothing unpacks to more than 1032 times its size.
constexpr std::uint64_t kDeflateLimit = 1032;
// All deflated members together may unpack to this much, or to this many times the file's size.
constexpr std::uint64_t kAnyUnpacked = std::uint64_t{3} << 29;
constexpr std::uint64_t kUnpackedLimit = 200;
// A larger member is unpacked into a file without a name, which is mapped; others into memory.
constexpr std::uint64_t kHeldMember = std::uint64_t{1} << 26;

std::uint32_t crc_of(std::span<const std::byte> bytes) {
  return static_cast<std::uint32_t>(
      crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

}  // namespace

/// Data source of libzip. libzip has no function for the offset of a member's data, so the source
/// records the offset of each read: reading the first byte of a member shows where its data begins.
struct ZipArchive::Source {
  Source(const log::MappedFile& mapped, ZipRange bytes) : file(mapped), part(bytes) {}

  const log::MappedFile& file;
  ZipRange part;
  std::uint64_t at = 0;
  std::uint64_t last_read = 0;  ///< offset of the last read
  zip_error_t error = {};

  zip_int64_t read(void* to, zip_uint64_t length) {
    length = std::min<zip_uint64_t>(length, part.size - at);
    last_read = at;
    const std::span into(static_cast<std::byte*>(to), static_cast<std::size_t>(length));
    if (!file.copy(part.begin + at, into)) {
      zip_error_set(&error, ZIP_ER_READ, 0);
      return -1;
    }
    at += length;
    return static_cast<zip_int64_t>(length);
  }

  zip_int64_t seek(void* arguments, zip_uint64_t length) {
    const zip_int64_t to = zip_source_seek_compute_offset(at, part.size, arguments, length, &error);
    if (to < 0) return -1;
    at = static_cast<zip_uint64_t>(to);
    return 0;
  }

  zip_int64_t describe(void* to) const {
    auto* const status = static_cast<zip_stat_t*>(to);
    zip_stat_init(status);
    status->valid = ZIP_STAT_SIZE;
    status->size = part.size;
    return sizeof(zip_stat_t);
  }

  static zip_int64_t serve(void* state, void* data, zip_uint64_t length, zip_source_cmd_t command) {
    auto* const source = static_cast<Source*>(state);
    switch (command) {
      case ZIP_SOURCE_OPEN: source->at = 0; return 0;
      case ZIP_SOURCE_READ: return source->read(data, length);
      case ZIP_SOURCE_SEEK: return source->seek(data, length);
      case ZIP_SOURCE_TELL: return static_cast<zip_int64_t>(source->at);
      case ZIP_SOURCE_STAT: return source->describe(data);
      case ZIP_SOURCE_ERROR: return zip_error_to_data(&source->error, data, length);
      case ZIP_SOURCE_SUPPORTS:
        return zip_source_make_command_bitmap(
            ZIP_SOURCE_OPEN, ZIP_SOURCE_READ, ZIP_SOURCE_CLOSE, ZIP_SOURCE_STAT, ZIP_SOURCE_ERROR,
            ZIP_SOURCE_FREE, ZIP_SOURCE_SEEK, ZIP_SOURCE_TELL, ZIP_SOURCE_SUPPORTS, -1);
      default: return 0;  // ZIP_SOURCE_CLOSE and ZIP_SOURCE_FREE do nothing
    }
  }
};

void ZipArchive::CloseZip::operator()(zip* archive) const { zip_discard(archive); }
void ZipArchive::CloseMember::operator()(zip_file* member) const { zip_fclose(member); }

ZipArchive::ZipArchive(const log::OpenPath& path, std::string wanted)
    : ZipArchive(std::make_shared<const log::MappedFile>(path), {}, std::move(wanted)) {}

ZipArchive::ZipArchive(std::shared_ptr<const log::MappedFile> file, ZipRange part,
                       std::string wanted)
    : mapped_(std::move(file)),
      part_(part.size == 0 ? ZipRange{0, mapped_->size()} : part),
      wanted_(std::move(wanted)),
      source_(std::make_unique<Source>(*mapped_, part_)) {
  if (part_.size == 0) {  // libzip would treat it as a new archive
    throw BadInput(fmt::format("{}: holds 0 bytes, expected {}; copy or write it again",
                               this->file(), wanted_));
  }
  open();
  const zip_int64_t count = zip_get_num_entries(zip_.get(), 0);
  members_.reserve(static_cast<std::size_t>(count));
  for (zip_int64_t i = 0; i < count; ++i) {
    members_.push_back(describe(static_cast<std::uint64_t>(i)));
  }
  check_all();
}

ZipArchive::~ZipArchive() = default;

void ZipArchive::open() {
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t* const source = zip_source_function_create(Source::serve, source_.get(), &error);
  if (source == nullptr) refuse_zip(&error);
  zip_.reset(zip_open_from_source(source, ZIP_RDONLY, &error));
  if (!zip_) {
    zip_source_free(source);
    refuse_zip(&error);
  }
  zip_error_fini(&error);
}

void ZipArchive::refuse_zip(zip_error* error) const {
  mapped_->check_size();
  const std::string found = log::printable(zip_error_strerror(error));
  zip_error_fini(error);
  throw BadInput(fmt::format(
      "{}: is not a ZIP archive that can be read ({}), expected {}; the file is damaged or "
      "cut short, copy or write it again",
      file(), found, wanted_));
}

ZipMember ZipArchive::describe(std::uint64_t index) const {
  zip_stat_t status;
  zip_stat_init(&status);
  const bool known = zip_stat_index(zip_.get(), index, 0, &status) == 0;
  constexpr zip_uint64_t kNeeded = ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE |
                                   ZIP_STAT_CRC | ZIP_STAT_COMP_METHOD | ZIP_STAT_ENCRYPTION_METHOD;
  if (!known || (status.valid & kNeeded) != kNeeded) {
    throw BadInput(fmt::format(
        "{}: ZIP member {} has no name or size, expected both; the file is damaged, write "
        "it again",
        file(), index));
  }
  ZipMember member{index,       status.name, status.comp_size,
                   status.size, status.crc,  status.comp_method == ZIP_CM_STORE};
  if (status.encryption_method != ZIP_EM_NONE) {
    throw BadInput(fmt::format(
        "{} is encrypted, expected plain data; unpack it and pack it without a password",
        place(member)));
  }
  check(member, status.comp_method);
  return member;
}

void ZipArchive::check(const ZipMember& member, unsigned method) const {
  if (!member.stored && method != ZIP_CM_DEFLATE) {
    throw BadInput(fmt::format(
        "{} is packed by ZIP method {}, expected 0 (stored) or 8 (deflated); write it with "
        "numpy.savez",
        place(member), method));
  }
  if (member.packed > file_bytes()) {
    throw BadInput(
        fmt::format("{} names {} packed bytes, but the file holds {}; the file is damaged, write "
                    "it again",
                    place(member), member.packed, file_bytes()));
  }
  const std::uint64_t times = member.stored ? 1 : kDeflateLimit;
  const bool differ = member.stored && member.unpacked != member.packed;
  if (member.unpacked / times > member.packed || differ) {
    throw BadInput(
        fmt::format("{} claims to unpack from {} bytes to {}, expected {}{} at most; the file is "
                    "damaged or a ZIP "
                    "bomb, write it again with numpy.savez",
                    place(member), member.packed, member.unpacked,
                    member.stored ? "the same" : fmt::to_string(times),
                    member.stored ? ", stored," : " times as many"));
  }
}

void ZipArchive::check_all() const {
  std::unordered_set<std::string_view> names;
  std::uint64_t packed = 0, unpacked = 0;
  for (const ZipMember& member : members_) {
    if (!names.insert(member.name).second) {
      throw BadInput(fmt::format("{} is there twice, expected every name once; rename one of them",
                                 place(member)));
    }
    packed += member.packed;  // no overflow: each summand is at most the file's size
    if (packed > file_bytes()) {
      throw BadInput(
          fmt::format("{}: its members take {} bytes and more, but it holds {}, so they overlap; "
                      "the file is damaged or a ZIP bomb, write it again",
                      file(), packed, file_bytes()));
    }
    if (!member.stored) unpacked += member.unpacked;  // no overflow: at most 1032 * file_bytes()
  }
  const std::uint64_t most =
      log::user_limit(log::kUnpackLimit, std::max(kAnyUnpacked, kUnpackedLimit * file_bytes()));
  if (unpacked <= most) return;
  throw BadInput(
      fmt::format("{}: its members unpack to {} bytes, expected at most {}; the file may be a ZIP "
                  "bomb; if you trust it, set the environment variable HALFSCOPE_UNPACK_LIMIT={}",
                  file(), unpacked, most, unpacked));
}

std::string ZipArchive::place(const ZipMember& member) const {
  std::string_view name = member.name;
  if (!name.ends_with(kArraySuffix)) {
    return fmt::format("{}: member '{}'", file(), log::printable(name.substr(0, 200)));
  }
  name.remove_suffix(kArraySuffix.size());
  return log::place_text(file(), name);
}

ZipArchive::OpenMember ZipArchive::start(const ZipMember& member) const {
  OpenMember open(zip_fopen_index(zip_.get(), member.index, 0));
  if (!open) refuse_data(zip_strerror(zip_.get()), member);
  return open;
}

ZipRange ZipArchive::stored(const ZipMember& member) const {
  if (member.unpacked == 0) return {};
  const OpenMember open = start(member);
  std::byte first{};
  read(open.get(), &first, 1, member);
  const std::uint64_t begin = source_->last_read;
  if (begin > file_bytes() || member.unpacked > file_bytes() - begin) {
    refuse_data("it ends after the file does", member);
  }
  return {begin, member.unpacked};
}

log::FileBytes ZipArchive::bytes(const ZipRange& range) const {
  const std::uint64_t begin = part_.begin + range.begin;
  return mapped_->range(begin, begin + range.size);
}

std::vector<std::byte> ZipArchive::beginning(const ZipMember& member, std::size_t most) const {
  std::vector<std::byte> bytes(
      static_cast<std::size_t>(std::min<std::uint64_t>(most, member.unpacked)));
  const OpenMember open = start(member);
  read(open.get(), bytes.data(), bytes.size(), member);
  return bytes;
}

log::FileBytes ZipArchive::whole(const ZipMember& member) const {
  if (!member.stored) {
    log::FileBytes held{unpack(member), {}};
    held.bytes = {held.owner.get(), static_cast<std::size_t>(member.unpacked)};
    return held;
  }
  log::FileBytes held = bytes(stored(member));
  if (crc_of(held.bytes) != member.crc) refuse_data("CRC error", member);
  return held;
}

std::shared_ptr<const std::byte[]> ZipArchive::unpack(const ZipMember& member) const {
  if (member.unpacked > kHeldMember) return unpack_to_file(member);
  const auto size = static_cast<std::size_t>(member.unpacked);
  const auto bytes = std::make_shared_for_overwrite<std::byte[]>(size);
  const OpenMember open = start(member);
  read(open.get(), bytes.get(), size, member);
  check_end(open.get(), member);
  return bytes;
}

/// Unpacks into a temporary file and maps it, so that the kernel can free its pages.
std::shared_ptr<const std::byte[]> ZipArchive::unpack_to_file(const ZipMember& member) const {
  input::Spool spool(place(member));
  std::vector<std::byte> piece(std::size_t{1} << 20);
  const OpenMember open = start(member);
  for (std::uint64_t left = member.unpacked; left > 0;) {
    const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(left, piece.size()));
    read(open.get(), piece.data(), size, member);
    spool.write({reinterpret_cast<const char*>(piece.data()), size});
    left -= size;
  }
  check_end(open.get(), member);
  const int file = spool.release();
  const auto size = static_cast<std::size_t>(member.unpacked);
  void* const memory = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
  const std::string problem = std::generic_category().message(errno);
  ::close(file);
  if (memory == MAP_FAILED) refuse_data(problem, member);
  const auto unmap = [size](const std::byte* bytes) {
    ::munmap(const_cast<std::byte*>(bytes), size);
  };
  return {static_cast<const std::byte*>(memory), unmap};
}

/// Reads to the end: libzip then checks the checksum. Throws log::BadInput if more bytes follow.
void ZipArchive::check_end(zip_file* open, const ZipMember& member) const {
  char more = 0;
  const zip_int64_t left = zip_fread(open, &more, 1);
  if (left < 0) refuse_data(zip_file_strerror(open), member);
  if (left > 0) refuse_data("more bytes than its directory says", member);
}

void ZipArchive::read(zip_file* open, std::byte* to, std::size_t size,
                      const ZipMember& member) const {
  while (size > 0) {
    const zip_int64_t got = zip_fread(open, to, size);
    if (got < 0) refuse_data(zip_file_strerror(open), member);
    if (got == 0) refuse_data("fewer bytes than its directory says", member);
    to += got;
    size -= static_cast<std::size_t>(got);
  }
}

void ZipArchive::refuse_data(std::string_view found, const ZipMember& member) const {
  mapped_->check_size();
  throw BadInput(fmt::format(
      "{} cannot be unpacked ({}), expected {} bytes; the file is damaged, write it again",
      place(member), log::printable(found), member.unpacked));
}

}  // namespace halfscope::analyzers::readers::tensors
