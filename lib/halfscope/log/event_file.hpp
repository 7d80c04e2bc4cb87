// SPDX-License-Identifier: Apache-2.0
// TensorBoard event files: length, checksum, protobuf record, checksum.
// Framing: tensorboard/summary/writer/record_writer.py. Messages: event_file.proto beside this
// file; who wants their fields includes "halfscope/log/event_file.pb.h" (no public header does).
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
/// The same as TFRecord masks it, so that a checksum of data that holds checksums stays a good one.
std::uint32_t masked_crc32c(std::string_view bytes);

/// A record's length by the first 12 bytes of it; empty where these are fewer, or the length's
/// checksum is not behind it.
std::optional<std::uint64_t> record_length(std::string_view header);

/// A message as a record.
std::string framed(const google::protobuf::MessageLite& message);

/// Seconds since 1970, as event files have them.
double wall_time_now();

/// Appends records to a new event file. Every record is handed to the system in one write before
/// `write` returns, so a run that dies loses at most the record it was writing. Throws BadInput.
class EventWriter {
 public:
  /// Creates the file and writes its version record; refuses to touch an existing file.
  explicit EventWriter(const std::filesystem::path& path);
  ~EventWriter();
  EventWriter(const EventWriter&) = delete;
  EventWriter& operator=(const EventWriter&) = delete;

  /// A record that cannot be written whole (disk full) is taken back, then BadInput is thrown.
  void write(const proto::Event& event);
  /// The same of several records, as framed() makes them: all or none.
  void append(std::string_view records);

 private:
  std::filesystem::path path_;
  int file_ = -1;
};

/// Reads records one by one, holding one at a time. Damage is stepped over and told in `notes`:
/// a last record that is cut short is the normal end of a file whose run was stopped; a record
/// whose checksum is wrong, or that is no Event, is skipped; where a record's length cannot be
/// trusted, reading goes on at the next place that has a length with a right checksum.
class EventReader {
 public:
  /// Throws BadInput when the file cannot be opened.
  explicit EventReader(const OpenPath& path);
  EventReader(const EventReader&) = delete;
  EventReader& operator=(const EventReader&) = delete;

  /// The next readable record, or empty at the end.
  std::optional<proto::Event> next();
  /// The same, not parsed: the message of the next record whose checksums are right. It lies in
  /// this object, until the next call.
  std::optional<std::string_view> next_message();
  /// Notes that the record last returned is skipped.
  void reject(const std::string& why);
  /// Where the record last returned begins, and where its message does.
  std::uint64_t offset() const { return record_; }
  std::uint64_t message_offset() const;
  /// The next record is looked for at `offset`.
  void seek(std::uint64_t offset) { position_ = offset; }

  /// Bytes of the file, framing or not; empty where it was not as long when it was opened. They lie
  /// in this object, until the next call. This and all that reads throw BadInput where the file was
  /// cut short since.
  std::optional<std::string_view> bytes(std::uint64_t offset, std::uint64_t size);
  std::uint64_t size() const { return size_; }

  /// What was stepped over, one line each.
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
  // A piece of the file, read ahead: [held_from_, held_from_ + held_) in the first bytes of piece_.
  std::unique_ptr<char[]> piece_;
  std::uint64_t capacity_ = 0, held_from_ = 0, held_ = 0;
};

}  // namespace halfscope::log
