// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/input/open_input.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "analyzers/readers/input/content.hpp"
#include "analyzers/readers/input/memory_input.hpp"
#include "analyzers/readers/input/spool.hpp"
#include "analyzers/readers/input/standard_input.hpp"
#include "analyzers/readers/input/text_encoding.hpp"
#include "analyzers/readers/input/unpack.hpp"
#include "halfscope/log/error.hpp"
#include "halfscope/log/user_limit.hpp"

namespace halfscope::analyzers::readers::input {
namespace {

namespace fs = std::filesystem;
using log::OpenFile;

constexpr std::size_t kTextLookedAt = 4096;
constexpr int kMostLevels = 2;  // "train.log.gz" in a ZIP archive

bool holds_tensors(std::string_view text) {
  return text.starts_with("\x93NUMPY") || (text.size() > 8 && text[8] == '{' && text[7] == '\0');
}

/// Returns the number of bytes to which a file may unpack. For tensors, which are mapped: 1 GiB, or
/// 200 times the packed size if that is more (sparse data). For text, whose lines cost time and
/// memory: 64 MiB, or 50 times the packed size if that is more (progress lines).
std::uint64_t limit_of(std::uint64_t packed, bool tensors) {
  const std::uint64_t any = std::uint64_t{1} << (tensors ? 30 : 26), ratio = tensors ? 200 : 50;
  const std::uint64_t most = packed > UINT64_MAX / ratio ? UINT64_MAX : packed * ratio;
  return log::user_limit(log::kUnpackLimit, std::max(any, most));
}

std::string beginning_of(const OpenFile& file) {
  std::string text(kTextLookedAt, '\0');
  text.resize(file.read(0, text.data(), text.size()));
  return text;
}

/// Returns true if bytes may be the start of a log: text, a file of tensors or events, compressed
/// data, or nothing (a later message then says that the file is empty).
bool may_be_log(std::string_view text) {
  if (is_of_other_kind(text)) return false;
  if (text.empty() || packing_of(text) != Packing::none || is_text(text) ||
      encoding_of(text) != Encoding::plain || text.starts_with("\x93NUMPY")) {
    return true;
  }
  // Safetensors and event files begin with a length in 64 bits.
  return text.size() >= 12 && text.substr(4, 4) == std::string_view("\0\0\0\0", 4);
}

/// Unpacks a file, one level of compression at a time.
class Unpacking {
 public:
  Unpacking(std::string shown, std::shared_ptr<OpenFile> file)
      : shown_(std::move(shown)), packed_(file->size()), file_(std::move(file)) {}

  std::shared_ptr<const OpenFile> finish() {
    const auto outer = file_;
    try {
      for (int level = 0; level < kMostLevels && unpack_once(); ++level) {
      }
      convert();
    } catch (const log::BadInput& refused) {
      remarks_.refusal = refused.what();
    }
    if (!remarks_.refusal.empty()) {
      remarks_.notes.assign({remarks_.refusal});
      file_ = outer;
    }
    file_->remark(std::move(remarks_));
    return file_;
  }

 private:
  [[noreturn]] void refuse(std::string_view is, std::string_view way_out) const {
    throw log::BadInput(fmt::format("{}: {}; {}", shown_, is, way_out));
  }

  void judge(Ending ending, Packing packing, std::uint64_t made) {
    const std::string_view name = name_of(packing);
    if (ending == Ending::encrypted) {
      refuse(fmt::format("is {} with encrypted files", name), "unpack it and name the log in it");
    }
    if (ending == Ending::too_large) {
      refuse(fmt::format("is {} that needs more memory than Halfscope gives it", name),
             "unpack it yourself and name that file");
    }
    if (ending != Ending::cut && ending != Ending::damaged) return;
    const bool cut = ending == Ending::cut;
    if (made == 0) {
      refuse(fmt::format("is {} that {} before anything could be unpacked", name,
                         cut ? "ends" : "is damaged"),
             "copy the file again, in binary mode");
    }
    remarks_.notes.push_back(fmt::format(
        "{}: is {} that {}; only the first {} bytes that it holds could be read", shown_, name,
        cut ? "ends too early, as a file that is cut off" : "is damaged", made));
  }

  /// Unpacks one level. Returns false if the file is not packed or its content cannot be a log.
  bool unpack_once() {
    const Packing packing = packing_of(beginning_of(*file_));
    if (packing == Packing::none) return false;
    if (packing == Packing::zip && files_in_zip(*file_).size() != 1) return false;
    const std::string beginning = packed_beginning(*file_, packing, kTextLookedAt);
    const bool archives = packing == Packing::zip && packing_of(beginning) == Packing::zip;
    if (archives || !may_be_log(beginning)) return false;
    Spool spool(shown_, limit_of(packed_, holds_tensors(beginning)));
    const Ending ending = unpack(*file_, packing, [&](std::string_view bytes) {
      spool.write(bytes);
      return true;
    });
    judge(ending, packing, spool.size());
    file_ = std::make_shared<OpenFile>(spool.release());
    return true;
  }

  void convert() {
    const Encoding encoding = encoding_of(beginning_of(*file_));
    if (encoding == Encoding::plain) return;
    Spool spool(shown_);
    const bool known = to_utf8(*file_, encoding, [&](std::string_view bytes) {
      spool.write(bytes);
      return true;
    });
    if (!known) {
      refuse("is UTF-16 text, which the C library of this machine cannot convert",
             "convert it: iconv -f UTF-16 -t UTF-8");
    }
    file_ = std::make_shared<OpenFile>(spool.release());
  }

  std::string shown_;
  std::uint64_t packed_;
  std::shared_ptr<OpenFile> file_;
  log::FileRemarks remarks_;
};

}  // namespace

std::shared_ptr<const OpenFile> open_input(const fs::path& path,
                                           std::shared_ptr<log::Arrival> arrival) {
  if (auto file = memory_input(path)) return file;
  auto file = is_standard_input(path) ? std::make_shared<OpenFile>(standard_input())
                                      : std::make_shared<OpenFile>(path, std::move(arrival));
  if (!file->is_regular()) return file;
  return Unpacking(log::printable(path.string()), std::move(file)).finish();
}

log::OpenFiles open_files() {
  log::check_user_limits();
  return log::OpenFiles([](const fs::path& path) { return open_input(path); });
}

}  // namespace halfscope::analyzers::readers::input
