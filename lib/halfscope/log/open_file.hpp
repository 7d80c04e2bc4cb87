// SPDX-License-Identifier: Apache-2.0
// Files that are open for reading. All readers of logs open their files here, so that each is
// opened once for all passes.
#pragma once

#include <sys/types.h>

#include <any>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace halfscope::log {

/// Remarks about a file whose contents are not the bytes at its path (for example, unpacked).
struct FileRemarks {
  std::vector<std::string> notes = {};  ///< lines to report, each with the path
  std::string refusal = {};             ///< why the contents cannot be read; empty: they can
};

/// Fetches a file's bytes on demand, for example from another machine. Thread-safe.
class Arrival {
 public:
  Arrival() = default;
  Arrival(const Arrival&) = delete;
  Arrival& operator=(const Arrival&) = delete;
  virtual ~Arrival() = default;
  /// Waits until the bytes [begin, end) are in the file. Throws BadInput.
  virtual void need(std::uint64_t begin, std::uint64_t end) = 0;
  /// The bytes [begin, end) are not needed for now and may be dropped; need() fetches them again.
  virtual void leave(std::uint64_t begin, std::uint64_t end) = 0;
};

/// An open file, or the error of opening it, which the reader turns into a message.
class OpenFile {
 public:
  /// Opens the file without waiting for a pipe. `arrival` fetches its bytes; null: they are on the
  /// disk.
  explicit OpenFile(const std::filesystem::path& path, std::shared_ptr<Arrival> arrival = nullptr);
  /// Adopts a descriptor that is open for reading, and closes it in the destructor.
  explicit OpenFile(int descriptor);
  /// A file whose bytes are these pieces of memory, in order. The caller must keep them unchanged
  /// and alive while the file is read.
  explicit OpenFile(const std::vector<std::span<const std::byte>>& pieces);
  ~OpenFile();
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  int error() const { return error_; }  ///< errno of the failed open; 0 if the file is open
  bool is_regular() const;
  bool is_folder() const;
  bool is_in_memory() const { return error_ == 0 && number_ < 0; }
  int number() const { return number_; }  ///< the descriptor; -1 for a file in memory
  /// Current size in bytes; a run may still write to the file. 0 if the system cannot report it.
  std::uint64_t size() const;
  /// need() must precede access to bytes other than by read(); leave() may follow. Both call
  /// Arrival.
  void need(std::uint64_t begin, std::uint64_t end) const;
  void leave(std::uint64_t begin, std::uint64_t end) const;
  bool arrives() const { return arrival_ != nullptr; }
  /// Reads up to `most` bytes from `offset` and returns their number. If it is smaller, errno is 0
  /// at the end of the file, else the error.
  std::size_t read(std::uint64_t offset, char* to, std::size_t most) const;
  /// Returns the bytes [begin, end) of a file in memory, if one piece has them; else an empty span.
  std::span<const std::byte> in_memory(std::uint64_t begin, std::uint64_t end) const;
  const FileRemarks& remarks() const { return remarks_; }
  void remark(FileRemarks remarks) { remarks_ = std::move(remarks); }

 private:
  void look();

  int number_ = -1;
  int error_ = 0;
  ::mode_t mode_ = 0;
  std::shared_ptr<Arrival> arrival_;
  std::map<std::uint64_t, std::span<const std::byte>> pieces_;  ///< not empty, by first byte
  FileRemarks remarks_;
};

/// Regular files that stay open between passes. Copies share them; thread-safe. The first 256 files
/// stay open, a quarter of a process's usual limit; each pass opens further files anew.
class OpenFiles {
 public:
  /// Opens a file; never returns null.
  using Opener = std::function<std::shared_ptr<const OpenFile>(const std::filesystem::path&)>;

  /// Opens files as they are on the disk.
  OpenFiles();
  explicit OpenFiles(Opener opener);
  /// Returns a new, empty set of files with the same opener.
  OpenFiles none_of_these() const;
  /// Returns the open file, opening it if needed; never null. Only regular files stay open. Throws
  /// BadInput if a regular file has become shorter since it was last opened here.
  std::shared_ptr<const OpenFile> open(const std::filesystem::path& path) const;
  /// Returns the notes about a file, or about all files in a folder, by path.
  std::vector<std::string> notes(const std::filesystem::path& log) const;
  /// Adds a note about a file, unless it already has the same note.
  void note(const std::filesystem::path& file, std::string text) const;
  /// Closes files whose bytes arrive on demand, to free their disk space. A later open() fetches
  /// them again.
  void leave_arrived() const;
  /// Stored result of an earlier pass over a file, for the next pass; empty if there is none. It
  /// must not refer to this object's files.
  std::any kept(const std::filesystem::path& file) const;
  void keep(const std::filesystem::path& file, std::any made) const;

 private:
  struct Kept;
  std::shared_ptr<Kept> kept_;
};

/// A path of a file or folder, with the open files. A path alone has no open files.
struct OpenPath {
  OpenPath(std::filesystem::path its_path, OpenFiles open = {})
      : path(std::move(its_path)), files(std::move(open)) {}

  /// Returns another path with the same open files.
  OpenPath at(std::filesystem::path other) const { return {std::move(other), files}; }
  std::shared_ptr<const OpenFile> open() const { return files.open(path); }

  std::filesystem::path path;
  OpenFiles files;
};

}  // namespace halfscope::log
