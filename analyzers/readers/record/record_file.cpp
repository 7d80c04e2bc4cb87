// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/record/record_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "analyzers/readers/common/log_files.hpp"
#include "analyzers/readers/record/record.pb.h"
#include "halfscope/log/error.hpp"
#include "halfscope/log/event_file.hpp"
#include "halfscope/log/output_file.hpp"
#include "halfscope/log/read_file.hpp"
#include "halfscope/log/write_all.hpp"

namespace halfscope::analyzers::readers::record {

namespace proto = halfscope::record;
using log::BadInput;
using log::printable;

namespace {

constexpr std::string_view kIs = "halfscope record";
constexpr std::size_t kPiece = std::size_t{1} << 20;

/// Returns the field number with which a message begins. For an Item, that is its case.
std::uint32_t case_of(std::string_view message) {
  if (message.empty()) return 0;
  return static_cast<unsigned char>(message.front()) >> 3;
}

proto::Begin begin_of(const PartHeader& header) {
  proto::Begin begin;
  begin.set_log(header.log);
  begin.set_index(header.index);
  begin.set_of(header.of);
  begin.set_name(header.name);
  begin.set_settings(header.settings);
  if (header.manifest) begin.set_manifest(*header.manifest);
  return begin;
}

PartHeader header_of(const proto::Begin& begin) {
  return {.log = begin.log(),
          .index = begin.index(),
          .of = begin.of(),
          .name = begin.name(),
          .settings = begin.settings(),
          .manifest = begin.has_manifest() ? std::optional(begin.manifest()) : std::nullopt};
}

proto::Item parsed(std::string_view message) {
  proto::Item item;
  if (!item.ParseFromArray(message.data(), static_cast<int>(message.size()))) item.Clear();
  return item;
}

void require_header(const std::string& shown, log::EventReader& reader) {
  const auto message = reader.next_message();
  const proto::Item first = message ? parsed(*message) : proto::Item();
  if (first.header().is() != kIs) {
    throw BadInput(no_record_text(shown) + "; check the path");
  }
  if (first.header().schema() <= kSchema) return;
  throw BadInput(
      fmt::format("{}: schema {}, but this halfscope reads schema 1 to {}; read it with "
                  "the halfscope that wrote it or a newer one",
                  shown, first.header().schema(), kSchema));
}

/// Finds the parts of a file, message by message.
class Scan {
 public:
  Scan(log::EventReader& reader, std::string shown) : reader_(reader), shown_(std::move(shown)) {}

  void run() {
    while (const auto message = reader_.next_message()) {
      const bool damaged = reader_.notes().size() != notes_;
      notes_ = reader_.notes().size();
      if (damaged) broken_ = true;
      take(*message);
    }
    if (open_) {
      damage.push_back(
          fmt::format("{}: ends in the middle of {}, which is left out; count it again", shown_,
                      printable(open_->header.shown())));
    } else if (reader_.notes().size() != notes_) {
      damage.push_back(shown_ +
                       ": ends in the middle of a part, which is left out; count it again");
    }
  }

  std::vector<PartPlace> parts;
  std::vector<std::string> damage;
  std::uint64_t whole_end = 0;

 private:
  void take(std::string_view message) {
    switch (case_of(message)) {
      case proto::Item::kBegin: {
        if (open_) drop();
        broken_ = false;
        open_ = PartPlace{header_of(parsed(message).begin()), reader_.offset(), 0};
        items_ = 0;
        return;
      }
      case proto::Item::kEnd: {
        if (broken_ || !open_ || parsed(message).end().items() != items_) return drop();
        open_->end = end_of(message);
        if (damage.empty()) whole_end = open_->end;
        parts.push_back(std::move(*open_));
        open_.reset();
        return;
      }
      default: ++items_;
    }
  }

  std::uint64_t end_of(std::string_view message) const {
    constexpr std::uint64_t kChecksumBytes = 4;
    return reader_.message_offset() + message.size() + kChecksumBytes;
  }

  void drop() {
    damage.push_back(fmt::format("{}: {} is damaged and left out; count it again", shown_,
                                 open_ ? printable(open_->header.shown()) : "a part"));
    open_.reset();
  }

