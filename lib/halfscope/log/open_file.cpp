// SPDX-License-Identifier: Apache-2.0
#include "halfscope/log/open_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>

#include "halfscope/log/error.hpp"
#include "halfscope/log/read_file.hpp"

namespace halfscope::log {

OpenFile::OpenFile(const std::filesystem::path& path, std::shared_ptr<Arrival> arrival)
    : arrival_(std::move(arrival)) {
  // O_NONBLOCK: opening a named pipe must not wait for a writer.
  number_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  look();
}

OpenFile::OpenFile(int descriptor) : number_(descriptor) { look(); }

OpenFile::OpenFile(const std::vector<std::span<const std::byte>>& pieces) : mode_(S_IFREG) {
  std::uint64_t begin = 0;
  for (const std::span<const std::byte> piece : pieces) {
    if (!piece.empty()) pieces_.emplace(begin, piece);
    begin += piece.size();
  }
}

void OpenFile::look() {
  struct stat status = {};
  if (number_ < 0 || ::fstat(number_, &status) != 0) {
    error_ = errno;
    return;
  }
  mode_ = status.st_mode;
}

OpenFile::~OpenFile() {
  if (is_regular()) leave(0, size());
  if (number_ >= 0) ::close(number_);
}

bool OpenFile::is_regular() const { return error_ == 0 && S_ISREG(mode_); }
bool OpenFile::is_folder() const { return error_ == 0 && S_ISDIR(mode_); }

std::uint64_t OpenFile::size() const {
  if (!pieces_.empty()) return pieces_.rbegin()->first + pieces_.rbegin()->second.size();
  if (is_in_memory()) return 0;
  struct stat status = {};
  if (error_ != 0 || ::fstat(number_, &status) != 0) return 0;
  return static_cast<std::uint64_t>(status.st_size);
}

void OpenFile::need(std::uint64_t begin, std::uint64_t end) const {
  if (!arrival_ || !is_regular()) return;
  end = std::min(end, size());
  if (begin < end) arrival_->need(begin, end);
}

void OpenFile::leave(std::uint64_t begin, std::uint64_t end) const {
  if (arrival_) arrival_->leave(begin, end);
}

std::span<const std::byte> OpenFile::in_memory(std::uint64_t begin, std::uint64_t end) const {
  const auto after = pieces_.upper_bound(begin);
  if (after == pieces_.begin()) return {};
  const auto& [first, piece] = *std::prev(after);
  if (end < begin || end - first > piece.size()) return {};
  return piece.subspan(begin - first, end - begin);
}

std::size_t OpenFile::read(std::uint64_t offset, char* to, std::size_t most) const {
  need(offset, offset + most);
  std::size_t done = 0;
  if (is_in_memory()) {
    errno = 0;
    const std::uint64_t end = size();
    while (done < most && offset + done < end) {
      const auto& [first, piece] = *std::prev(pieces_.upper_bound(offset + done));
      const auto rest = piece.subspan(offset + done - first);
      const std::size_t count = std::min(rest.size(), most - done);
      std::memcpy(to + done, rest.data(), count);
      done += count;
    }
    return done;
  }
  while (done < most) {
    const ::ssize_t got =
        ::pread(number_, to + done, most - done, static_cast<::off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got == 0) errno = 0;  // end of the file
    if (got <= 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

struct OpenFiles::Kept {
  Opener opener;
  std::mutex mutex;
  std::map<std::filesystem::path, std::vector<std::string>> notes;
  std::map<std::filesystem::path, std::shared_ptr<const OpenFile>> files;
  std::map<std::filesystem::path, std::uint64_t> sizes;  // largest size seen of each regular file
  std::map<std::filesystem::path, std::any> made;
  // The last file beyond the limit: a pass opens the same file several times in a row.
  std::filesystem::path last_path;
  std::shared_ptr<const OpenFile> last;

  std::shared_ptr<const OpenFile> open(const std::filesystem::path& path);

  /// Throws BadInput if a regular file had more bytes when it was opened before.
  void check_size(const std::filesystem::path& path, const OpenFile& file) {
    if (!file.is_regular()) return;
    const std::uint64_t size = file.size();
    std::uint64_t& largest = sizes[path];
    if (size < largest) refuse_cut(printable(path.string()));
    largest = size;
  }
};

OpenFiles::OpenFiles()
    : OpenFiles(
          [](const std::filesystem::path& path) { return std::make_shared<OpenFile>(path); }) {}

OpenFiles::OpenFiles(Opener opener) : kept_(std::make_shared<Kept>()) {
  kept_->opener = std::move(opener);
}

OpenFiles OpenFiles::none_of_these() const { return OpenFiles(kept_->opener); }

std::vector<std::string> OpenFiles::notes(const std::filesystem::path& log) const {
  const std::filesystem::path above =
      log.has_filename() ? log : log.parent_path();  // for "folder/"
  const std::lock_guard lock(kept_->mutex);
  std::vector<std::string> found;
  for (const auto& [path, notes] : kept_->notes) {
    const auto apart = std::mismatch(above.begin(), above.end(), path.begin(), path.end());
    if (apart.first != above.end()) continue;
    found.insert(found.end(), notes.begin(), notes.end());
  }
  return found;
}

void OpenFiles::note(const std::filesystem::path& file, std::string text) const {
  const std::lock_guard lock(kept_->mutex);
  std::vector<std::string>& notes = kept_->notes[file];
  if (std::ranges::find(notes, text) == notes.end()) notes.push_back(std::move(text));
}

void OpenFiles::leave_arrived() const {
  const std::lock_guard lock(kept_->mutex);
  std::erase_if(kept_->files, [](const auto& file) { return file.second->arrives(); });
  kept_->last.reset();
}

std::any OpenFiles::kept(const std::filesystem::path& file) const {
  const std::lock_guard lock(kept_->mutex);
  const auto known = kept_->made.find(file);
  return known == kept_->made.end() ? std::any() : known->second;
}

void OpenFiles::keep(const std::filesystem::path& file, std::any made) const {
  const std::lock_guard lock(kept_->mutex);
  kept_->made.insert_or_assign(file, std::move(made));
}

std::shared_ptr<const OpenFile> OpenFiles::Kept::open(const std::filesystem::path& path) {
  constexpr std::size_t kMost = 256;
  const auto known = files.find(path);
  if (known != files.end()) return known->second;
  if (last && last_path == path) return last;
  auto file = opener(path);
  if (file->error() == EMFILE && !files.empty()) {
    files.clear();
    last.reset();
    file = opener(path);
  }
  if (!file->is_regular()) return file;
  if (!file->remarks().notes.empty()) notes.try_emplace(path, file->remarks().notes);
  if (files.size() < kMost) {
    files.emplace(path, file);
  } else {
    last_path = path;
    last = file;
  }
  return file;
}

std::shared_ptr<const OpenFile> OpenFiles::open(const std::filesystem::path& path) const {
  const std::lock_guard lock(kept_->mutex);
  auto file = kept_->open(path);
  kept_->check_size(path, *file);
  return file;
}

}  // namespace halfscope::log
