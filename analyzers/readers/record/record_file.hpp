// SPDX-License-Identifier: Apache-2.0
// Reads and appends to a record (.hst), a file of counted parts of logs. Format: docs/record.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "halfscope/log/open_file.hpp"

namespace halfscope::record {
class Item;
}

namespace halfscope::analyzers::readers::record {

/// Schema version that this code writes. Files with a newer version are refused.
inline constexpr std::uint32_t kSchema = 1;

/// The header of a part in a record. frames::Part describes the fields of the same name.
struct PartHeader {
  std::string log;
  std::uint64_t index = 0, of = 1;
  std::string name;
  std::string settings;                 ///< options with which the part was counted
  std::optional<std::string> manifest;  ///< text of run.json; empty if the log has none

  /// Returns the log and the part for messages: "run/rank-0003".
  std::string shown() const;
  friend bool operator==(const PartHeader&, const PartHeader&) = default;
};

/// A part in a file. All its bytes are in [begin, end), counted from the start of the file.
struct PartPlace {
  PartHeader header;
  std::uint64_t begin = 0, end = 0;
};

/// Returns the error message for a file that is not a record. `shown` is the file's printable name.
std::string no_record_text(const std::string& shown);

/// Returns true if the file begins like a record. Never throws.
bool is_record_file(const log::OpenPath& file);

/// A record that is open for reading. The constructor reads the file once and finds its complete
/// parts; damage() describes the parts that are cut off or damaged.
class RecordFile {
 public:
  /// Throws log::BadInput if the file is not a record or has a newer schema.
  explicit RecordFile(const log::OpenPath& file);

  const std::filesystem::path& path() const { return file_.path; }
  const std::vector<PartPlace>& parts() const { return parts_; }
  /// End of the last complete part before the first damage, as a byte offset.
  std::uint64_t whole_end() const { return whole_end_; }
  /// One line for each damaged or cut part, with the file's name. Empty if there is no damage.
  const std::vector<std::string>& damage() const { return damage_; }

  using ItemVisitor = std::function<void(const halfscope::record::Item&)>;
  /// Calls `visit` for the items of a part in order, without Begin; the last item is End.
  void for_each_item(const PartPlace& part, const ItemVisitor& visit) const;
  /// Calls `visit` with the bytes of a part, at most 1 MiB per call.
  void for_each_piece(const PartPlace& part,
                      const std::function<void(std::string_view)>& visit) const;

 private:
  log::OpenPath file_;
  std::vector<PartPlace> parts_;
  std::vector<std::string> damage_;
  std::uint64_t whole_end_ = 0;
};

/// An open file with an exclusive lock: no other process can write it while this object lives.
class Alone {
 public:
  /// `flags` are those of open(2). Without O_CREAT a missing file is no error: number() is -1.
  /// Throws log::BadInput if it is locked, cannot be opened or is not a regular file. Never waits.
  Alone(const std::filesystem::path& path, int flags);
  ~Alone();
  Alone(const Alone&) = delete;
  Alone& operator=(const Alone&) = delete;
  int number() const { return number_; }  ///< file descriptor; -1 if the file is missing
  int close();                            ///< closes the file; returns 0, or errno on failure

 private:
  int number_ = -1;
};

/// Appends parts to a record. Locks the file, so that no other process writes it. All functions
/// throw log::BadInput if the file cannot be written.
class RecordWriter {
 public:
  /// Creates the file, or opens it and cuts it after its last complete part. Throws log::BadInput
  /// if a damaged part lies before a complete one.
  explicit RecordWriter(const std::filesystem::path& file);

  /// The parts that the file had when it was opened.
  const std::vector<PartPlace>& parts() const { return parts_; }

  /// Begins a part.
  void begin(const PartHeader& header);
  /// Adds an item to the part.
  void add(const halfscope::record::Item& item);
  /// Ends the part. Readers drop a part without its end.
  void end(const std::vector<std::string>& notes);
  /// Appends the next bytes of a part of another record (RecordFile::for_each_piece()).
  void copy(std::string_view piece);
  /// Closes the file; no other call may follow. On a network file system or with a quota, an error
  /// such as a full disk may appear only here.
  void close();

 private:
  void go_on();
  void append(const halfscope::record::Item& item);
  void flush();

  std::filesystem::path path_;
  Alone file_;
  std::vector<PartPlace> parts_;
  std::string waiting_;
  std::uint64_t items_ = 0;
};

/// Returns the bytes with which every record begins.
std::string file_header();

}  // namespace halfscope::analyzers::readers::record
