// SPDX-License-Identifier: Apache-2.0
#include "halfscope/log/event_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <boost/crc.hpp>
#include <boost/endian/conversion.hpp>
#include <cerrno>
#include <chrono>
#include <limits>
#include <system_error>

#include "halfscope/log/error.hpp"
#include "halfscope/log/event_file.pb.h"

namespace halfscope::log {
namespace {

// A record: u64 length | u32 checksum of the length | data | u32 checksum of the data.
constexpr std::uint64_t kLengthBytes = 8, kChecksumBytes = 4;
constexpr std::uint64_t kHeaderBytes = kLengthBytes + kChecksumBytes;
constexpr std::uint64_t kFramingBytes = kHeaderBytes + kChecksumBytes;
constexpr std::uint64_t kLargestMessage = std::numeric_limits<int>::max();  // protobuf's own limit
constexpr std::size_t kMostNotes = 20;                                      // a file

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

std::string framed(const proto::Event& event) {
  unsigned char length[kLengthBytes];
  boost::endian::store_little_u64(length, event.ByteSizeLong());
  std::string record(reinterpret_cast<const char*>(length), sizeof length);
  append_checksum(record, record);
  event.AppendToString(&record);
  append_checksum(record, std::string_view(record).substr(kHeaderBytes));
  return record;
}

/// Empty where the first 8 bytes do not have their checksum behind them.
std::optional<std::uint64_t> checked_length(std::string_view header) {
  const std::string_view length = header.substr(0, kLengthBytes);
  if (masked_crc32c(length) != checksum_at(header.data() + kLengthBytes)) return std::nullopt;
  return boost::endian::load_little_u64(unsigned_bytes(length.data()));
}

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  boost::crc_optimal<32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, true, true> crc;
  crc.process_bytes(bytes.data(), bytes.size());
  return crc.checksum();
}

std::uint32_t masked_crc32c(std::string_view bytes) {
  const std::uint32_t crc = crc32c(bytes);
  return ((crc >> 15) | (crc << 17)) + 0xA282EAD8u;
}

EventWriter::EventWriter(const std::filesystem::path& path) : path_(path) {
  file_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
  if (file_ < 0) {
    throw BadInput(shown(path) + ": cannot create this event file (" +
                   std::generic_category().message(errno) +
                   "); choose a new folder that can be written");
  }
  proto::Event version;
  version.set_wall_time(now());
  version.set_file_version("brain.Event:2");
  write(version);
}

EventWriter::~EventWriter() {
  if (file_ >= 0) ::close(file_);
}

void EventWriter::write(const proto::Event& event) {
  const std::string record = framed(event);
  const ::off_t start = ::lseek(file_, 0, SEEK_END);
  std::size_t done = 0;
  while (done < record.size()) {
    const ::ssize_t wrote = ::write(file_, record.data() + done, record.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) {
      const int reason = errno;
      // A torn record would hide those written after it.
      const bool restored = ::ftruncate(file_, start) == 0;
      throw BadInput(
          shown(path_) + ": cannot write a record of " + std::to_string(record.size()) +
          " bytes (" + std::generic_category().message(reason) + "); " +
          (restored ? "the file is whole up to there" : "the file ends in a cut record") +
          ": make room, or log to another disk");
    }
    done += static_cast<std::size_t>(wrote);
  }
}

EventReader::EventReader(const std::filesystem::path& path)
    : path_(path), in_(path, std::ios::binary) {
  std::error_code error;
  size_ = std::filesystem::file_size(path, error);
  if (!in_ || error) {
    throw BadInput(shown(path) + ": cannot open this event file" +
                   (error ? " (" + error.message() + ")" : "") + "; it must be a readable file");
  }
}

bool EventReader::read(std::uint64_t offset, std::uint64_t size, std::string& bytes) {
  bytes.resize(static_cast<std::size_t>(size));
  if (offset != stream_position_ || !in_) {  // a seek would drop what is buffered
    in_.clear();
    in_.seekg(static_cast<std::streamoff>(offset));
  }
  in_.read(bytes.data(), static_cast<std::streamsize>(size));
  stream_position_ = offset + size;
  return in_.good();
}

std::optional<std::uint64_t> EventReader::length_at(std::uint64_t offset) {
  if (!read(offset, kHeaderBytes, bytes_)) return std::nullopt;
  return checked_length(bytes_);
}

/// The first place at or after `offset` that holds a length with its checksum, of a record that
/// fits into the file; the file's size where there is none. One pass in small pieces.
std::uint64_t EventReader::next_length(std::uint64_t offset) {
  constexpr std::uint64_t kPiece = 1 << 16;
  for (; size_ - offset >= kFramingBytes; offset += kPiece - kHeaderBytes) {
    const std::uint64_t piece = std::min(kPiece, size_ - offset);
    if (!read(offset, piece, bytes_)) return size_;
    for (std::uint64_t i = 0; i + kHeaderBytes <= piece; ++i) {
      const char* const at = bytes_.data() + i;
      const std::uint64_t length = boost::endian::load_little_u64(unsigned_bytes(at));
      const std::uint64_t rest = size_ - offset - i;
      if (length == 0 || rest < kFramingBytes || length > rest - kFramingBytes) continue;
      if (checked_length({at, kHeaderBytes})) return offset + i;
    }
    if (piece < kPiece) break;
  }
  return size_;
}

void EventReader::skip_to(std::uint64_t end, const std::string& why) {
  if (notes_.size() < kMostNotes) {
    notes_.push_back(shown(path_) + ": bytes " + std::to_string(position_) + " to " +
                     std::to_string(end) + " skipped: " + why);
  } else if (notes_.size() == kMostNotes) {
    notes_.push_back(shown(path_) + ": more is damaged than is listed here");
  }
  position_ = end;
}

std::optional<proto::Event> EventReader::next() {
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
    const std::uint64_t data = position_ + kHeaderBytes;
    if (!read(data, *length + kChecksumBytes, bytes_)) {
      skip_to(size_, "the file cannot be read here");
      break;
    }
    const std::string_view message = std::string_view(bytes_).substr(0, *length);
    if (masked_crc32c(message) != checksum_at(bytes_.data() + *length)) {
      skip_to(end, "a record has a wrong checksum");
      continue;
    }
    proto::Event event;
    if (!event.ParseFromArray(message.data(), static_cast<int>(message.size()))) {
      skip_to(end, "a record is no TensorBoard event");
      continue;
    }
    record_ = position_;
    position_ = end;
    return event;
  }
  return std::nullopt;
}

}  // namespace halfscope::log