  log::EventReader& reader_;
  std::string shown_;
  std::optional<PartPlace> open_;
  std::uint64_t items_ = 0;
  std::size_t notes_ = 0;
  bool broken_ = false;
};

}  // namespace

std::string PartHeader::shown() const { return name.empty() ? log : log + "/" + name; }

std::string no_record_text(const std::string& shown) {
  return shown + ": is not a record of 'halfscope count'";
}

bool is_record_file(const log::OpenPath& file) {
  constexpr std::size_t kLook = 64;
  const std::string begin = common::beginning_of(file, kLook);
  const auto length = log::record_length(begin);
  return length && *length < kLook && begin.find(kIs) != std::string::npos;
}

std::string file_header() {
  proto::Item item;
  item.mutable_header()->set_is(std::string(kIs));
  item.mutable_header()->set_schema(kSchema);
  return log::framed(item);
}

RecordFile::RecordFile(const log::OpenPath& file) : file_(file) {
  const std::string shown = printable(file.path.string());
  const auto opened = file.open();
  if (!opened->is_regular()) {
    const int error = opened->error();
    throw BadInput(
        shown + ": cannot be opened (" +
        (error == 0 ? "it is not a regular file" : std::generic_category().message(error)) +
        "); check the path");
  }
  log::EventReader reader(file);
  require_header(shown, reader);
  whole_end_ = file_header().size();
  Scan scan(reader, shown);
  scan.run();
  parts_ = std::move(scan.parts);
  damage_ = std::move(scan.damage);
  whole_end_ = std::max(whole_end_, scan.whole_end);
}

void RecordFile::for_each_item(const PartPlace& part, const ItemVisitor& visit) const {
  log::EventReader reader(file_);
  reader.seek(part.begin);
  reader.next_message();  // Begin
  while (const auto message = reader.next_message()) {
    if (reader.offset() >= part.end) return;
    visit(parsed(*message));
  }
}

void RecordFile::for_each_piece(const PartPlace& part,
                                const std::function<void(std::string_view)>& visit) const {
  const auto file = file_.open();
  std::string piece(kPiece, '\0');
  for (std::uint64_t at = part.begin; at < part.end;) {
    const std::size_t most =
        static_cast<std::size_t>(std::min<std::uint64_t>(kPiece, part.end - at));
    log::read_exactly(*file, printable(file_.path.string()), at, piece.data(), most);
    visit(std::string_view(piece).substr(0, most));
    at += most;
  }
}

namespace {

BadInput cannot_write(const std::filesystem::path& path, int error) {
  const bool full = error == ENOSPC || error == EDQUOT;
  return BadInput(printable(path.string()) + ": cannot be written (" +
                  std::generic_category().message(error) + "); " + (full ? "free space, or " : "") +
                  "choose another file");
}

/// Returns true if the path still leads to this open file. Another process may have replaced it.
bool is_at(int file, const std::filesystem::path& path) {
  struct ::stat own = {}, there = {};
  return ::fstat(file, &own) == 0 && ::stat(path.c_str(), &there) == 0 &&
         own.st_dev == there.st_dev && own.st_ino == there.st_ino;
}

}  // namespace

Alone::Alone(const std::filesystem::path& path, int flags) {
  log::require_file_or_nothing(path);
  number_ = ::open(path.c_str(), flags | O_CLOEXEC | O_NONBLOCK, 0666);
  if (number_ < 0 && errno == ENOENT) return;
  if (number_ < 0) throw cannot_write(path, errno);
  if (::flock(number_, LOCK_EX | LOCK_NB) == 0 && is_at(number_, path)) return;
  ::close(number_);
  throw BadInput(printable(path.string()) +
                 ": another process writes it; give each job a file of its own");
}

Alone::~Alone() { close(); }

int Alone::close() {
  const int file = std::exchange(number_, -1);
  return file < 0 || ::close(file) == 0 ? 0 : errno;
}

RecordWriter::RecordWriter(const std::filesystem::path& path)
    : path_(path), file_(path, O_RDWR | O_CREAT | O_APPEND) {
  if (file_.number() < 0) throw cannot_write(path, ENOENT);
  go_on();
}

void RecordWriter::go_on() {
  const std::string header = file_header();
  std::string there_begins(header.size(), '\0');
  const auto bytes = ::pread(file_.number(), there_begins.data(), there_begins.size(), 0);
  if (bytes < 0) throw cannot_write(path_, errno);
  const bool begun = static_cast<std::size_t>(bytes) < header.size() &&
                     header.starts_with(there_begins.substr(0, static_cast<std::size_t>(bytes)));
  if (begun) {
    if (::ftruncate(file_.number(), 0) != 0) throw cannot_write(path_, errno);
    waiting_ = header;
    return flush();
  }
  const RecordFile there{log::OpenPath(path_)};
  parts_ = there.parts();
  if (!there.parts().empty() && there.parts().back().end > there.whole_end()) {
    throw BadInput(there.damage().front() + ": copy the others with 'halfscope count " +
                   printable(path_.string()) + " --out NEW.hst', and count into the copy");
  }
  const int cut = ::ftruncate(file_.number(), static_cast<::off_t>(there.whole_end()));
  if (cut != 0) throw cannot_write(path_, errno);
}

void RecordWriter::flush() {
  if (log::write_all(file_.number(), waiting_) != waiting_.size()) throw cannot_write(path_, errno);
  waiting_.clear();
}

void RecordWriter::close() {
  if (const int error = file_.close(); error != 0) throw cannot_write(path_, error);
}

void RecordWriter::append(const proto::Item& item) {
  waiting_ += log::framed(item);
  if (waiting_.size() >= kPiece) flush();
}

void RecordWriter::copy(std::string_view piece) {
  waiting_ += piece;
  flush();
}

void RecordWriter::begin(const PartHeader& header) {
  proto::Item item;
  *item.mutable_begin() = begin_of(header);
  append(item);
  items_ = 0;
}

void RecordWriter::add(const proto::Item& item) {
  append(item);
  ++items_;
}

void RecordWriter::end(const std::vector<std::string>& notes) {
  proto::Item item;
  item.mutable_end()->set_items(items_);
  for (const std::string& note : notes) item.mutable_end()->add_notes(note);
  append(item);
  flush();
}

}  // namespace halfscope::analyzers::readers::record
