// SPDX-License-Identifier: Apache-2.0
// Files that are open for reading. All that reads a log opens its files here, each once for all
// that is asked of it.
#pragma once

#include <sys/types.h>

#include <any>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace halfscope::log {

/// What is to be said of a file's contents, where these are not the bytes that lie at its path.
struct FileRemarks {
  std::vector<std::string> notes = {};  ///< one line each, with the path
  std::string refusal = {};             ///< why the contents cannot be had; empty: they can
};

/// Bytes that come into a file when they are asked for, as those of another machine do. Several
/// threads may ask.
class Arrival {
 public:
  Arrival() = default;
  Arrival(const Arrival&) = delete;
  Arrival& operator=(const Arrival&) = delete;
  virtual ~Arrival() = default;
  /// Returns when the bytes from `begin` up to `end` lie in the file. Throws BadInput.
  virtual void need(std::uint64_t begin, std::uint64_t end) = 0;
  /// They are not needed for now: they may come again.
  virtual void leave(std::uint64_t begin, std::uint64_t end) = 0;
};

/// A file that is open, or the reason why it is not: who reads it words the message.
class OpenFile {
 public:
  /// Never waits for a pipe. arrival: of its bytes, where they do not lie there yet.
  explicit OpenFile(const std::filesystem::path& path, std::shared_ptr<Arrival> arrival = nullptr);
  /// A descriptor that is open for reading, which is closed with this.
  explicit OpenFile(int descriptor);
  ~OpenFile();
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  int error() const { return error_; }  ///< errno; 0 where the file is open
  bool is_regular() const;
  bool is_folder() const;
  int number() const { return number_; }  ///< of the descriptor
  /// Bytes of the file now: a run may still write to it. 0 where it cannot be asked.
  std::uint64_t size() const;
  /// Whoever looks at bytes otherwise than by read() says so before, and may say when it is done.
  void need(std::uint64_t begin, std::uint64_t end) const;
  void leave(std::uint64_t begin, std::uint64_t end) const;
  bool arrives() const { return arrival_ != nullptr; }
  /// Reads up to `most` bytes from `offset` on. Returns how many there were. If there were fewer,
  /// errno is 0 at the end of the file, else the error.
  std::size_t read(std::uint64_t offset, char* to, std::size_t most) const;
  const FileRemarks& remarks() const { return remarks_; }
  void remark(FileRemarks remarks) { remarks_ = std::move(remarks); }

 private:
  void look();

  int number_ = -1;
  int error_ = 0;
  ::mode_t mode_ = 0;
  std::shared_ptr<Arrival> arrival_;
  FileRemarks remarks_;
};

/// Regular files that stay open from one look at them to the next. Copies share them; several
/// threads may use them. The first 256 files stay open, a quarter of what a process may usually
/// have open: of a larger folder each look opens the others anew.
class OpenFiles {
 public:
  /// How a file is opened; never returns null.
  using Opener = std::function<std::shared_ptr<const OpenFile>(const std::filesystem::path&)>;

  /// As the bytes that lie there.
  OpenFiles();
  explicit OpenFiles(Opener opener);
  /// Files that are opened alike, of which none are.
  OpenFiles none_of_these() const;
  /// The file that is open already, or newly opened; never null. What cannot be read is not kept.
  /// Throws BadInput if a regular file became shorter since it was opened here before.
  std::shared_ptr<const OpenFile> open(const std::filesystem::path& path) const;
  /// What was said of a file, or of those in a folder, by name.
  std::vector<std::string> notes(const std::filesystem::path& log) const;
  /// Something to be said of a file; once, however often it is found.
  void note(const std::filesystem::path& file, std::string text) const;
  /// Lets go of files whose bytes arrive: they take place on the disk. Opened again, they arrive
  /// again.
  void leave_arrived() const;
  /// What a reader has made of a file, for the pass that reads it next; empty at first. What is
  /// kept must not refer to these files.
  std::any kept(const std::filesystem::path& file) const;
  void keep(const std::filesystem::path& file, std::any made) const;

 private:
  struct Kept;
  std::shared_ptr<Kept> kept_;
};

/// A path of a file or folder, and the files that are open already. A path alone stands for one of
/// which none are.
struct OpenPath {
  OpenPath(std::filesystem::path its_path, OpenFiles open = {})
      : path(std::move(its_path)), files(std::move(open)) {}

  /// Another path, of the same files.
  OpenPath at(std::filesystem::path other) const { return {std::move(other), files}; }
  std::shared_ptr<const OpenFile> open() const { return files.open(path); }

  std::filesystem::path path;
  OpenFiles files;
};

}  // namespace halfscope::log
