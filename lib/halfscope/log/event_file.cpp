// SPDX-License-Identifier: Apache-2.0
#include "halfscope/log/event_file.hpp"

#include <fcntl.h>
#include <isa-l/crc.h>
#include <unistd.h>

#include <algorithm>
#include <boost/endian/conversion.hpp>
#include <cerrno>
#include <chrono>
#include <limits>
#include <system_error>

#include "halfscope/log/error.hpp"
#include "halfscope/log/event_file.pb.h"
#include "halfscope/log/read_file.hpp"
#include "halfscope/log/write_all.hpp"

namespace halfscope::log {
namespace {

// A record: u64 length | u32 checksum of the length | data | u32 checksum of the data.
constexpr std::uint64_t kLengthBytes = 8, kChecksumBytes = 4;
constexpr std::uint64_t kHeaderBytes = kLengthBytes + kChecksumBytes;
constexpr std::uint64_t kFramingBytes = kHeaderBytes + kChecksumBytes;
constexpr std::uint64_t kLargestMessage = std::numeric_limits<int>::max();  // protobuf's own limit
constexpr std::size_t kMostNotes = 20;                                      // per file

std::string shown(const std::filesystem::path& path) { return printable(path.string()); }

const unsigned char* unsigned_bytes(const char* bytes) {
  return reinterpret_cast<const unsigned char*>(bytes);
}

std::uint32_t checksum_at(const char* bytes) {
  return boost::endian::load_little_u32(unsigned_bytes(bytes));
}

void append_checksum(std::string& record, std::string_view of) {
  unsigned char bytes[kChecksumBytes];
  boost::endian::store_little_u32(bytes, masked_crc32c(of));
  record.append(reinterpret_cast<const char*>(bytes), sizeof bytes);
}

}  // namespace

double wall_time_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// Uses ISA-L, which has CRC-32C as the checksum of iSCSI, without the final exclusive or, and
/// chooses the processor's best instructions.
std::uint32_t crc32c(std::string_view bytes) {
  constexpr std::size_t kPiece = std::size_t{1} << 30;  // ISA-L's length is an int
  std::uint32_t crc = 0xFFFFFFFF;
  for (; !bytes.empty(); bytes.remove_prefix(std::min(kPiece, bytes.size()))) {
    // ISA-L's parameter is not const, though it only reads.
    auto* const data = const_cast<unsigned char*>(unsigned_bytes(bytes.data()));
    crc = crc32_iscsi(data, static_cast<int>(std::min(kPiece, bytes.size())), crc);
  }
  return ~crc;
}

std::uint32_t masked_crc32c(std::string_view bytes) {
  const std::uint32_t crc = crc32c(bytes);
  return ((crc >> 15) | (crc << 17)) + 0xA282EAD8u;
}

std::optional<std::uint64_t> record_length(std::string_view header) {
  if (header.size() < kHeaderBytes) return std::nullopt;
  const std::string_view length = header.substr(0, kLengthBytes);
  if (masked_crc32c(length) != checksum_at(header.data() + kLengthBytes)) return std::nullopt;
  return boost::endian::load_little_u64(unsigned_bytes(length.data()));
}

std::string framed(const google::protobuf::MessageLite& message) {
  const std::size_t size = message.ByteSizeLong();
  unsigned char length[kLengthBytes];
  boost::endian::store_little_u64(length, size);
  std::string record;
  record.reserve(size + kFramingBytes);
  record.append(reinterpret_cast<const char*>(length), sizeof length);
  append_checksum(record, record);
  message.AppendToString(&record);
  append_checksum(record, std::string_view(record).substr(kHeaderBytes));
  return record;
}

EventWriter::EventWriter(const std::filesystem::path& path) : path_(path) {
  file_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
  if (file_ < 0) {
    throw BadInput(shown(path) + ": cannot create this event file (" +
                   std::generic_category().message(errno) +
                   "); choose a new folder that can be written");
  }
  proto::Event version;
  version.set_wall_time(wall_time_now());
  version.set_file_version("brain.Event:2");
  write(version);
}

EventWriter::~EventWriter() {
  if (file_ >= 0) ::close(file_);
}

void EventWriter::write(const proto::Event& event) { append(framed(event)); }

void EventWriter::append(std::string_view records) {
  const std::size_t done = write_all(file_, records);
  if (done == records.size()) return;
  const int reason = errno;
  // Otherwise readers could not find the records after an incomplete one.
  const ::off_t start = ::lseek(file_, 0, SEEK_END) - static_cast<::off_t>(done);
  const bool restored = ::ftruncate(file_, start) == 0;
  throw BadInput(shown(path_) + ": cannot write " + std::to_string(records.size()) + " bytes (" +
                 std::generic_category().message(reason) + "); " +
                 (restored ? "the file is whole up to there" : "the file ends in a cut record") +
                 ": free space, or log to another disk");
}

EventReader::EventReader(const OpenPath& path) : path_(path.path), file_(path.open()) {
  const auto cannot_open = [&](const std::string& why) {
    return BadInput(shown(path_) + ": cannot open this event file (" + why +
                    "); it must be a readable file");
  };
  const int error = file_->error();
  if (error != 0) throw cannot_open(std::generic_category().message(error));
  if (!file_->is_regular()) throw cannot_open("it is not a regular file");
  size_ = file_->size();
}

std::uint64_t EventReader::message_offset() const { return record_ + kHeaderBytes; }

std::optional<std::string_view> EventReader::bytes(std::uint64_t offset, std::uint64_t size) {
  if (offset > size_ || size > size_ - offset) return std::nullopt;
  const bool held = offset >= held_from_ && offset + size <= held_from_ + held_;
  if (!held) fill(offset, size);
  return std::string_view(piece_.get() + (offset - held_from_), size);
}

/// Reads a piece of the file that begins at `offset` and has at least `size` bytes.
void EventReader::fill(std::uint64_t offset, std::uint64_t size) {
  constexpr std::uint64_t kPiece = 1 << 20;
  const std::uint64_t wanted = std::min(std::max(size, kPiece), size_ - offset);
  if (wanted > capacity_) {
    piece_ = std::make_unique_for_overwrite<char[]>(wanted);
    capacity_ = wanted;
  }
  held_from_ = offset;
  held_ = 0;  // in case read_exactly throws
  read_exactly(*file_, shown(path_), offset, piece_.get(), wanted);
  held_ = wanted;
}

std::optional<std::uint64_t> EventReader::length_at(std::uint64_t offset) {
  const auto header = bytes(offset, kHeaderBytes);
  return header ? record_length(*header) : std::nullopt;
}

/// Returns the first offset at or after `offset` of a length with a right checksum, for a record
/// that fits into the file; the file's size if there is none. One pass in small pieces.
std::uint64_t EventReader::next_length(std::uint64_t offset) {
  constexpr std::uint64_t kPiece = 1 << 16;
  for (; size_ - offset >= kFramingBytes; offset += kPiece - kHeaderBytes) {
    const std::uint64_t piece = std::min(kPiece, size_ - offset);
    const auto held = bytes(offset, piece);
    for (std::uint64_t i = 0; i + kHeaderBytes <= piece; ++i) {
      const std::string_view at = held->substr(i, kHeaderBytes);
      const std::uint64_t length = boost::endian::load_little_u64(unsigned_bytes(at.data()));
      const std::uint64_t rest = size_ - offset - i;
      if (length == 0 || rest < kFramingBytes || length > rest - kFramingBytes) continue;
      if (record_length(at)) return offset + i;
    }
    if (piece < kPiece) break;
  }
  return size_;
}

void EventReader::note_skipped(std::uint64_t begin, std::uint64_t end, const std::string& why) {
  if (notes_.size() < kMostNotes) {
    notes_.push_back(shown(path_) + ": bytes " + std::to_string(begin) + " to " +
                     std::to_string(end) + " skipped: " + why);
  } else if (notes_.size() == kMostNotes) {
    notes_.push_back(shown(path_) + ": more is damaged than is listed here");
  }
}

void EventReader::skip_to(std::uint64_t end, const std::string& why) {
  note_skipped(position_, end, why);
  position_ = end;
}

void EventReader::reject(const std::string& why) { note_skipped(record_, position_, why); }

std::optional<std::string_view> EventReader::next_message() {
  while (position_ < size_) {
    const std::uint64_t rest = size_ - position_;
    const auto length = rest < kHeaderBytes ? std::uint64_t{0} : length_at(position_);
    if (!length) {
      skip_to(next_length(position_ + 1), "a record's length has a wrong checksum");
      continue;
    }
    if (rest < kFramingBytes || *length > rest - kFramingBytes) {
      skip_to(size_, "the last record is cut short, as in a run that was stopped while writing");
      break;
    }
    const std::uint64_t end = position_ + kFramingBytes + *length;
    if (*length > kLargestMessage) {
      skip_to(end, "a record of " + std::to_string(*length) + " bytes, and 2147483647 is the most");
      continue;
    }
    const auto record = bytes(position_ + kHeaderBytes, *length + kChecksumBytes);
    const std::string_view message = record->substr(0, *length);
    if (masked_crc32c(message) != checksum_at(record->data() + *length)) {
      skip_to(end, "a record has a wrong checksum");
      continue;
    }
    record_ = position_;
    position_ = end;
    return message;
  }
  return std::nullopt;
}

std::optional<proto::Event> EventReader::next() {
  while (const auto message = next_message()) {
    proto::Event event;
    if (event.ParseFromArray(message->data(), static_cast<int>(message->size()))) return event;
    reject("a record is not a TensorBoard event");
  }
  return std::nullopt;
}

}  // namespace halfscope::log
