// SPDX-License-Identifier: Apache-2.0
// A file of counted parts (.hst), read and appended to. docs/record.md describes it.
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

/// Version that this code writes; files of a newer one are refused.
inline constexpr std::uint32_t kSchema = 1;

/// What a part says of itself.
struct PartHeader {
  std::string log;
  std::uint64_t index = 0, of = 1;
  std::string name;
  std::string settings;                 ///< options that it was counted with
  std::optional<std::string> manifest;  ///< run.json, as text

  /// "run/rank-0003"
  std::string shown() const;
  friend bool operator==(const PartHeader&, const PartHeader&) = default;
};

/// A part in a file: [begin, end) is all of it.
struct PartPlace {
  PartHeader header;
  std::uint64_t begin = 0, end = 0;
};

/// What is said of another file; `shown`: its name.
std::string no_record_text(const std::string& shown);

/// Whether the file begins as one of these. Never throws.
bool is_record_file(const log::OpenPath& file);

/// A file that is open. Finds its whole parts at once; what is cut or damaged is in damage().
class RecordFile {
 public:
  /// Throws log::BadInput where it is none, or of a newer schema.
  explicit RecordFile(const log::OpenPath& file);

  const std::filesystem::path& path() const { return file_.path; }
  const std::vector<PartPlace>& parts() const { return parts_; }
  /// Where the last whole part ends, if nothing was amiss before it: what lies behind can go.
  std::uint64_t whole_end() const { return whole_end_; }
  /// One line each, with the file's name.
  const std::vector<std::string>& damage() const { return damage_; }

  using ItemVisitor = std::function<void(const halfscope::record::Item&)>;
  /// The items of a part, after its beginning; the last is its end.
  void for_each_item(const PartPlace& part, const ItemVisitor& visit) const;
  /// The bytes of a part, piece by piece.
  void for_each_piece(const PartPlace& part,
                      const std::function<void(std::string_view)>& visit) const;

 private:
  log::OpenPath file_;
  std::vector<PartPlace> parts_;
  std::vector<std::string> damage_;
  std::uint64_t whole_end_ = 0;
};

/// A file that one process alone writes, as long as this lives.
class Alone {
 public:
  /// flags: as open(2) has them; without O_CREAT nothing is held of what is not there. Throws
  /// log::BadInput, also of a pipe, for which it does not wait.
  Alone(const std::filesystem::path& path, int flags);
  ~Alone();
  Alone(const Alone&) = delete;
  Alone& operator=(const Alone&) = delete;
  int number() const { return number_; }  ///< of the descriptor; -1: it is not there
  int close();                            ///< returns errno; 0 where all is well

 private:
  int number_ = -1;
};

/// Appends parts to a file, of which one process may write at a time. Throws log::BadInput.
class RecordWriter {
 public:
  /// Makes the file, or goes on where its last whole part ends.
  explicit RecordWriter(const std::filesystem::path& file);

  /// Those that the file had.
  const std::vector<PartPlace>& parts() const { return parts_; }

  void begin(const PartHeader& header);
  void add(const halfscope::record::Item& item);
  /// With this the part is there: one that has not ended is dropped when the file is read.
  void end(const std::vector<std::string>& notes);
  /// A piece of a part of another file, which has all of it, one after the other.
  void copy(std::string_view piece);
  /// The last call. A network file system, or a quota, may say only now that the disk is full.
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

/// What a file of parts begins with.
std::string file_header();

}  // namespace halfscope::analyzers::readers::record
