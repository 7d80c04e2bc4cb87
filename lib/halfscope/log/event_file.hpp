// SPDX-License-Identifier: Apache-2.0
// TensorBoard event files. A record is: length, checksum, protobuf message, checksum.
// Framing: tensorboard/summary/writer/record_writer.py. Messages: event_file.proto in this folder;
// code that reads their fields includes "halfscope/log/event_file.pb.h" (public headers do not).
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "halfscope/log/open_file.hpp"

namespace google::protobuf {
class MessageLite;
}
namespace halfscope::log::proto {
class Event;
}

namespace halfscope::log {

/// CRC-32C (Castagnoli): reflected, initial and final value all ones.
std::uint32_t crc32c(std::string_view bytes);
/// CRC-32C as TFRecord masks it, which keeps the checksum of data that contains checksums strong.
std::uint32_t masked_crc32c(std::string_view bytes);

/// Reads a record's length from its first 12 bytes. Empty if it is shorter or the length's checksum
/// is wrong.
std::optional<std::uint64_t> record_length(std::string_view header);

/// Returns a message as a record, with length and checksums.
std::string framed(const google::protobuf::MessageLite& message);

/// Seconds since 1970, the time format of event files.
double wall_time_now();

/// Appends records to a new event file. Each call passes its records to the system in one write, so
/// a killed run loses at most these. Throws BadInput.
class EventWriter {
 public:
  /// Creates the file and writes its version record. Throws if the file exists.
  explicit EventWriter(const std::filesystem::path& path);
  ~EventWriter();
  EventWriter(const EventWriter&) = delete;
  EventWriter& operator=(const EventWriter&) = delete;

  /// Writes one record. On failure (disk full) removes the partial record and throws BadInput.
  void write(const proto::Event& event);
  /// Writes several records, each from framed(): all or none.
  void append(std::string_view records);

 private:
  std::filesystem::path path_;
  int file_ = -1;
};

/// Reads records one by one and keeps one in memory. Skips damaged parts and describes each in
/// notes(): an incomplete last record (usual after a run was killed); a record with a wrong
/// checksum or one that is not an Event. After a wrong length, continues at the next valid length.
class EventReader {
 public:
  /// Throws BadInput if the file cannot be opened.
  explicit EventReader(const OpenPath& path);
  EventReader(const EventReader&) = delete;
  EventReader& operator=(const EventReader&) = delete;

  /// Returns the next readable event; empty at the end of the file.
  std::optional<proto::Event> next();
  /// Returns the unparsed message of the next record with right checksums; empty at the end of the
  /// file. The view is valid until the next call.
  std::optional<std::string_view> next_message();
  /// Adds a note that the record returned last is skipped, with the reason.
  void reject(const std::string& why);
  /// Offset in the file of the record returned last; message_offset(): of its message.
  std::uint64_t offset() const { return record_; }
  std::uint64_t message_offset() const;
  /// Sets the offset at which the search for the next record starts.
  void seek(std::uint64_t offset) { position_ = offset; }

  /// Returns bytes of the file, valid until the next call; empty if the range ends after the file's
  /// size at opening. All functions that read throw BadInput if the file was truncated since.
  std::optional<std::string_view> bytes(std::uint64_t offset, std::uint64_t size);
  std::uint64_t size() const { return size_; }

  /// Descriptions of the skipped parts, one line each, at most 21.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  void fill(std::uint64_t offset, std::uint64_t size);
  std::optional<std::uint64_t> length_at(std::uint64_t offset);
  std::uint64_t next_length(std::uint64_t offset);
  void note_skipped(std::uint64_t begin, std::uint64_t end, const std::string& why);
  void skip_to(std::uint64_t end, const std::string& why);

  std::filesystem::path path_;
  std::shared_ptr<const OpenFile> file_;
  std::uint64_t size_ = 0;
  std::uint64_t position_ = 0;
  std::uint64_t record_ = 0;
  std::vector<std::string> notes_;
  // Read-ahead buffer: the first held_ bytes of piece_ are the file's bytes from offset held_from_.
  std::unique_ptr<char[]> piece_;
  std::uint64_t capacity_ = 0, held_from_ = 0, held_ = 0;
};

}  // namespace halfscope::log
